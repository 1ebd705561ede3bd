//! Programs that are compiled here, once, since they must run on this machine's C library.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use heapdrome_packages::{Cache, ChildError, Job, Shelf, last_lines};
use heapdrome_schema::Entrant;
use heapdrome_system::FileError;
use heapdrome_system::child::{self, Ended, Limits, WaitError};
use heapdrome_system::sha256_of_bytes;

use crate::build::telling_line;
use crate::entry::Language;
use crate::{RegistryError, system_libc};

/// One program: its name, its file and its text.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) file: &'static str,
    pub(crate) text: &'static str,
    pub(crate) language: Language,
}

/// Programs that are compiled together.
#[derive(Debug)]
pub(crate) struct Set {
    /// What they are called in the cache.
    pub(crate) name: &'static str,
    /// What they are called in messages.
    pub(crate) what: &'static str,
    /// The files that they include, with their texts.
    pub(crate) shared: &'static [(&'static str, &'static str)],
    pub(crate) programs: &'static [Program],
    pub(crate) optimisation: &'static str,
}

/// A set that has been compiled.
#[derive(Debug)]
pub(crate) struct Compiled {
    cache: Cache,
    folder: PathBuf,
}

impl Compiled {
    /// A command that runs a program of the set in a folder, under an entrant whose library it is
    /// told to expect.
    pub(crate) fn command(&self, program: &Program, entrant: &Entrant, folder: &Path) -> Command {
        let mut command = Command::new(self.folder.join(executable(program)));
        child::in_own_group(command.current_dir(folder));
        command.env_remove("LD_PRELOAD").envs(entrant.environment());
        let expected = entrant.library.clone().or_else(system_libc);
        command.envs(expected.map(|library| ("HEAPDROME_EXPECTED", library)));
        command
    }

    /// Runs such a command to its end, or to that of its limits.
    ///
    /// # Errors
    /// When it cannot be started or waited for, or the person asked heapdrome to stop.
    pub(crate) fn run(
        &self,
        command: &mut Command,
        name: &str,
        limits: Limits,
    ) -> Result<Ended, RegistryError> {
        let program = Path::new(command.get_program()).to_owned();
        let mut child = command.spawn().map_err(FileError::of("start", &program))?;
        child::wait(&mut child, limits, self.cache.interrupt()).map_err(|error| match error {
            WaitError::Interrupted => RegistryError::Interrupted {
                name: name.to_owned(),
            },
            WaitError::Io(source) => FileError::of("wait for", &program)(source).into(),
        })
    }
}

/// The time between two looks at a program that may take all memory in a moment.
pub(crate) const PAUSE: Duration = Duration::from_millis(2);

impl Set {
    /// Compiles the programs into the cache, unless they are there.
    ///
    /// # Errors
    /// When a compiler is missing or the cache cannot be written to.
    pub(crate) fn compiled(&self, cache: &Cache) -> Result<Compiled, RegistryError> {
        let texts = self.shared.iter().map(|(_, text)| *text);
        let texts: String = texts
            .chain(self.programs.iter().map(|program| program.text))
            .collect();
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
        // A log of an earlier attempt would be quoted in the message about this one.
        let _ = std::fs::remove_file(&log);
        let write = |name: &str, text: &str| {
            let path = staging.path().join(name);
            std::fs::write(&path, text).map_err(FileError::of("write", path))
        };
        for (name, text) in self.shared {
            write(name, text)?;
        }
        for program in self.programs {
            write(program.file, program.text)?;
            self.compile_one(program, staging.path(), &log, cache)?;
        }
        // The folder that is renamed must outlive the owner of the staging folder.
        lock.place(&staging.keep(), folder)?;
        Ok(())
    }

    fn compile_one(
        &self,
        program: &Program,
        folder: &Path,
        log: &Path,
        cache: &Cache,
    ) -> Result<(), RegistryError> {
        let (compiler, standard, apt) = match program.language {
            Language::C => ("cc", "-std=gnu11", "gcc"),
            Language::Cpp => ("c++", "-std=c++17", "g++"),
        };
        let mut job = Job::new(compiler, log);
        let command = job.command();
        command.current_dir(folder).args([
            standard,
            self.optimisation,
            "-g",
            "-fno-builtin",
            "-pthread",
        ]);
        command.args([program.file, "-o", &executable(program), "-ldl"]);
        let name = self.what.to_owned();
        job.run(cache.interrupt()).map_err(|error| match error {
            ChildError::Interrupted => RegistryError::Interrupted { name },
            ChildError::Start { .. } => RegistryError::NeedsPackage {
                name,
                apt: apt.to_owned(),
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

fn executable(program: &Program) -> String {
    program.file.replace('.', "-")
}
