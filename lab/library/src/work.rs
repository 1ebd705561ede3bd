//! Recipes that are ready to run, and the preparation of those that use a program of
//! `lab/programs`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use heapdrome_packages::Cache;
use heapdrome_programs::{Availability, Prepared, find};
use tempfile::TempDir;

use crate::LibraryError;
use crate::child::{Running, shell};
use crate::recipe::{OfProgram, Size};

/// Time limit of the command that prepares a run.
const PREPARED_WITHIN: Duration = Duration::from_secs(120);

/// A recipe that is ready to run. Dropping the value removes or unlocks the recipe's files.
pub(crate) struct Work {
    /// The recorded command. If there is a server, the command of its load, which is not recorded.
    pub command: Vec<String>,
    /// Working folder of all commands.
    pub directory: PathBuf,
    /// Additional environment variables of the recorded program.
    pub environment: BTreeMap<String, String>,
    /// The server that is recorded in place of the command.
    pub server: Option<Served>,
    /// The program and its version.
    pub program: String,
    /// Files of the recipe, which are removed or unlocked when this value is dropped.
    pub _kept: Kept,
}

/// A server that is recorded.
pub(crate) struct Served {
    /// Command that becomes the server by `exec`, and stays in the foreground.
    pub serve: String,
    /// Command that succeeds as soon as the server answers.
    pub ready: String,
    /// Maximum time until the server answers.
    pub ready_within: Duration,
}

/// A resource that is kept until a recipe has run.
pub(crate) enum Kept {
    /// A folder, which is removed when this value is dropped.
    #[expect(dead_code, reason = "it is removed when it is dropped")]
    Folder(TempDir),
    /// A program's folder in the cache, which stays locked until the recipe has run.
    #[expect(dead_code, reason = "it is unlocked when it is dropped")]
    Program(Box<Prepared>),
}

/// Prepares a recipe that uses a program of `lab/programs`.
pub(crate) fn of_program(
    recipe: &OfProgram,
    size: Size,
    cache: &Cache,
    say: &mut dyn FnMut(heapdrome_programs::Event),
) -> Result<Work, LibraryError> {
    let program = find(&recipe.name).map_err(heapdrome_programs::ProgramError::from)?;
    if let Availability::NotInstalled { reason, packages } = program.availability() {
        let package = packages.join(" ");
        return Err(LibraryError::NotInstalled { reason, package });
    }
    let settings = program.settings(recipe.words(size))?;
    let prepared = program.prepare(cache, &settings, say)?;
    if let Some(line) = &prepared.prepare {
        let command = shell(line, &prepared.directory);
        Running::start("its preparation", command)?.finish(PREPARED_WITHIN, cache.interrupt())?;
    }
    Ok(Work {
        command: prepared.command.clone(),
        directory: prepared.directory.clone(),
        environment: prepared.environment.clone(),
        server: prepared.server.as_ref().map(|server| Served {
            serve: server.serve.clone(),
            ready: server.ready.clone(),
            ready_within: server.ready_within.into(),
        }),
        program: version(&prepared.notes),
        _kept: Kept::Program(Box::new(prepared)),
    })
}

/// Returns the name and version of the program in the first note of the form `PATH is VERSION`;
/// empty if no note has this form.
fn version(notes: &[String]) -> String {
    let told = notes.iter().find_map(|note| note.split_once(" is "));
    told.map_or_else(String::new, |(path, version)| {
        let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
        format!("{name}, {version}")
    })
}
