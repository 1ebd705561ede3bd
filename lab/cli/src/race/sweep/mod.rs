//! `heapdrome race -t 1,2,4`, `--sweep jobs=1,4`: one race for each combination of values.

mod points;
mod scaling;
mod turns;
mod whole;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use heapdrome_record::{
    Better, Collection, Member, Metric, Options, RaceResult, SCHEMA, Status, SweptParameter,
};

use super::WITHOUT_PROOF;
use super::cell::{CellRequest, Load, run_cell};
use super::options::{check_command, options};
use super::placeholders;
use super::planning::current_folder;
use super::stopping::{Aim, stopping};
use super::store::ProofStore;
use crate::arguments::{RaceArguments, StoppingArguments};
use crate::destinations::Destinations;
use crate::failure::Failure;
use crate::folders::Folders;
use crate::values::WorkArgument;
use crate::{interrupt, output};

use points::{Point, parameters};
use scaling::{Found, WORK, Work, scaling, work_not_found};

pub use whole::Whole;

/// How much degradation per processor a curve may have before its knee, where nothing is said: time
/// per work a quarter above that of the first value is an efficiency of 80%.
const SHARE: f64 = 0.25;

/// A sweep that is going to be run.
struct Sweep {
    whole: Whole,
    parameters: Vec<SweptParameter>,
    points: Vec<Point>,
    work: Work,
    share: f64,
    /// Whether races that have begun go on until other limits.
    new_limits: bool,
}

/// Runs a sweep that begins.
///
/// # Errors
/// As a race; when several end with a failure, the first is told.
pub fn sweep(
    arguments: &RaceArguments,
    folders: &Folders,
    interrupt: &Arc<AtomicBool>,
) -> Result<(), Failure> {
    let sweep = planned(arguments, Whole::new(arguments, folders))?;
    placeholders::hint(arguments);
    run(arguments, &sweep, folders, interrupt)
}

/// Goes on with a sweep. Limits that are `given` take the place of its own. Its result goes where `given` says, and
/// for what that leaves open to the files that the sweep was first asked to write.
///
/// # Errors
/// As [`sweep`]; and when it cannot be taken up.
pub fn go_on(
    whole: Whole,
    given: &RaceArguments,
    folders: &Folders,
    interrupt: &Arc<AtomicBool>,
) -> Result<(), Failure> {
    let now = given.output.seen_from(&current_folder()?);
    let mut arguments = whole.arguments()?;
    let mut sweep = planned(&arguments, whole)?;
    // The files of a sweep that has ended were written then, and may hold a later result now.
    arguments.output = match sweep.whole.ended < sweep.points.len() {
        true => now.or(arguments.output.clone()),
        false => now,
    };
    Destinations::of(&arguments.output).check(&[])?;
    if given.stopping.is_given() {
        let warmup = arguments.stopping.warmup;
        arguments.stopping = StoppingArguments {
            warmup,
            ..given.stopping.clone()
        };
        sweep.new_limits = true;
    }
    if sweep.whole.ended < sweep.points.len() || sweep.new_limits {
        let load = sweep.points.first().map(|point| point.load.name());
        let raced = format!("{}, {}", load.unwrap_or_default(), empty(&sweep).name);
        let stopping = stopping(&arguments.stopping, arguments.quick, Aim::Measure)?;
        sweep.whole.announce(&raced, sweep.points.len(), &stopping);
    }
    run(&arguments, &sweep, folders, interrupt)
}

/// Runs what is left of the races, and reports what came of all: also of those that were done before an interrupt.
fn run(
    arguments: &RaceArguments,
    sweep: &Sweep,
    folders: &Folders,
    interrupt: &Arc<AtomicBool>,
) -> Result<(), Failure> {
    let requests = requests(arguments, sweep)?;
    let mut collection = empty(sweep);
    let paired = turns::can_be_taken(&requests);
    let (done, ended) = match paired {
        true => turns::in_turns(&requests, folders, interrupt),
        false => one_after_the_other(&requests, folders, interrupt),
    };
    if done.is_empty() {
        return ended;
    }
    collection.remarks = unfinished(sweep, &done, &ended);
    let values = done.iter();
    let values: Vec<_> = values
        .map(|(place, _)| sweep.points[*place].values.clone())
        .collect();
    join(&mut collection, sweep, &requests, done);
    let missing = missing(&collection, arguments.work.as_ref());
    collection.remarks.extend(missing);
    let found = Found {
        values: &values,
        work: sweep.work,
        share: sweep.share,
        paired,
    };
    collection.sweep = Some(scaling(&collection, &sweep.parameters, found));
    output::publish_collection(&collection, &arguments.output, Some(&folders.redaction()))?;
    ended.and_then(|()| outcome(&collection))
}

/// Everything that can be wrong is found before anything is built.
fn planned(arguments: &RaceArguments, whole: Whole) -> Result<Sweep, Failure> {
    let parameters = parameters(arguments)?;
    let mut options = options(arguments)?;
    let work = work(arguments, &parameters, &mut options)?;
    let points = points::points(arguments, &parameters, &options)?;
    for point in &points {
        if let Load::Command(command) = &point.load {
            check_command(&command[0], &point.options)?;
        }
    }
    Ok(Sweep {
        whole,
        parameters,
        points,
        work,
        share: arguments.knee.unwrap_or(SHARE),
        new_limits: false,
    })
}

/// What counts as work; where it is printed, the metric that reads it is added.
fn work(
    arguments: &RaceArguments,
    parameters: &[SweptParameter],
    options: &mut Options,
) -> Result<Work, Failure> {
    let along = &parameters[points::along(parameters)];
    let positive = |value: &String| value.parse().is_ok_and(|number: f64| number > 0.0);
    let numeric = along.values.iter().all(positive);
    match &arguments.work {
        Some(WorkArgument::Value) if !numeric => Err(Failure::Usage(format!(
            "--work value: the values of {} are not all numbers above 0",
            along.name
        ))),
        Some(WorkArgument::Value) => Ok(Work::Value),
        Some(WorkArgument::Same) => Ok(Work::Same),
        Some(WorkArgument::Printed(_)) if options.metrics.iter().any(|one| one.name == WORK) => {
            Err(Failure::usage(
                "--work and --metric work: there can be only one figure 'work'",
            ))
        }
        Some(WorkArgument::Printed(pattern)) => {
            options.metrics.push(Metric {
                name: WORK.to_owned(),
                pattern: pattern.clone(),
                better: Better::Higher,
            });
            Ok(Work::Printed)
        }
        None if arguments.workload.is_some() => Ok(Work::Operations),
        None if numeric && !along.name.starts_with(points::VARIABLE) => Ok(Work::Value),
        None => Ok(Work::Same),
    }
}

fn requests(arguments: &RaceArguments, sweep: &Sweep) -> Result<Vec<CellRequest>, Failure> {
    let stopping = stopping(&arguments.stopping, arguments.quick, Aim::Measure)?;
    let whole = &sweep.whole;
    let of = sweep.points.len();
    let request = |(place, point): (usize, &Point)| CellRequest {
        cell: point.cell.clone(),
        title: format!(
            "[{} of {of}] {}, {}",
            place + 1,
            point.load.name(),
            point.cell
        ),
        load: point.load.clone(),
        allocators: arguments.allocators.clone(),
        baseline: arguments.baseline().to_owned(),
        stopping: stopping.clone(),
        judge: None,
        options: point.options.clone(),
        seed: whole.seed,
        asked: whole.asked.clone(),
        untold: (sweep.work == Work::Printed).then_some(WORK),
        part_of: Some(whole.name.clone()),
        new_limits: sweep.new_limits,
        begun: whole.begun.get(&point.cell).cloned(),
    };
    Ok(sweep.points.iter().enumerate().map(request).collect())
}

/// What a reader must know of a sweep that did not come to its end; who waits is told.
fn unfinished(
    sweep: &Sweep,
    done: &[(usize, RaceResult)],
    ended: &Result<(), Failure>,
) -> Vec<String> {
    let mut remarks = Vec::new();
    if ended.is_ok() {
        return remarks;
    }
    if matches!(ended, Err(Failure::Interrupted)) {
        remarks.push("interrupted before all rounds were run".to_owned());
    }
    let points = sweep.points.iter().enumerate();
    let left = points.filter(|(place, _)| !done.iter().any(|(other, _)| other == place));
    let left: Vec<_> = left.map(|(_, point)| point.cell.as_str()).collect();
    let left = left.join(", ");
    let next = match (ended, left.as_str()) {
        (Err(Failure::Interrupted), _) => {
            format!("; go on with: heapdrome race --resume {}", sweep.whole.name)
        }
        (_, "") => String::new(),
        (_, left) => format!("; race the rest, too: {left}"),
    };
    output::tell(format_args!("what was done is reported{next}"));
    if !left.is_empty() {
        remarks.push(format!("not raced: {left}"));
    }
    remarks
}

/// Runs one race after the other: those that have a result, each with its place among `requests`, and the failure that
/// ended them.
fn one_after_the_other(
    requests: &[CellRequest],
    folders: &Folders,
    interrupt: &Arc<AtomicBool>,
) -> (Vec<(usize, RaceResult)>, Result<(), Failure>) {
    let mut proofs = ProofStore::default();
    let mut done = Vec::new();
    for (place, request) in requests.iter().enumerate() {
        let result = interrupt::check(interrupt).and_then(|()| {
            output::tell(&request.title);
            run_cell(request, folders, Some(&mut proofs), interrupt)
        });
        match result {
            Ok(result) => done.push((place, result)),
            Err(failure) => return (done, Err(failure)),
        }
    }
    (done, Ok(()))
}

/// Puts the races into the collection.
fn join(
    collection: &mut Collection,
    sweep: &Sweep,
    requests: &[CellRequest],
    done: Vec<(usize, RaceResult)>,
) {
    let along = points::along(&sweep.parameters);
    for (place, result) in done {
        let (request, point) = (&requests[place], &sweep.points[place]);
        if collection.races.is_empty() {
            collection.machine = result.machine.clone();
        }
        let named = sweep.parameters.iter().zip(&point.values);
        let named = named.map(|(parameter, value)| format!("{}={value}", parameter.name));
        collection.races.push(Member {
            cell: request.cell.clone(),
            workload: request.load.name(),
            parameters: match &request.load {
                Load::Workload { words, .. } => words.clone(),
                Load::Command(_) => named.collect(),
            },
            swept: point.values[along].parse().ok(),
            processors: request.options.pin.clone(),
            factor: None,
            result,
        });
    }
}

fn empty(sweep: &Sweep) -> Collection {
    let names = sweep.parameters.iter().map(|one| one.name.as_str());
    let names: Vec<_> = names.collect();
    Collection {
        schema: SCHEMA,
        heapdrome: env!("CARGO_PKG_VERSION").to_owned(),
        started: sweep.whole.started.clone(),
        asked: sweep.whole.asked.clone(),
        name: format!("sweep {}", names.join(" and ")),
        scale: None,
        machine: heapdrome_record::Machine::default(),
        races: Vec::new(),
        ccdfs: Vec::new(),
        misuse: Vec::new(),
        survival: Vec::new(),
        sweep: None,
        claims: Vec::new(),
        absent: Vec::new(),
        tables: Vec::new(),
        remarks: Vec::new(),
    }
}

/// What a reader must know of races without rounds, and of runs that printed no work; of these, who waits is told.
fn missing(collection: &Collection, work: Option<&WorkArgument>) -> Vec<String> {
    let mut remarks = without_rounds(collection);
    if let Some(WorkArgument::Printed(pattern)) = work
        && let Some(told) = work_not_found(collection, pattern)
    {
        output::tell(&told);
        remarks.push(told);
    }
    remarks
}

/// Why races have no round, each reason once with the cells in which there was nothing to race.
fn without_rounds(collection: &Collection) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    let idle = collection.races.iter();
    for race in idle.filter(|race| race.result.rounds == 0) {
        let (reason, cell) = (race.result.ended.as_str(), race.cell.as_str());
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, cells)) => cells.push(cell),
            None => reasons.push((reason, vec![cell])),
        }
    }
    let told = |(reason, cells): (&str, Vec<&str>)| format!("{reason} ({})", cells.join(", "));
    reasons.into_iter().map(told).collect()
}

/// The exit status of a sweep that has been reported.
fn outcome(collection: &Collection) -> Result<(), Failure> {
    let out = |result: &RaceResult| {
        let rows = result.entrants.iter();
        let failed = rows.filter(|row| row.status != Status::Ok);
        failed
            .map(|row| row.allocator.clone())
            .collect::<Vec<_>>()
            .join(", ")
    };
    let raced = collection.races.iter();
    let named: Vec<_> = raced
        .filter(|race| race.result.rounds > 0)
        .map(|race| (&race.cell, out(&race.result)))
        .filter(|(_, names)| !names.is_empty())
        .map(|(cell, names)| format!("{names} ({cell})"))
        .collect();
    let mut told = without_rounds(collection);
    if !named.is_empty() {
        told.push(format!("not in the race: {}", named.join("; ")));
    }
    if collection
        .races
        .iter()
        .any(|race| race.result.options.unproven)
    {
        told.push(WITHOUT_PROOF.to_owned());
    }
    match told.as_slice() {
        [] => Ok(()),
        told => Err(Failure::Entrant(told.join("; "))),
    }
}
