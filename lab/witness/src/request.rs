//! What is to be proven.

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

/// A command that is to be run once under an entrant and watched.
#[derive(Clone, Debug)]
pub struct Request {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The complete environment of the command. The entrant's settings are laid over it; it need
    /// not hold them. The witness sets `LD_PRELOAD` to its own library, what the entrant preloads,
    /// and what else `LD_PRELOAD` names here.
    pub environment: BTreeMap<OsString, OsString>,
    /// Who is to serve malloc.
    pub entrant: Entrant,
    /// The folder in which the command runs; `None` for the current one.
    pub directory: Option<PathBuf>,
    /// The file that the command reads as standard input; `None` for `/dev/null`.
    pub stdin: Option<PathBuf>,
    /// The file that receives standard output; `None` for `/dev/null`.
    pub stdout: Option<PathBuf>,
    /// The file that receives standard error; `None` for `/dev/null`.
    pub stderr: Option<PathBuf>,
    /// How long the command may take before the whole tree is killed.
    pub timeout: Option<Duration>,
    /// Raised by a handler of Ctrl-C: the whole tree is killed.
    pub interrupt: Arc<AtomicBool>,
}

impl Request {
    /// The environment that the command gets, without `LD_PRELOAD`.
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

    /// The file that the command's first word names, looked up as the command's own shell would.
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

    /// The objects that the environment's `LD_PRELOAD` names beyond the entrant's own.
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

    /// Whether measured runs of the command find nothing in `LD_PRELOAD`, other than a counted run:
    /// a start script may choose an allocator only then.
    pub fn preloads_nothing(&self) -> bool {
        self.entrant.preload.is_empty() && self.asked_preload().is_empty()
    }

    /// The value of `LD_PRELOAD`: what the witness needs, then what else is asked for; `None` where
    /// that is nothing.
    pub(crate) fn preload(&self, library: Option<&Path>) -> Result<Option<OsString>, WitnessError> {
        let needed = self.needed_preload(library)?;
        Ok(list([needed].into_iter().chain(self.asked_preload())))
    }

    /// What `LD_PRELOAD` must keep naming: the counting library of a counted run, then what the
    /// entrant names.
    pub(crate) fn needed_preload(&self, library: Option<&Path>) -> Result<OsString, WitnessError> {
        let unspeakable = self.entrant.preload.iter().find(|path| !speakable(path));
        if let Some(path) = unspeakable {
            return Err(WitnessError::UnspeakablePath { path: path.clone() });
        }
        let own = self.entrant.preload.iter().map(PathBuf::as_path);
        let names = library.into_iter().chain(own);
        Ok(list(names.map(|path| path.as_os_str().to_owned())).unwrap_or_default())
    }

    /// The file that a name in `LD_PRELOAD` means, where that needs no search.
    fn preload_path(&self, name: &OsStr) -> Option<PathBuf> {
        let path = Path::new(name);
        let base = self.directory.as_deref().unwrap_or(Path::new("."));
        name.as_bytes().contains(&b'/').then(|| base.join(path))
    }

    /// A hash over all that a proof of this request depends on; `known` has the hashes of files.
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
            // The loader searches for a bare name, and only warns of what it does not find.
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

/// Names as `LD_PRELOAD` holds them; `None` where there is none.
fn list(names: impl Iterator<Item = OsString>) -> Option<OsString> {
    let names = names.filter(|name| !name.is_empty());
    names.reduce(|mut list, name| {
        list.push(":");
        list.push(name);
        list
    })
}

/// What shells, terminals and logins keep for themselves: it differs from one terminal to the next,
/// and says nothing of who serves malloc. The folder of a command is part of its key anyhow.
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

/// Whether a proof holds whatever value the variable of this name has, because shells, terminals
/// and logins keep it for themselves.
pub fn is_bookkeeping(name: &OsStr) -> bool {
    let told = name.as_bytes();
    told.starts_with(b"SSH_") || BOOKKEEPING.iter().any(|known| known.as_bytes() == told)
}

fn is_program(path: &Path) -> bool {
    let mode =
        |status: std::fs::Metadata| status.is_file() && status.permissions().mode() & 0o111 != 0;
    path.metadata().is_ok_and(mode)
}
