//! `heapdrome suite misuse`: what each allocator does about each kind of misuse.

use heapdrome_catalogue::{Catalogue, Misuses};
use heapdrome_record::{Absent, Collection, Entrant, Scale};
use heapdrome_suites::{Kind, kinds, misuse_tables};

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
    let mut collection = super::empty(&arguments.name, scale(arguments));
    collection.machine = heapdrome_machine::describe();
    let programs = Misuses::prepare(&folders.cache).map_err(failure)?;
    for name in chosen(&names, arguments)? {
        match names.ready(&name) {
            Ok(entrant) => try_one(&programs, &entrant, &kinds, &mut collection)?,
            Err(Failure::Interrupted) => return Err(Failure::Interrupted),
            Err(error) if names.asked_by_name(&arguments.allocators, &name) => return Err(error),
            Err(error) => leave_out(&name, error.to_string(), &mut collection),
        }
    }
    collection.tables = misuse_tables(&collection.misuse);
    let redaction = folders.redaction();
    output::publish_collection(&collection, &arguments.output, Some(&redaction))?;
    match collection.misuse.is_empty() {
        true => Err(Failure::Entrant("nothing could be tried".to_owned())),
        false => Ok(()),
    }
}

/// Commits every kind under one allocator.
fn try_one(
    programs: &Misuses,
    entrant: &Entrant,
    kinds: &[Kind],
    collection: &mut Collection,
) -> Result<(), Failure> {
    output::tell(format_args!("misusing {}", entrant.name));
    if let Some(why) = programs.control(entrant).map_err(failure)? {
        leave_out(&entrant.name, why, collection);
        return Ok(());
    }
    for kind in kinds {
        let run = programs.run(entrant, kind.name).map_err(failure)?;
        collection.misuse.push(run);
    }
    Ok(())
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

fn scale(arguments: &SuiteArguments) -> Scale {
    if arguments.quick {
        Scale::Quick
    } else {
        Scale::Usual
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
