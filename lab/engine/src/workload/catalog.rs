//! The catalog workload: its data in the cache, and its command.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use heapdrome_catalog_load::{Settings, data_folder_name, data_is_complete, expected_peak};
use heapdrome_packages::{Lock, Shelf};
use heapdrome_system::child::{self, Ended, Limits, WaitError};

use super::companion::Companion;
use crate::engine::Engine;
use crate::event::Event;
use crate::failure::Failure;

/// Data of a race of the catalog workload. While this value lives, the data are locked against
/// changes and removal.
pub struct Data {
    folder: PathBuf,
    program: PathBuf,
    _lock: Arc<Lock>,
}

/// Prepares the data, which are generated once and then reused.
///
/// # Errors
/// When the companion is missing, the data cannot be locked or generated, or the user interrupts.
pub fn data(settings: &Settings, engine: &Engine) -> Result<Data, Failure> {
    let program = Companion::Catalog.find()?;
    let name = data_folder_name(settings);
    engine.tell(Event::Locking("the data of the catalog workload"));
    let cache = &engine.folders.cache;
    let locked = cache.keep(&name);
    engine.check()?;
    let lock = locked.map_err(Failure::machine)?;
    let folder = cache
        .shelf(Shelf::Workloads)
        .map_err(Failure::machine)?
        .join(&name);
    if !data_is_complete(&folder, settings) {
        let staging = lock.staging().map_err(Failure::machine)?;
        let fresh = staging.path().join("data");
        generate(&program, &fresh, settings, engine)?;
        lock.place(&fresh, &folder).map_err(Failure::machine)?;
    }
    Ok(Data {
        folder,
        program,
        _lock: lock,
    })
}

impl Data {
    /// Returns the command of the workload, and the number of its words that identify the program.
    pub fn command(&self, settings: &Settings) -> (Vec<String>, usize) {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let mut command = vec![text(&self.program), "test".to_owned(), text(&self.folder)];
        let program_words = command.len();
        let options = [
            ("-n", u64::from(settings.n)),
            ("--parallel", u64::from(settings.parallel)),
            ("--threads", u64::from(settings.threads)),
            ("--seed", settings.seed),
        ];
        for (option, value) in options {
            command.extend([option.to_owned(), value.to_string()]);
        }
        (command, program_words)
    }
}

fn generate(
    program: &Path,
    folder: &Path,
    settings: &Settings,
    engine: &Engine,
) -> Result<(), Failure> {
    let started = Instant::now();
    engine.tell(Event::Generating {
        sets: settings.n,
        size: settings.size,
        peak: expected_peak(settings),
    });
    let mut command = Command::new(program);
    command.arg("gen-data").arg(folder);
    command.args(["-n", &settings.n.to_string()]);
    command.args(["--size", &settings.size.to_string()]);
    command.args(["--seed", &settings.seed.to_string()]);
    command.env_remove("LD_PRELOAD").stdout(Stdio::null());
    child::in_own_group(&mut command);
    let failed = |error| Failure::Machine(format!("cannot run {}: {error}", program.display()));
    let mut running = command.spawn().map_err(failed)?;
    // A killed generator leaves files only in the staging folder, which the caller removes.
    let status = match child::wait(&mut running, Limits::NONE, engine.folders.cache.interrupt()) {
        Ok(Ended::Itself(status)) => status,
        Ok(Ended::OverLimit) | Err(WaitError::Interrupted) => return Err(Failure::Interrupted),
        Err(WaitError::Io(error)) => return Err(failed(error)),
    };
    if !status.success() {
        return Err(Failure::Machine(format!(
            "the data of the catalog workload cannot be generated ({status}); the line above says why"
        )));
    }
    engine.tell(Event::Generated(started.elapsed()));
    Ok(())
}
