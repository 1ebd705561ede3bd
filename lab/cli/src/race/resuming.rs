//! Takes up a race or a sweep that was interrupted: which one it is, and where the result of a race goes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Parser as _;
use heapdrome_measure::journal::{self, RaceSummary};
use heapdrome_record::Plan;

use super::contest::Contest;
use super::planning;
use super::sweep::Whole;
use crate::arguments::{Action, Arguments, OutputArguments};
use crate::destinations::Destinations;
use crate::failure::Failure;
use crate::folders::Folders;
use crate::output;
use crate::workload::Ready;

/// What `--resume` without a name stands for.
pub const LATEST: &str = "latest";

/// A race that goes on.
pub struct TakenUp {
    /// The race.
    pub contest: Contest,
    /// What the workload has locked stays so while this lives.
    pub workload: Option<Ready>,
    /// Where the result goes.
    pub output: OutputArguments,
}

/// The sweep that goes on, if it is one: that of this name, that of the race of this name, or what was interrupted last.
pub fn sweep(name: &str, folders: &Folders) -> Option<Whole> {
    let is_it = |race: &RaceSummary| {
        let part = race.plan.part.as_ref();
        name_of(&race.folder) == name || part.is_some_and(|part| part.of == name)
    };
    let race = match name {
        LATEST => journal::unfinished(&folders.races).into_iter().next(),
        _ => journal::list(&folders.races).into_iter().find(is_it),
    };
    Whole::of(&race?.plan, folders)
}

/// Takes up the race of this name, or the latest that was interrupted. Its result goes where `output` says, and for
/// what that leaves open to the files that the race was first asked to write.
///
/// # Errors
/// When there is none, when its journal cannot be used, when what was interrupted last is part of a suite and no name
/// is given, or when one of the files cannot be written.
pub fn take_up(
    name: &str,
    output: &OutputArguments,
    folders: &Folders,
    interrupt: Arc<AtomicBool>,
) -> Result<TakenUp, Failure> {
    let folder = match name {
        LATEST => latest(folders)?,
        name => folders.races.join(name),
    };
    if !folder.join(journal::FILE_NAME).is_file() {
        return Err(Failure::Usage(unknown_race(folders, name)));
    }
    let contest = Contest::resume(&folder, folders, interrupt)?;
    // The files of a race that has ended were written then, and may hold a later result now.
    let output = match contest.is_finished() {
        true => output.clone(),
        false => outputs(contest.plan(), output),
    };
    Destinations::of(&output).check(&[])?;
    let workload = planning::workload_again(contest.workload(), folders)?;
    Ok(TakenUp {
        contest,
        workload,
        output,
    })
}

/// What a race was started as.
#[derive(Debug)]
enum Origin {
    /// A race of its own, with these files.
    Race(OutputArguments),
    /// A part of a suite.
    Suite,
    /// The arguments are those of another version, or of a sweep that such a one ran, whose races do not name it.
    Unknown,
}

/// What heapdrome was asked for with these arguments of its own.
fn origin(asked: &[String]) -> Origin {
    let words = asked.iter().map(String::as_str);
    let arguments = Arguments::try_parse_from(std::iter::once("heapdrome").chain(words));
    match arguments.map(|arguments| arguments.action) {
        Ok(Action::Race(race)) if !race.is_sweep() => Origin::Race(race.output),
        Ok(Action::Suite(_)) => Origin::Suite,
        _ => Origin::Unknown,
    }
}

/// The latest race that was interrupted. A part of a suite is not taken for a race of its own: its end would look like
/// the end of the whole.
fn latest(folders: &Folders) -> Result<PathBuf, Failure> {
    let mut races = journal::unfinished(&folders.races).into_iter();
    let race = races
        .next()
        .ok_or_else(|| Failure::usage("there is no unfinished race to resume"))?;
    let is_of_suite = |race: &RaceSummary| matches!(origin(&race.plan.asked), Origin::Suite);
    if !is_of_suite(&race) {
        return Ok(race.folder);
    }
    let earlier = races.find(|race| !is_of_suite(race)).map(|race| {
        let name = name_of(&race.folder);
        format!(" (an earlier race goes on by --resume {name})")
    });
    Err(Failure::Usage(format!(
        "what was interrupted last is a suite, which goes on by heapdrome suite NAME --resume FILE.json{}; \
         or run it again{}: {}",
        earlier.unwrap_or_default(),
        place(&race.plan),
        asked(&race.plan)
    )))
}

/// The command line by which a race was asked for.
fn asked(plan: &Plan) -> String {
    let words = std::iter::once("heapdrome").chain(plan.asked.iter().map(String::as_str));
    shlex::try_join(words).unwrap_or_default()
}

/// Where to repeat it, if not here.
fn place(plan: &Plan) -> String {
    match std::env::current_dir() {
        Ok(here) if here == plan.started_in => String::new(),
        _ => format!(" in {}", plan.started_in.display()),
    }
}

/// Where the result goes: each file that is named now, or else as it was at first, seen from the folder of that time.
fn outputs(plan: &Plan, now: &OutputArguments) -> OutputArguments {
    let first = match origin(&plan.asked) {
        Origin::Race(first) => first,
        // Those files are for the whole collection.
        Origin::Suite => {
            output::tell("this race is part of a suite, and goes on alone");
            return now.clone();
        }
        Origin::Unknown => {
            output::tell(
                "which files were asked for at first cannot be told; name them beside --resume",
            );
            return now.clone();
        }
    };
    now.clone().or(first.seen_from(&plan.started_in))
}

fn name_of(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn unknown_race(folders: &Folders, name: &str) -> String {
    let known: Vec<_> = journal::unfinished(&folders.races)
        .iter()
        .map(|race| name_of(&race.folder))
        .take(5)
        .collect();
    match known.as_slice() {
        [] => format!("there is no race called {name}, and no unfinished one"),
        names => format!(
            "there is no race called {name}; unfinished are: {}",
            names.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started_as(line: &str) -> Origin {
        origin(&shlex::split(line).expect("words"))
    }

    #[test]
    fn a_part_of_something_greater_is_told_from_a_race() {
        let race = started_as("race --json a.json --redact -- python3 -c 'pass;{n}'");
        let Origin::Race(output) = race else {
            panic!("{race:?}");
        };
        assert_eq!(output.json.as_deref(), Some(Path::new("a.json")));
        assert!(output.redact && output.csv.is_none());
        assert!(matches!(started_as("race -w rptest -t 2"), Origin::Race(_)));
        assert!(matches!(started_as("suite real --quick"), Origin::Suite));
        for other in [
            "",
            "race --of-another-version -- true",
            "race -w rptest -t 1,2",
            "race --sweep n=1,2 -- true {n}",
        ] {
            assert!(matches!(started_as(other), Origin::Unknown), "{other}");
        }
    }
}
