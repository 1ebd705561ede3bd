//! `heapdrome suite misuse`: what each allocator does about each kind of misuse; and the same for the
//! allocators of another suite that has a target on it.

use std::collections::BTreeSet;

use heapdrome_catalogue::{Catalogue, Misuses};
use heapdrome_record::{Absent, Collection, Entrant, MisuseRun};
use heapdrome_suites::{Kind, Race, Suite, kinds, misuse_tables};

use super::running::Session;
use crate::allocators::{Names, failure};
use crate::arguments::SuiteArguments;
use crate::failure::Failure;
use crate::folders::Folders;
use crate::{interrupt, output};

/// Commits every kind of misuse under every allocator, and prints what came of it.
///
/// # Errors
/// When an option makes no sense here, a program cannot be compiled or run, or an allocator that was
/// asked for by name cannot be had. An allocator under which nothing could be tried is told, and
/// fails the suite after the report.
pub fn misuse(arguments: &SuiteArguments) -> Result<(), Failure> {
    refuse(arguments)?;
    let kinds = kinds(&arguments.only).map_err(Failure::usage)?;
    let interrupt = interrupt::flag()?;
    let folders = Folders::find()?.interrupted_by(&interrupt);
    let catalogue = Catalogue::load(&folders.cache, &folders.config).map_err(Failure::usage)?;
    let names = Names::new(&catalogue);
    let mut collection = super::empty(&arguments.name, arguments.scale());
    collection.machine = heapdrome_machine::describe();
    let programs = Misuses::prepare(&folders.cache).map_err(failure)?;
    for name in chosen(&names, arguments)? {
        match names.ready(&name) {
            Ok(entrant) => match try_one(&programs, &entrant, &kinds)? {
                Tried::Runs(runs) => collection.misuse.extend(runs),
                Tried::Unfit(why) => leave_out(&name, why, &mut collection),
            },
            Err(Failure::Interrupted) => return Err(Failure::Interrupted),
            Err(error) if names.asked_by_name(&arguments.allocators, &name) => return Err(error),
            Err(error) => leave_out(&name, error.to_string(), &mut collection),
        }
    }
    collection.tables = misuse_tables(&collection.misuse, Misuses::TIME, Misuses::MEMORY);
    let redaction = folders.redaction();
    output::publish_collection(&collection, &arguments.output, Some(&redaction))?;
    match collection.misuse.is_empty() {
        true => Err(Failure::Entrant("nothing could be tried".to_owned())),
        false => Ok(()),
    }
}

/// Commits every kind of misuse under those allocators of `races` that a target of `suites` speaks of,
/// unless that was done before. What cannot be tried is told and remarked on: it leaves the target
/// open.
///
/// # Errors
/// When someone interrupts.
pub fn beside_races(
    session: &mut Session<'_>,
    races: &[Race],
    folders: &Folders,
) -> Result<(), Failure> {
    let racing: BTreeSet<&String> = races
        .iter()
        .flat_map(|race| race.allocators.iter().chain([&race.baseline]))
        .collect();
    let mut names: BTreeSet<String> = session.suites().iter().flat_map(Suite::misused).collect();
    let done = |name: &String| {
        let mut runs = session.collection.misuse.iter();
        runs.any(|run| run.allocator == *name)
    };
    names.retain(|name| racing.contains(name) && !done(name));
    if names.is_empty() {
        return Ok(());
    }
    let catalogue = Catalogue::load(&folders.cache, &folders.config).map_err(Failure::usage)?;
    let known = Names::new(&catalogue);
    let kinds = kinds(&[]).map_err(Failure::usage)?;
    for name in names {
        let tried = Misuses::prepare(&folders.cache)
            .map_err(failure)
            .and_then(|programs| try_one(&programs, &known.ready(&name)?, &kinds));
        match tried {
            Ok(Tried::Runs(runs)) => session.collection.misuse.extend(runs),
            Ok(Tried::Unfit(why)) => session.untried(&name, &why),
            Err(Failure::Interrupted) => return Err(session.interrupted()),
            Err(error) => session.untried(&name, &error.to_string()),
        }
    }
    Ok(())
}

/// What came of trying to misuse an allocator.
enum Tried {
    /// A run for each kind.
    Runs(Vec<MisuseRun>),
    /// Nothing can be said, and why.
    Unfit(String),
}

/// Commits every kind under one allocator.
fn try_one(programs: &Misuses, entrant: &Entrant, kinds: &[Kind]) -> Result<Tried, Failure> {
    output::tell(format_args!("misusing {}", entrant.name));
    if let Some(why) = programs.control(entrant).map_err(failure)? {
        return Ok(Tried::Unfit(why));
    }
    let run = |kind: &Kind| programs.run(entrant, kind.name).map_err(failure);
    let runs: Result<Vec<MisuseRun>, Failure> = kinds.iter().map(run).collect();
    runs.map(Tried::Runs)
}

fn leave_out(name: &str, reason: String, collection: &mut Collection) {
    output::tell(format_args!("{name} is left out: {reason}"));
    collection.absent.push(Absent {
        name: name.to_owned(),
        reason,
    });
}

/// The allocators that were asked for; or those that are here, settings of others included unless it
/// is to be quick.
fn chosen(names: &Names<'_>, arguments: &SuiteArguments) -> Result<Vec<String>, Failure> {
    match (arguments.allocators.as_slice(), arguments.quick) {
        ([], true) => Ok(names.found()),
        ([], false) => Ok(names.here()),
        (asked, _) => names.expand(asked),
    }
}

/// What other suites have and this one has not.
fn refuse(arguments: &SuiteArguments) -> Result<(), Failure> {
    let given = [
        ("--published", arguments.published),
        ("--estimate", arguments.estimate),
        ("--rounds", arguments.rounds.is_some()),
        ("--resume", arguments.resume.is_some()),
        ("--seed", arguments.seed.is_some()),
        ("--csv", arguments.output.csv.is_some()),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(Failure::usage(format!(
            "suite misuse has no {option}: it runs each program once, in a minute or two"
        ))),
        None => Ok(()),
    }
}
