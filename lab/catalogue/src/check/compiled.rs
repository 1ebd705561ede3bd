//! Programs that are compiled here, once, since they must run on this machine's C library.

use std::path::{Path, PathBuf};

use heapdrome_packages::{Cache, ChildError, Job, Shelf, last_lines, sha256_of_bytes};

use crate::CatalogueError;
use crate::build::telling_line;
use crate::entry::Language;
use crate::error::file_error;

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
    pub(crate) cache: Cache,
    folder: PathBuf,
}

impl Compiled {
    /// Where a program of the set is.
    pub(crate) fn path(&self, program: &Program) -> PathBuf {
        self.folder.join(executable(program))
    }
}

impl Set {
    /// Compiles the programs into the cache, unless they are there.
    ///
    /// # Errors
    /// When a compiler is missing or the cache cannot be written to.
    pub(crate) fn compiled(&self, cache: &Cache) -> Result<Compiled, CatalogueError> {
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

    fn compile(&self, cache: &Cache, folder: &Path) -> Result<(), CatalogueError> {
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
            std::fs::write(&path, text).map_err(file_error("write", path))
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
    ) -> Result<(), CatalogueError> {
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
            ChildError::Interrupted => CatalogueError::Interrupted { name },
            ChildError::Start { .. } => CatalogueError::NeedsPackage {
                name,
                apt: apt.to_owned(),
            },
            error => CatalogueError::Build {
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
