//! Request for a proof: the command, its environment, and the entrant that should serve it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use heapdrome_schema::{Entrant, merged_setting};
use sha2::{Digest, Sha256};

use crate::WitnessError;
use crate::contents::Contents;
use crate::home::{LIBRARY, speakable};

/// Command that the witness runs once under an entrant.
#[derive(Clone, Debug)]
pub struct Request {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The complete environment of the command. The entrant's settings override it, so it need not
    /// contain them; glibc's tunables are merged. The witness sets `LD_PRELOAD` to its own library,
    /// the entrant's libraries, and the libraries that `LD_PRELOAD` names here.
    pub environment: BTreeMap<OsString, OsString>,
    /// The entrant that should serve malloc.
    pub entrant: Entrant,
    /// The folder in which the command runs; `None` for the current one.
    pub directory: Option<PathBuf>,
    /// The file that the command reads as standard input; `None` for `/dev/null`.
    pub stdin: Option<PathBuf>,
    /// The file that receives standard output; `None` for `/dev/null`.
    pub stdout: Option<PathBuf>,
    /// The file that receives standard error; `None` for `/dev/null`.
    pub stderr: Option<PathBuf>,
    /// Run time after which the whole tree is killed; `None` for no limit.
    pub timeout: Option<Duration>,
    /// Flag that a handler of Ctrl-C sets; the whole tree is then killed.
    pub interrupt: Arc<AtomicBool>,
}

impl Request {
    /// Creates a request for the system's allocator, for tests.
    #[cfg(test)]
    pub(crate) fn of_system(command: &[&str]) -> Self {
        Self {
            command: command.iter().map(|&word| word.to_owned()).collect(),
            environment: std::env::vars_os().collect(),
            entrant: crate::judge_tests::baseline(),
            directory: None,
            stdin: None,
            stdout: None,
            stderr: None,
            timeout: None,
            interrupt: Arc::default(),
        }
    }

    /// Returns the environment of the command, without `LD_PRELOAD`.
    pub(crate) fn complete_environment(&self) -> BTreeMap<OsString, OsString> {
        let mut environment = self.environment.clone();
        for (name, value) in &self.entrant.settings {
            let given = environment.get(OsStr::new(name)).and_then(|it| it.to_str());
            let value = merged_setting(name, value, given);
            environment.insert(name.into(), value.into());
        }
        environment.remove(OsStr::new("LD_PRELOAD"));
        environment
    }

    /// Returns the file of the command's first word. Searches the `PATH` of the command's
    /// environment, as a shell would.
    pub(crate) fn program(&self) -> Result<PathBuf, WitnessError> {
        let name = self.command.first().filter(|name| !name.is_empty());
        let name = name.ok_or(WitnessError::EmptyCommand)?;
        let base = match &self.directory {
            Some(directory) => directory.clone(),
            None => PathBuf::from("."),
        };
        let found = if name.contains('/') {
            Some(base.join(name)).filter(|path| path.exists())
        } else {
            let environment = self.complete_environment();
            let folders = environment.get(OsStr::new("PATH")).cloned();
            let folders = folders.unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
            let candidates =
                std::env::split_paths(&folders).map(|folder| base.join(folder).join(name));
            candidates.into_iter().find(|path| is_program(path))
        };
        let found = found.ok_or_else(|| WitnessError::CommandNotFound {
            program: name.clone(),
        })?;
        std::path::absolute(&found).map_err(|source| WitnessError::CannotRun {
            program: found,
            source,
        })
    }

    /// Returns the libraries that the environment's `LD_PRELOAD` names in addition to the
    /// entrant's.
    fn asked_preload(&self) -> Vec<OsString> {
        let value = self.environment.get(OsStr::new("LD_PRELOAD"));
        let bytes = value.map_or(&b""[..], |value| value.as_bytes());
        let mut asked: Vec<OsString> = Vec::new();
        for name in bytes.split(|byte| b": ".contains(byte)) {
            let name = OsStr::from_bytes(name);
            let own = self.entrant.preload.iter().any(|path| path == name);
            if !name.is_empty() && !own && !asked.iter().any(|known| known == name) {
                asked.push(name.to_owned());
            }
        }
        asked
    }

    /// Returns whether measured runs of the command have no `LD_PRELOAD`, unlike a counted run. In
    /// such runs, a start script that checks `LD_PRELOAD` may choose another allocator.
    pub fn preloads_nothing(&self) -> bool {
        self.entrant.preload.is_empty() && self.asked_preload().is_empty()
    }

    /// Returns the value of `LD_PRELOAD`: the required libraries, followed by the user's; `None` if
    /// there are none.
    pub(crate) fn preload(&self, library: Option<&Path>) -> Result<Option<OsString>, WitnessError> {
        let needed = self.needed_preload(library)?;
        Ok(list([needed].into_iter().chain(self.asked_preload())))
    }

    /// Returns the libraries that `LD_PRELOAD` must keep: the counting library (`library`) of a
    /// counted run, followed by the entrant's.
    pub(crate) fn needed_preload(&self, library: Option<&Path>) -> Result<OsString, WitnessError> {
        let unspeakable = self.entrant.preload.iter().find(|path| !speakable(path));
        if let Some(path) = unspeakable {
            return Err(WitnessError::UnspeakablePath { path: path.clone() });
        }
        let own = self.entrant.preload.iter().map(PathBuf::as_path);
        let names = library.into_iter().chain(own);
        Ok(list(names.map(|path| path.as_os_str().to_owned())).unwrap_or_default())
    }

    /// Returns the path of a name in `LD_PRELOAD`; `None` if the loader searches for the name.
    fn preload_path(&self, name: &OsStr) -> Option<PathBuf> {
        let path = Path::new(name);
        let base = self.directory.as_deref().unwrap_or(Path::new("."));
        name.as_bytes().contains(&b'/').then(|| base.join(path))
    }

    /// Returns a hash of the inputs on which a proof of this request depends. `known` caches the
    /// hashes of files.
    pub(crate) fn key(&self, known: &Contents) -> Result<String, WitnessError> {
        let mut hash = Sha256::new();
        let mut part = |label: &str, bytes: &[u8]| {
            hash.update((label.len() as u64).to_le_bytes());
            hash.update(label);
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        let program = self.program()?;
        part("witness", LIBRARY);
        part("program", program.as_os_str().as_bytes());
        part("program's contents", &known.of(&program, "program")?);
        for argument in &self.command {
            part("argument", argument.as_bytes());
        }
        for path in self.entrant.preload.iter().chain(&self.entrant.library) {
            part("library", path.as_os_str().as_bytes());
            part("library's contents", &known.of(path, "LD_PRELOAD")?);
        }
        for name in self.asked_preload() {
            part("preload", name.as_bytes());
            // The loader searches for a bare name, and only prints a warning if it does not find
            // the library.
            if let Some(path) = self.preload_path(&name)
                && let Ok(contents) = known.of(&path, "LD_PRELOAD")
            {
                part("preload's contents", &contents);
            }
        }
        let directory = self
            .directory
            .clone()
            .map_or_else(std::env::current_dir, Ok);
        part(
            "folder",
            directory.unwrap_or_default().as_os_str().as_bytes(),
        );
        let stdin = self.stdin.as_deref().unwrap_or(Path::new("/dev/null"));
        part("input", stdin.as_os_str().as_bytes());
        let environment = self.complete_environment().into_iter();
        for (name, value) in environment.filter(|(name, _)| !is_bookkeeping(name)) {
            part("name", name.as_bytes());
            part("value", value.as_bytes());
        }
        Ok(hash
            .finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect())
    }
}

/// Joins names as `LD_PRELOAD` expects them; `None` if there are none.
fn list(names: impl Iterator<Item = OsString>) -> Option<OsString> {
    let names = names.filter(|name| !name.is_empty());
    names.reduce(|mut list, name| {
        list.push(":");
        list.push(name);
        list
    })
}

/// Names of variables that shells, terminals and logins set. The variables differ between terminals
/// and do not affect which object serves malloc. `PWD` may be ignored, because the working folder
/// itself is part of a key.
const BOOKKEEPING: [&str; 14] = [
    "_",
    "COLUMNS",
    "GPG_TTY",
    "LINES",
    "OLDPWD",
    "PWD",
    "SHLVL",
    "STY",
    "TERM_SESSION_ID",
    "TMUX",
    "TMUX_PANE",
    "WINDOW",
    "WINDOWID",
    "XDG_SESSION_ID",
];

/// Returns whether a variable cannot affect a proof, because only shells, terminals and logins use
/// it.
pub fn is_bookkeeping(name: &OsStr) -> bool {
    let told = name.as_bytes();
    told.starts_with(b"SSH_") || BOOKKEEPING.iter().any(|known| known.as_bytes() == told)
}

fn is_program(path: &Path) -> bool {
    let mode =
        |status: std::fs::Metadata| status.is_file() && status.permissions().mode() & 0o111 != 0;
    path.metadata().is_ok_and(mode)
}
