//! Prepares the run of a recipe that is a script.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tempfile::TempDir;

use crate::LibraryError;
use crate::child::{Running, shell};
use crate::error::at;
use crate::recipe::{Recipe, Script, Size};
use crate::user::User;
use crate::work::{Kept, Served, Work};

/// Time limit of each command that prepares a script.
const PREPARED_WITHIN: Duration = Duration::from_secs(120);

/// Maximum time until a script's server answers.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// Prepares a script in a new folder. The folder is inside `staging` if the user who runs heapdrome
/// also runs the program.
pub(crate) fn prepare(
    recipe: &Recipe,
    script: &Script,
    size: Size,
    staging: &Path,
    interrupt: &AtomicBool,
) -> Result<Work, LibraryError> {
    let user = User::of(script);
    let place = user.place(staging);
    let folder = TempDir::new_in(&place).map_err(at(&place))?;
    let run = |step, line: &str| {
        let running = Running::start(step, shell(line, folder.path()))?;
        running.finish(PREPARED_WITHIN, interrupt)
    };
    let version = run("asking for its version", &script.version);
    let version = version.map_err(|error| match error {
        LibraryError::Failed { reason, .. } => LibraryError::NotInstalled {
            reason,
            package: recipe.package.clone().unwrap_or_default(),
        },
        other => other,
    })?;
    for (name, text) in script.contents() {
        let path = folder.path().join(name);
        std::fs::write(&path, text).map_err(at(&path))?;
    }
    let handover = user.takes_folder();
    let prepare = script.prepare.as_ref().map(|line| user.runs(line));
    for line in handover.iter().chain(&prepare) {
        run("its preparation", line)?;
    }
    Ok(Work {
        command: ["sh", "-c", script.run(size)].map(str::to_owned).to_vec(),
        directory: folder.path().to_owned(),
        environment: BTreeMap::new(),
        server: script.server.as_ref().map(|server| Served {
            serve: user.runs(&server.serve),
            ready: server.ready.clone(),
            ready_within: READY_WITHIN,
        }),
        program: version.lines().next().unwrap_or_default().trim().to_owned(),
        _kept: Kept::Folder(folder),
    })
}
