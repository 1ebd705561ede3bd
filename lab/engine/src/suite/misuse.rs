//! The suite `misuse`, which tests the response of each allocator to each kind of misuse. Other
//! suites run these tests for the allocators that have a target or a claim on misuse.

use std::collections::BTreeSet;

use heapdrome_registry::Misuses;
use heapdrome_schema::{Absent, Collection, Entrant, MisuseRun, Purpose, Scale};
use heapdrome_suites::{Kind, Suite, kinds, misuse_tables};

use super::SuiteRequest;
use super::races::Races;
use crate::allocators::{Names, failure};
use crate::engine::Engine;
use crate::event::Event;
use crate::failure::Failure;
use crate::kept::{Kept, started};

/// Tests every chosen allocator with every chosen kind of misuse, and returns the outcomes.
///
/// # Errors
/// When a kind of misuse is unknown, a program cannot be compiled or run, or an allocator that was
/// requested by name is unavailable. Also when the user interrupts. Any other allocator that cannot
/// be tested is only reported.
pub fn misuse(request: &SuiteRequest, engine: &Engine) -> Result<Collection, Failure> {
    let kinds = kinds(&request.only).map_err(Failure::usage)?;
    let registry = engine.registry()?;
    let names = Names::new(&registry, engine);
    let purpose = Purpose::Misuse {
        scale: request.scale,
        runs: Vec::new(),
    };
    let mut collection = started(&request.name, purpose, request.asked.clone());
    collection.machine = heapdrome_machine::describe();
    let programs = Misuses::prepare(&engine.folders.cache).map_err(failure)?;
    for name in chosen(&names, request)? {
        match names.ready(&name) {
            Ok(entrant) => match try_one(&programs, &entrant, &kinds, engine)? {
                Tried::Runs(runs) => add(runs, &mut collection),
                Tried::Unfit(why) => leave_out(&name, why, &mut collection, engine),
            },
            Err(Failure::Interrupted) => return Err(Failure::Interrupted),
            Err(error) if names.asked_by_name(&request.allocators, &name) => return Err(error),
            Err(error) => leave_out(&name, error.to_string(), &mut collection, engine),
        }
    }
    collection.tables = misuse_tables(collection.misuse(), Misuses::TIME, Misuses::MEMORY);
    Ok(collection)
}

/// Tests the raced allocators that have a target or a claim on misuse, except those already tested.
/// A test that cannot be run is reported, adds a remark, and leaves the target or claim open.
///
/// # Errors
/// When the user interrupts.
pub fn beside_races(work: &Races, kept: &mut Kept<'_>) -> Result<(), Failure> {
    let engine = kept.engine();
    let races = work.races.iter();
    let racing: BTreeSet<&String> = races
        .flat_map(|race| race.allocators.iter().chain([&race.baseline]))
        .collect();
    let mut names: BTreeSet<String> = work.suites.iter().flat_map(Suite::misused).collect();
    let done = |name: &String| {
        let mut runs = kept.collection.misuse().iter();
        runs.any(|run| run.allocator == *name)
    };
    names.retain(|name| racing.contains(name) && !done(name));
    if names.is_empty() {
        return Ok(());
    }
    let registry = engine.registry()?;
    let known = Names::new(&registry, engine);
    let kinds = kinds(&[]).map_err(Failure::usage)?;
    for name in names {
        let tried = Misuses::prepare(&engine.folders.cache)
            .map_err(failure)
            .and_then(|programs| try_one(&programs, &known.ready(&name)?, &kinds, engine));
        match tried {
            Ok(Tried::Runs(runs)) => add(runs, &mut kept.collection),
            Ok(Tried::Unfit(why)) => kept.remark_on(&untried(&name), &why),
            Err(Failure::Interrupted) => return Err(Failure::Interrupted),
            Err(error) => kept.remark_on(&untried(&name), &error.to_string()),
        }
    }
    Ok(())
}

fn add(runs: Vec<MisuseRun>, collection: &mut Collection) {
    let kept = collection.misuse_mut().into_iter();
    kept.for_each(|kept| kept.extend_from_slice(&runs));
}

/// Returns the subject of a remark on an allocator that could not be tested.
fn untried(name: &str) -> String {
    format!("misuse was not tried under {name}")
}

/// Result of testing an allocator.
enum Tried {
    /// One run for each tested kind of misuse.
    Runs(Vec<MisuseRun>),
    /// The allocator cannot be tested. The text is the reason.
    Unfit(String),
}

/// Tests one allocator with each of `kinds`.
fn try_one(
    programs: &Misuses,
    entrant: &Entrant,
    kinds: &[Kind],
    engine: &Engine,
) -> Result<Tried, Failure> {
    engine.tell(Event::Misusing(&entrant.name));
    if let Some(why) = programs.control(entrant).map_err(failure)? {
        return Ok(Tried::Unfit(why));
    }
    let run = |kind: &Kind| programs.run(entrant, kind.name).map_err(failure);
    let runs: Result<Vec<MisuseRun>, Failure> = kinds.iter().map(run).collect();
    runs.map(Tried::Runs)
}

fn leave_out(name: &str, reason: String, collection: &mut Collection, engine: &Engine) {
    engine.tell(Event::NotMisused {
        allocator: name,
        why: &reason,
    });
    collection.absent.push(Absent {
        name: name.to_owned(),
        reason,
    });
}

/// Returns the requested allocators. Without a request, returns the installed ones; at the quick
/// scale, leaves out those that only change the settings of another entry.
fn chosen(names: &Names<'_>, request: &SuiteRequest) -> Result<Vec<String>, Failure> {
    match (request.allocators.as_slice(), request.scale) {
        ([], Scale::Quick) => Ok(names.found()),
        ([], _) => Ok(names.here()),
        (asked, _) => names.expand(asked),
    }
}
