//! Programs that are compiled once on this machine, because they must run with its C library.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use heapdrome_conformance::{EXPECTED, Source};
use heapdrome_packages::{Cache, ChildError, Job, Shelf, last_lines};
use heapdrome_schema::Entrant;
use heapdrome_system::FileError;
use heapdrome_system::child::{self, Ended, Limits, WaitError};
use heapdrome_system::sha256_of_bytes;

use crate::build::telling_line;
use crate::{RegistryError, system_libc};

/// Programs that are compiled together.
#[derive(Debug)]
pub(crate) struct Set<'a> {
    /// Name of the set in the cache.
    pub(crate) name: &'static str,
    /// Name of the set in messages.
    pub(crate) what: &'static str,
    pub(crate) sources: &'a [&'static Source],
}

/// A compiled set.
#[derive(Debug)]
pub(crate) struct Compiled {
    cache: Cache,
    folder: PathBuf,
}

impl Compiled {
    /// Returns the path of a program of the set.
    pub(crate) fn program(&self, source: &Source) -> PathBuf {
        source.program(&self.folder)
    }

    /// Runs a command in a folder under an entrant, until the command ends or exceeds a limit. The
    /// environment variable [`EXPECTED`] contains the path of the library that must serve `malloc`,
    /// if that path is known.
    ///
    /// # Errors
    /// When the command cannot be started or waited for, or the user interrupts.
    pub(crate) fn run(
        &self,
        command: &mut Command,
        entrant: &Entrant,
        folder: &Path,
        limits: Limits,
    ) -> Result<Ended, RegistryError> {
        let program = Path::new(command.get_program()).to_owned();
        child::in_own_group(command.current_dir(folder));
        command.env_remove("LD_PRELOAD").envs(entrant.environment());
        let expected = entrant.library.clone().or_else(system_libc);
        command.envs(expected.map(|library| (EXPECTED, library)));
        let mut child = command.spawn().map_err(FileError::of("start", &program))?;
        child::wait(&mut child, limits, self.cache.interrupt()).map_err(|error| match error {
            WaitError::Interrupted => RegistryError::Interrupted {
                name: entrant.name.clone(),
            },
            WaitError::Io(source) => FileError::of("wait for", &program)(source).into(),
        })
    }
}

/// Interval between two checks of a running program. The interval is short, because the program may
/// exhaust memory quickly.
pub(crate) const PAUSE: Duration = Duration::from_millis(2);

impl Set<'_> {
    /// Compiles the programs into the cache, unless the cache already contains them.
    ///
    /// # Errors
    /// When a compiler is missing or fails, the cache cannot be written, or the user interrupts.
    pub(crate) fn compiled(&self, cache: &Cache) -> Result<Compiled, RegistryError> {
        let files = self.sources.iter().flat_map(|source| source.files());
        let texts: String = files.map(|(_, text)| text).collect();
        let key = &sha256_of_bytes(texts.as_bytes())[..10];
        let folder = cache.shelf(Shelf::Checks)?.join(key);
        if !folder.is_dir() {
            self.compile(cache, &folder)?;
        }
        Ok(Compiled {
            cache: cache.clone(),
            folder,
        })
    }

    fn compile(&self, cache: &Cache, folder: &Path) -> Result<(), RegistryError> {
        let lock = cache.lock(self.name)?;
        if folder.is_dir() {
            return Ok(());
        }
        let staging = lock.staging()?;
        let log = cache
            .shelf(Shelf::Logs)?
            .join(format!("build-{}.log", self.name));
        // The error message of this attempt must not quote an earlier attempt's log.
        let _ = std::fs::remove_file(&log);
        for source in self.sources {
            self.compile_one(source, staging.path(), &log, cache)?;
        }
        // The folder is renamed, so dropping the staging folder must not delete it.
        lock.place(&staging.keep(), folder)?;
        Ok(())
    }

    fn compile_one(
        &self,
        source: &Source,
        folder: &Path,
        log: &Path,
        cache: &Cache,
    ) -> Result<(), RegistryError> {
        let compiler = source
            .compiler(folder)
            .map_err(FileError::of("write to", folder))?;
        let name = self.what.to_owned();
        let ended = Job::of(compiler, log).run(cache.interrupt());
        ended.map_err(|error| match error {
            ChildError::Interrupted => RegistryError::Interrupted { name },
            ChildError::Start { .. } => RegistryError::NeedsPackage {
                name,
                apt: source.package().to_owned(),
            },
            error => RegistryError::Build {
                name,
                reason: error.to_string(),
                last: telling_line(&last_lines(log, 60)),
                log: log.to_owned(),
            },
        })
    }
}
