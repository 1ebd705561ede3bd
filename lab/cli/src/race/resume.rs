//! Takes up a race that was interrupted, and knows where its result goes.

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

/// A race that goes on.
pub struct TakenUp {
    /// The race.
    pub contest: Contest,
    /// What the workload has locked stays so while this lives.
    pub workload: Option<Ready>,
    /// Where the result goes.
    pub output: OutputArguments,
}

/// Takes up the race in `folder`, and says which it is. Limits that `arguments` set take the place
/// of its own. Its result goes where they say, and for what they leave open to the files that the
/// race was first asked to write.
///
/// # Errors
/// When its journal cannot be used, when it is one of the races of a sweep that an older heapdrome
/// ran, or when one of the files cannot be written.
pub fn take_up(
    folder: &Path,
    arguments: &RaceArguments,
    engine: &Engine,
) -> Result<TakenUp, Failure> {
    let output = &arguments.output;
    let mut contest = Contest::resume(folder, engine)?;
    // The files of a race that has ended were written then, and may hold a later result now.
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

/// What these arguments of heapdrome's own ask for; `None` where they are those of another version.
pub fn read(asked: &[String]) -> Option<Action> {
    let words = asked.iter().map(String::as_str);
    let read = Arguments::try_parse_from(std::iter::once("heapdrome").chain(words));
    read.map(|arguments| arguments.action).ok()
}

/// What heapdrome was asked for with these arguments of its own.
pub fn origin(asked: &[String]) -> Origin {
    match read(asked) {
        Some(Action::Race(race)) if race.is_sweep() => Origin::Sweep,
        Some(Action::Race(_)) => Origin::Race,
        Some(Action::Suite(_)) => Origin::Suite,
        _ => Origin::Unknown,
    }
}

/// Where the result goes: each file that is named now, or else as it was at first, seen from the
/// folder of that time.
fn outputs(plan: &Plan, now: &OutputArguments) -> OutputArguments {
    let first = match read(&plan.asked) {
        Some(Action::Race(race)) if !race.is_sweep() => race.output,
        // Those files are for the whole collection.
        Some(Action::Suite(_)) => {
            output::tell("this race is part of a suite, and goes on alone");
            return now.clone();
        }
        _ => {
            output::tell(
                "which files were asked for at first cannot be told; name them beside --resume",
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
