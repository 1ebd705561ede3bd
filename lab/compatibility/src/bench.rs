//! Runs one program under one allocator, watched.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use heapdrome_schema::{Coverage, Ending, Entrant, Proof, Role};
use heapdrome_witness::{Request, Witness, WitnessError};

use crate::Program;
use crate::program::PATH;

/// The allocators, by the names of their libraries without `lib` and `.so`.
pub const ALLOCATORS: [&str; 3] = ["elfmalloc", "elfmalloc-l", "elfmalloc-hardened"];

/// The last characters of standard error that are shown where a program fails.
const TAIL: usize = 2000;

/// Ends a script where a command fails, and names the command.
const BEFORE: &str = r#"set -Eeuo pipefail; trap 'echo "stopped at: $BASH_COMMAND" >&2' ERR"#;

/// As in a terminal, whatever a background shell has made of them: programs that test signals need
/// them.
const SIGNALS: &str = "--default-signal=INT,HUP,QUIT,TERM,PIPE";

/// What came of a run.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The program did what it should, on the allocator.
    Passed {
        /// What the script says it did.
        did: String,
        /// What the witness saw, in words.
        proof: String,
    },
    /// It did, but not on the allocator: nothing was tested.
    Untested(String),
    /// It did not.
    Failed(String),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed { did, proof } => write!(f, "passed: {did}; {proof}"),
            Self::Untested(why) => write!(f, "untested: {why}"),
            Self::Failed(why) => write!(f, "failed: {why}"),
        }
    }
}

/// The libraries in a folder of their own, and a witness.
#[derive(Debug)]
pub struct Bench {
    folder: tempfile::TempDir,
    witness: Witness,
}

impl Bench {
    /// Writes the libraries.
    ///
    /// # Errors
    ///
    /// If that is not possible, or no folder suits the witness.
    pub fn new() -> io::Result<Self> {
        let folder = open_folder("heapdrome-libraries-")?;
        for library in heapdrome_libraries::LIBRARIES {
            let path = folder.path().join(library.file);
            std::fs::write(&path, library.bytes)?;
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755))?;
        }
        let witness = Witness::new(folder.path()).map_err(io::Error::other)?;
        Ok(Self { folder, witness })
    }

    /// Where the library of an allocator is.
    #[must_use]
    pub fn library(&self, allocator: &str) -> PathBuf {
        self.folder.path().join(format!("lib{allocator}.so"))
    }

    /// Runs a program under an allocator of [`ALLOCATORS`].
    ///
    /// # Errors
    ///
    /// If there is no folder for it, or its processes cannot be followed.
    pub fn run(&self, program: &Program, allocator: &str) -> io::Result<Outcome> {
        let folder = open_folder("heapdrome-program-")?;
        let request = self.request(program, allocator, folder.path());
        let watched = self.witness.start(&request).and_then(|run| run.finish());
        let report = watched.map_err(|error: WitnessError| io::Error::other(error))?;
        let read = |path: Option<PathBuf>| {
            let bytes = path.and_then(|path| std::fs::read(path).ok());
            String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
        };
        if report.ending != Ending::Exited(0) {
            let said = read(request.stderr);
            let skipped = said.chars().count().saturating_sub(TAIL);
            let tail: String = said.trim_end().chars().skip(skipped).collect();
            return Ok(Outcome::Failed(format!("{}: {tail}", report.ending)));
        }
        let did = read(request.stdout);
        let did = did.lines().last().unwrap_or_default().to_owned();
        Ok(judge(&report.proof, did))
    }

    fn request(&self, program: &Program, allocator: &str, folder: &Path) -> Request {
        let library = self.library(allocator);
        let entrant = Entrant {
            name: allocator.to_owned(),
            role: Role::Rival,
            library: Some(library.clone()),
            preload: vec![library],
            ..Entrant::default()
        };
        let home = folder.as_os_str().to_owned();
        let environment: [(&str, OsString); 5] = [
            ("PATH", PATH.into()),
            ("HOME", home.clone()),
            ("TMPDIR", home),
            ("LC_ALL", "C.UTF-8".into()),
            ("PYTHONMALLOC", "malloc".into()),
        ];
        let script = format!("{BEFORE}\n{}", program.script);
        Request {
            command: ["/usr/bin/env", SIGNALS, "/bin/bash", "-c", &script]
                .map(str::to_owned)
                .to_vec(),
            environment: environment
                .into_iter()
                .map(|(name, value)| (name.into(), value))
                .collect(),
            entrant,
            directory: Some(folder.to_owned()),
            stdin: None,
            stdout: Some(folder.join("standard output")),
            stderr: Some(folder.join("standard error")),
            timeout: Some(Duration::from_secs(program.seconds)),
            interrupt: Arc::default(),
        }
    }
}

/// A temporary folder that other users may enter: some programs do not run as root.
fn open_folder(prefix: &str) -> io::Result<tempfile::TempDir> {
    let folder = tempfile::Builder::new().prefix(prefix).tempdir()?;
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o777))?;
    Ok(folder)
}

/// Whether what passed was served.
fn judge(proof: &Proof, did: String) -> Outcome {
    if proof.coverage == Coverage::TooLittle || proof.served_processes == 0 {
        let unserved = proof.unserved.iter();
        let unserved: Vec<String> = unserved
            .map(|one| format!("{} ({:?})", one.program, one.reason))
            .collect();
        return Outcome::Untested(format!("not served were {}", unserved.join(", ")));
    }
    Outcome::Passed {
        did,
        proof: format!(
            "{} of {} processes served, {} calls",
            proof.served_processes, proof.processes, proof.calls
        ),
    }
}
