//! Services for the preparation of a load: its tools, its folder in the cache, and its notes.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use heapdrome_packages::{Cache, ChildError, Job, Lock, Shelf, last_lines};
use heapdrome_system::sha256_of_bytes;

use crate::settings::Values;
use crate::tools::Tool;
use crate::{Availability, Event, Prepared, Program, ProgramError};

/// Number of characters of the input's hash in the name of its folder.
const STAMP: usize = 12;

/// Requested load: its program, parameters and tools, and the cache for its input.
pub(crate) struct Request<'a> {
    pub program: &'a Program,
    pub values: Values<'a>,
    pub cache: &'a Cache,
    pub tools: Vec<Tool>,
    versions: Vec<String>,
}

/// Folder with the program's input, complete and locked.
pub(crate) struct Input {
    pub directory: PathBuf,
    lock: Arc<Lock>,
}

impl<'a> Request<'a> {
    /// Finds the programs that the load needs, and asks each for its version.
    pub(crate) fn new(
        program: &'a Program,
        values: Values<'a>,
        cache: &'a Cache,
    ) -> Result<Self, ProgramError> {
        let path = std::env::var_os("PATH");
        if let Availability::NotInstalled { reason, packages } =
            program.availability_in(path.as_ref())
        {
            return Err(ProgramError::NotInstalled {
                reason,
                packages: packages.join(" "),
            });
        }
        let mut tools = Vec::new();
        let mut versions = Vec::new();
        for need in &program.needs {
            let Some(tool) = need.find_in(path.as_ref()) else {
                continue;
            };
            let version = tool.version(&need.version)?;
            versions.push(tool.with_path(&version));
            tools.push(tool);
        }
        Ok(Self {
            program,
            values,
            cache,
            tools,
            versions,
        })
    }

    /// Returns the path of the required program at this index, as a word of a command.
    pub(crate) fn tool(&self, place: usize) -> String {
        let tool = self.tools.get(place);
        tool.map_or_else(String::new, |tool| tool.path.to_string_lossy().into_owned())
    }

    /// Returns the folder whose contents `stamp` determines. If the cache lacks the folder, `fill`
    /// writes a staging folder, which is then renamed. A folder in the cache is thus always
    /// complete.
    pub(crate) fn input(
        &self,
        stamp: &[&str],
        on_event: &mut dyn FnMut(Event),
        fill: &dyn Fn(&Path) -> Result<(), ProgramError>,
    ) -> Result<Input, ProgramError> {
        let name = &self.program.name;
        let hash = sha256_of_bytes(stamp.join("\0").as_bytes());
        let place = format!("{name}-{}", &hash[..STAMP]);
        on_event(Event::Locking {
            program: name.clone(),
        });
        let lock = self.cache.keep(&place)?;
        let directory = self.cache.shelf(Shelf::Workloads)?.join(&place);
        if !directory.exists() {
            on_event(Event::Writing {
                directory: directory.clone(),
            });
            let staging = lock.staging()?;
            let folder = staging.path().join("input");
            std::fs::create_dir(&folder).map_err(write_error(&folder))?;
            fill(&folder)?;
            lock.place(&folder, &directory)?;
        }
        Ok(Input { directory, lock })
    }

    /// Returns the path and version of the tool at this index as text for stamps, because a
    /// different version may generate a different input.
    pub(crate) fn version(&self, place: usize) -> &str {
        self.versions.get(place).map_or("", String::as_str)
    }

    /// Runs a program that generates a part of the input. `adjust` sets its arguments, folder and
    /// variables.
    pub(crate) fn generate(
        &self,
        program: &OsStr,
        adjust: &dyn Fn(&mut std::process::Command),
    ) -> Result<(), ProgramError> {
        let logs = self.cache.shelf(Shelf::Logs)?;
        let log = logs.join(format!("input-{}.log", self.program.name));
        std::fs::write(&log, "").map_err(write_error(&log))?;
        let mut job = Job::new(program, &log);
        adjust(job.command());
        let failed = |error: ChildError| match error {
            ChildError::Interrupted => ProgramError::Interrupted,
            other => {
                let last = last_lines(&log, 1);
                let said = last.iter().find(|line| !line.starts_with("$ "));
                let said = said.map(|line| format!(": {line}")).unwrap_or_default();
                ProgramError::Generate {
                    program: self.program.name.clone(),
                    reason: format!("{other}{said}"),
                }
            }
        };
        job.run(self.cache.interrupt()).map_err(failed)
    }

    /// Returns a load that runs `command` in the folder of `input`, without a server, metrics,
    /// variables or a preparation before each run.
    pub(crate) fn prepared(&self, input: Input, command: Vec<String>) -> Prepared {
        let mut notes = self.versions.clone();
        let parameters = self.values.in_words();
        if !parameters.is_empty() {
            notes.push(format!("parameters: {parameters}"));
        }
        Prepared {
            command,
            prepare: None,
            directory: input.directory,
            notes,
            environment: BTreeMap::new(),
            server: None,
            metrics: Vec::new(),
            success: vec![0],
            repeatable_output: true,
            _lock: input.lock,
        }
    }
}

/// Returns a function that converts an I/O error into an error that names the file.
pub(crate) fn write_error(path: &Path) -> impl FnOnce(std::io::Error) -> ProgramError + use<> {
    let path = path.to_owned();
    move |source| ProgramError::Write { path, source }
}

pub(crate) fn write_file(path: &Path, text: &str) -> Result<(), ProgramError> {
    std::fs::write(path, text).map_err(write_error(path))
}

/// Writes a file through a buffer, for contents that may be too large for memory.
pub(crate) fn stream_file(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>,
) -> Result<(), ProgramError> {
    let whole = || -> std::io::Result<()> {
        let mut file = BufWriter::new(File::create(path)?);
        write(&mut file)?;
        file.flush()
    };
    whole().map_err(write_error(path))
}

/// Returns owned copies of the words.
pub(crate) fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

#[cfg(test)]
mod tests;
