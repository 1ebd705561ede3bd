//! `heapdrome trace library`: lists or records traces of well-known programs.

use std::path::Path;

use heapdrome_engine::Engine;
use heapdrome_library::{
    Event, LibraryError, Manifest, Recipe, Request, Size, find, find_carried, recipes, record,
};
use heapdrome_report::count;
use heapdrome_schema::{Bytes, grouped};

use super::recorded_suite;
use crate::arguments::library::LibraryArguments;
use crate::destinations::refuse_overwriting;
use crate::failure::Failure;
use crate::{output, progress};

/// Maximum width of the list.
const WIDTH: usize = 100;

/// Prints the library's traces, or records them into a folder.
///
/// # Errors
/// If a name is unknown, a file cannot be written or, without `--force`, already exists, nothing
/// could be recorded, or the user interrupts.
pub fn library(arguments: &LibraryArguments) -> Result<(), Failure> {
    match &arguments.output {
        Some(folder) => record_all(arguments, folder),
        None => output::print(list().as_bytes()),
    }
}

fn list() -> String {
    let row = |recipe: &Recipe| {
        let carried = find_carried(&recipe.name).map_or_else(
            || "-".to_owned(),
            |one| {
                format!(
                    "{}, {}",
                    grouped(one.entry.operations),
                    Bytes(one.entry.bytes)
                )
            },
        );
        [
            recipe.name.clone(),
            format!("{} ({carried})", recipe.summary),
        ]
    };
    let rows: Vec<_> = recipes().iter().map(row).collect();
    let heads = [
        "name",
        "program (operations and bytes of the built-in trace)",
    ];
    heapdrome_report::listing(heads, &rows, WIDTH)
        + "\nReplay a built-in trace:  heapdrome replay library:NAME\n\
           Race on all of them:      heapdrome suite traces --quick\n\
           Record them here:         heapdrome trace library -o FOLDER [--full]\n"
}

fn record_all(arguments: &LibraryArguments, folder: &Path) -> Result<(), Failure> {
    let wanted = wanted(&arguments.names)?;
    std::fs::create_dir_all(folder)
        .map_err(|error| Failure::Usage(format!("{}: {error}", folder.display())))?;
    for recipe in &wanted {
        refuse_overwriting(&folder.join(recipe.file()), arguments.force)?;
    }
    recorded_suite::refuse_foreign(folder, arguments.force)?;
    let mut manifest = Manifest::read(folder).map_err(failure)?;
    let engine = progress::engine()?;
    let heapdrome = std::env::current_exe().map_err(Failure::machine)?;
    let size = match arguments.full {
        true => Size::Full,
        false => Size::Small,
    };
    let (mut recorded, mut left_out) = (0, 0);
    for recipe in wanted {
        let request = Request {
            recipe,
            size,
            heapdrome: &heapdrome,
            version: env!("CARGO_PKG_VERSION"),
            cache: &engine.folders.cache,
            folder,
            force: arguments.force,
        };
        match one(&request, &engine) {
            Ok(entry) => {
                manifest.add(entry);
                manifest.write(folder).map_err(failure)?;
                recorded_suite::write(folder, &manifest)?;
                recorded += 1;
            }
            Err(LibraryError::Interrupted) => return Err(Failure::Interrupted),
            Err(error) => {
                output::tell(format_args!("{} is left out: {error}", recipe.name));
                left_out += 1;
            }
        }
    }
    if recorded == 0 {
        return Err(Failure::Machine("no trace was recorded".to_owned()));
    }
    output::tell(format_args!(
        "recorded {} in {}; {left_out} left out; race on them: heapdrome suite {}",
        count(recorded, "trace"),
        folder.display(),
        folder.join(recorded_suite::FILE).display()
    ));
    Ok(())
}

fn one(request: &Request<'_>, engine: &Engine) -> Result<heapdrome_library::Entry, LibraryError> {
    let name = &request.recipe.name;
    let entry = record(request, &mut |event| match event {
        Event::Preparing(event) => output::tell(format_args!("{name}: {event}")),
        Event::Recording { program } => output::tell(format_args!("{name}: recording {program}")),
    });
    // Check for an interrupt first: it kills the recorded program, and `record` then returns
    // another error.
    let entry = match engine.check() {
        Ok(()) => entry?,
        Err(_) => return Err(LibraryError::Interrupted),
    };
    output::tell(format_args!(
        "{name}: {} in {}",
        count(entry.operations, "operation"),
        Bytes(entry.bytes)
    ));
    Ok(entry)
}

fn wanted(names: &[String]) -> Result<Vec<&'static Recipe>, Failure> {
    match names {
        [] => Ok(recipes().iter().collect()),
        names => {
            let found = names.iter().map(|name| find(name));
            found.collect::<Result<_, _>>().map_err(failure)
        }
    }
}

fn failure(error: LibraryError) -> Failure {
    match error {
        LibraryError::Interrupted => Failure::Interrupted,
        LibraryError::Unknown { .. } | LibraryError::Manifest { .. } => Failure::usage(error),
        error => Failure::machine(error),
    }
}
