//! `heapdrome allocators`: lists, describes, builds, adds, removes and checks allocators. Also
//! explains how to use the allocator that a race recommends.

mod description;

use std::path::PathBuf;

use heapdrome_engine::Engine;
use heapdrome_engine::allocators::build;
use heapdrome_registry::{CheckOutcome, CheckResult, Checks, Level, Registry, Source};
use heapdrome_report::adopt::{self, Adoption};
use heapdrome_schema::{EntrantResult, RaceResult};

use crate::arguments::{AllocatorsAction, AllocatorsArguments};
use crate::failure::Failure;
use crate::folders::Folders;
use crate::{output, progress};

use description::{described, list};
pub use heapdrome_engine::allocators::{Names, failure};

/// Runs the requested action on allocators.
///
/// # Errors
/// Returns an error if a name or a library is unusable, the list of allocators cannot be read or
/// written, a build fails, or a check finds a fault.
pub fn allocators(arguments: AllocatorsArguments) -> Result<(), Failure> {
    let engine = progress::engine()?;
    let mut registry = engine.registry()?;
    match arguments.action.unwrap_or(AllocatorsAction::List) {
        AllocatorsAction::List => list(&registry),
        AllocatorsAction::Install { names } => install(&registry, &names, &engine),
        AllocatorsAction::Add {
            name,
            path,
            environment,
        } => {
            let before = registry.find(&name).map(|entry| entry.source.clone());
            let environment = environment.into_iter().collect();
            registry.add(&name, &path, &environment).map_err(failure)?;
            let how = match before {
                Ok(Source::User(old)) => format!("{name} replaces {}", old.display()),
                _ => format!("added {name}"),
            };
            output::print(format!("{how}: race it with -a {name}\n").as_bytes())
        }
        AllocatorsAction::Remove { name } => {
            let own = matches!(
                registry.find(&name).map_err(failure)?.source,
                Source::User(_)
            );
            let path = registry.remove(&name).map_err(failure)?;
            let told = match own {
                true => format!("removed {name}; the file {} is kept\n", path.display()),
                false => format!("removed the build of {name}: {}\n", path.display()),
            };
            output::print(told.as_bytes())
        }
        AllocatorsAction::Show { name } => {
            let entry = registry.find(&name).map_err(failure)?;
            output::print(described(entry, &registry.state(entry)).as_bytes())
        }
        AllocatorsAction::Check { names, level } => check(&registry, &engine, &names, level.into()),
    }
}

fn install(registry: &Registry, names: &[String], engine: &Engine) -> Result<(), Failure> {
    let known = Names::new(registry, engine);
    let all = names.iter().any(|name| name == "all");
    let mut failed = Vec::new();
    for name in known.expand(names)? {
        match build(registry, &name, engine).map_err(failure) {
            Err(Failure::Interrupted) => return Err(Failure::Interrupted),
            // A failed build does not stop the builds of the other allocators.
            Err(error) => {
                output::tell(&error);
                failed.push(name);
            }
            Ok(()) => {}
        }
    }
    match failed.as_slice() {
        [] => output::print(b"All allocators are ready.\n"),
        names if all => Err(Failure::Entrant(format!(
            "could not build: {}",
            names.join(", ")
        ))),
        names => Err(Failure::Machine(format!(
            "could not build: {}",
            names.join(", ")
        ))),
    }
}

fn check(
    registry: &Registry,
    engine: &Engine,
    names: &[String],
    level: Level,
) -> Result<(), Failure> {
    let names = Names::new(registry, engine).expand(names)?;
    output::tell("preparing the programs that check an allocator");
    let checks = Checks::prepare(&engine.folders.cache, level).map_err(failure)?;
    let mut broken = Vec::new();
    for name in names {
        if !check_one(registry, engine, &checks, &name)? {
            broken.push(name);
        }
    }
    match broken.as_slice() {
        [] => Ok(()),
        names => Err(Failure::Entrant(format!(
            "a check failed under: {}",
            names.join(", ")
        ))),
    }
}

/// Runs the checks under one allocator, and prints each result as soon as it is known. Returns
/// whether all checks passed.
fn check_one(
    registry: &Registry,
    engine: &Engine,
    checks: &Checks,
    name: &str,
) -> Result<bool, Failure> {
    let entrant = Names::new(registry, engine).ready(name)?;
    output::print(format!("{name}\n").as_bytes())?;
    let longest = checks.names().map(str::len).max();
    let width = longest.unwrap_or_default().max(16) + 2;
    let (mut passed, mut printed) = (true, Ok(()));
    let ran = checks.run(&entrant, |result| {
        let text = format!("  {:<width$}{}\n", result.program, outcome_words(&result));
        if printed.is_ok() {
            printed = output::print(text.as_bytes());
        }
        passed &= result.outcome == CheckOutcome::Passed;
    });
    printed?;
    ran.map_err(failure)?;
    Ok(passed)
}

fn outcome_words(result: &CheckResult) -> String {
    let outcome = match &result.outcome {
        CheckOutcome::Passed => "passed".to_owned(),
        CheckOutcome::Broke(how) => format!("BROKE: {how}"),
        CheckOutcome::Hung(limit) => format!("HUNG: did not end within {} s", limit.as_secs()),
        CheckOutcome::NotServed(why) => format!("NOT SERVED: {why}"),
    };
    let outcome = match result.notes.as_slice() {
        [] => outcome,
        notes => format!("{outcome} ({})", notes.join("; ")),
    };
    match result.outcome {
        CheckOutcome::Passed | CheckOutcome::NotServed(_) => outcome,
        CheckOutcome::Broke(_) | CheckOutcome::Hung(_) => format!(
            "{outcome}\n    source: {}\n    again:  {}",
            result.source.display(),
            result.again
        ),
    }
}

/// Returns instructions for using the winner of a race. If the result is redacted, looks for the
/// libraries in this user's folders.
pub fn adoption(result: &RaceResult, winner: &EntrantResult, folders: &Folders) -> String {
    let registry = Registry::load(&folders.cache, &folders.config).ok();
    let entry = registry
        .as_ref()
        .and_then(|registry| registry.find(&winner.allocator).ok());
    let package = match entry.map(|entry| &entry.source) {
        Some(Source::System(library)) => Some(library.apt.clone()),
        _ => None,
    };
    let here = |path: &PathBuf| folders.redaction().undone(path);
    let preload: Vec<PathBuf> = winner.library.iter().map(here).collect();
    let cached = preload
        .iter()
        .all(|path| path.starts_with(folders.cache.root()));
    let adoption = Adoption {
        allocator: winner.allocator.clone(),
        preload,
        cached,
        settings: adopt::settings(result, winner),
        package,
        rust: entry.and_then(|entry| entry.adoption.rust.clone()),
        cmake: entry.and_then(|entry| entry.adoption.cmake.clone()),
        command: result.command.clone(),
    };
    adopt::text(&adoption, output::terminal().width)
}
