//! Continues an interrupted race, and determines the destinations of its result.

use std::path::Path;

use clap::Parser as _;
use heapdrome_engine::Engine;
use heapdrome_engine::race::{Contest, Origin, announce, refuse_old_sweep, workload_again};
use heapdrome_engine::workload::Ready;
use heapdrome_schema::Plan;

use super::stop::{Aim, stopping};
use crate::arguments::{Action, Arguments, OutputArguments, RaceArguments};
use crate::destinations::Destinations;
use crate::failure::Failure;
use crate::output;

/// Race that is ready to run: a new one, or an interrupted one.
pub struct TakenUp {
    pub contest: Contest,
    /// The prepared workload, which keeps its resources locked.
    pub workload: Option<Ready>,
    pub output: OutputArguments,
}

/// Opens the race in `folder` to continue it, and prints its name unless it has ended. Limits in
/// `arguments` replace those of the race. The result goes to the files that `arguments` name,
/// otherwise to the files that the race was originally asked to write. The latter are not used if
/// the race had ended or is part of a suite.
///
/// # Errors
/// Returns an error if the journal cannot be used, if it belongs to a sweep that an older heapdrome
/// ran, if one of the files cannot be written, if the limits contradict each other, or if the
/// workload cannot be prepared.
pub fn take_up(
    folder: &Path,
    arguments: &RaceArguments,
    engine: &Engine,
) -> Result<TakenUp, Failure> {
    let output = &arguments.output;
    let mut contest = Contest::resume(folder, engine)?;
    // The files of an ended race have already been written, and may contain a later result now, so
    // this command does not write them again.
    let output = match contest.is_finished() {
        true => output.clone(),
        false => {
            refuse_old_sweep(&contest, origin)?;
            outputs(contest.plan(), output)
        }
    };
    Destinations::of(&output).check(&[])?;
    if arguments.stopping.is_given() {
        contest.limit(stopping(&arguments.stopping, false, Aim::Decide)?)?;
    }
    if !contest.is_finished() {
        announce(&contest, engine);
    }
    let workload = workload_again(contest.workload(), engine)?;
    Ok(TakenUp {
        contest,
        workload,
        output,
    })
}

/// Parses arguments of heapdrome itself; `None` if they come from an incompatible version.
pub fn read(asked: &[String]) -> Option<Action> {
    let words = asked.iter().map(String::as_str);
    let read = Arguments::try_parse_from(std::iter::once("heapdrome").chain(words));
    read.map(|arguments| arguments.action).ok()
}

/// Returns the kind of command line that started a race. `asked` are heapdrome's arguments in that
/// command line.
pub fn origin(asked: &[String]) -> Origin {
    match read(asked) {
        Some(Action::Race(race)) if race.is_sweep() => Origin::Sweep,
        Some(Action::Race(_)) => Origin::Race,
        Some(Action::Suite(_)) => Origin::Suite,
        _ => Origin::Unknown,
    }
}

/// Returns the destinations of the result: each file that is named now, otherwise the original one,
/// relative to the folder in which the race was started.
fn outputs(plan: &Plan, now: &OutputArguments) -> OutputArguments {
    let first = match read(&plan.asked) {
        Some(Action::Race(race)) if !race.is_sweep() => race.output,
        // The original files belong to the whole suite, not to this race.
        Some(Action::Suite(_)) => {
            output::tell("this race is part of a suite; only this race continues");
            return now.clone();
        }
        _ => {
            output::tell(
                "the files of the original command line are unknown; name them beside --resume",
            );
            return now.clone();
        }
    };
    now.clone().or(first.seen_from(&plan.started_in))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started_as(line: &str) -> Origin {
        origin(&shlex::split(line).expect("words"))
    }

    fn files_of(line: &str) -> OutputArguments {
        match read(&shlex::split(line).expect("words")) {
            Some(Action::Race(race)) => race.output,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_part_of_something_greater_is_told_from_a_race() {
        let race = "race --json a.json --redact -- python3 -c 'pass;{n}'";
        assert_eq!(started_as(race), Origin::Race);
        let output = files_of(race);
        assert_eq!(output.json.as_deref(), Some(Path::new("a.json")));
        assert!(output.redact && output.csv.is_none());
        assert_eq!(started_as("race -w rptest -t 2"), Origin::Race);
        assert_eq!(started_as("suite real --quick"), Origin::Suite);
        for sweep in ["race -w rptest -t 1,2", "race --sweep n=1,2 -- true {n}"] {
            assert_eq!(started_as(sweep), Origin::Sweep, "{sweep}");
        }
        for other in ["", "race --of-another-version -- true"] {
            assert_eq!(started_as(other), Origin::Unknown, "{other}");
        }
    }
}
