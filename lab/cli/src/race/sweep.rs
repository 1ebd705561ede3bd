//! `heapdrome race -t 1,2,4`, `--sweep jobs=1,4`: one race for each combination of values.

use heapdrome_engine::Engine;
use heapdrome_engine::race::{
    Load, Sweep, SweepRequest, Whole, check_parameters, current_folder, sweep_outcome,
};
use heapdrome_engine::workload::THREADS;
use heapdrome_schema::SweptParameter;

use super::options::options;
use super::placeholders;
use super::resume::read;
use super::stop::{Aim, stopping};
use crate::arguments::{Action, OutputArguments, RaceArguments};
use crate::destinations::Destinations;
use crate::failure::Failure;
use crate::output;

/// Runs a new sweep.
///
/// # Errors
/// Returns the errors of a race; if several races fail, the first error.
pub fn sweep(arguments: &RaceArguments, engine: &Engine) -> Result<(), Failure> {
    let whole = Whole::new(arguments.asked(), arguments.seed, engine);
    let sweep = Sweep::new(request(arguments)?, whole)?;
    placeholders::hint(arguments);
    run(&sweep, &arguments.output, engine)
}

/// Continues a sweep. Limits in `given` replace those of the sweep. The result goes to the files
/// that `given` names, otherwise to the files that the sweep was originally asked to write, unless
/// it had ended.
///
/// # Errors
/// Returns the errors of [`sweep`], and an error if the sweep cannot be continued.
pub fn go_on(whole: Whole, given: &RaceArguments, engine: &Engine) -> Result<(), Failure> {
    let now = given.output.seen_from(&current_folder()?);
    let Some(Action::Race(arguments)) = read(&whole.asked) else {
        return Err(Failure::Usage(format!(
            "another version of heapdrome ran the sweep {}; continue with that version, or run the sweep again",
            whole.name
        )));
    };
    whole.enter_folder()?;
    let mut sweep = Sweep::new(request(&arguments)?, whole)?;
    // The files of an ended sweep have already been written, and may contain a later result now, so
    // this command does not write them again.
    let output = match sweep.has_ended() {
        false => now.or(arguments.output.clone()),
        true => now,
    };
    Destinations::of(&output).check(&[])?;
    if given.stopping.is_given() {
        sweep.limit(stopping(&given.stopping, arguments.quick, Aim::Measure)?);
    }
    sweep.announce(engine);
    run(&sweep, &output, engine)
}

/// Runs the remaining races, and reports the results of all.
fn run(sweep: &Sweep, output: &OutputArguments, engine: &Engine) -> Result<(), Failure> {
    let (collection, ended) = sweep.run(engine);
    let Some(collection) = collection else {
        return ended;
    };
    output::publish_collection(&collection, output, Some(&engine.folders.redaction()))?;
    ended.and_then(|()| sweep_outcome(&collection))
}

/// Returns the sweep that the command line requests.
fn request(arguments: &RaceArguments) -> Result<SweepRequest, Failure> {
    let parameters = parameters(arguments);
    check_parameters(&parameters, arguments.runs.pin.is_some())?;
    Ok(SweepRequest {
        load: load(arguments),
        parameters,
        work: arguments.work.clone(),
        knee: arguments.knee,
        allocators: arguments.allocators.clone(),
        baseline: arguments.baseline().to_owned(),
        options: options(arguments)?,
        stopping: stopping(&arguments.stopping, arguments.quick, Aim::Measure)?,
    })
}

fn load(arguments: &RaceArguments) -> Load {
    let words = arguments.command.clone();
    match &arguments.workload {
        None => Load::Command(words),
        Some(name) => Load::Workload {
            name: name.clone(),
            words,
            quick: arguments.quick,
        },
    }
}

/// Returns the parameters that the command line sweeps, `-t` before `--sweep`.
fn parameters(arguments: &RaceArguments) -> Vec<SweptParameter> {
    let mut all = Vec::new();
    if !arguments.threads.is_empty() {
        let values = arguments.threads.iter().map(u64::to_string).collect();
        all.push(SweptParameter {
            name: THREADS.to_owned(),
            values,
        });
    }
    all.extend(arguments.sweeps.iter().cloned());
    all
}
