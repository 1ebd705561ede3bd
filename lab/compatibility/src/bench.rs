//! Runs one program under one allocator, and lets the witness check which allocator served it.

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

/// Names of the allocators under which programs run: the file names of their libraries without
/// `lib` and `.so`.
pub const ALLOCATORS: [&str; 3] = ["elfmalloc", "elfmalloc-l", "elfmalloc-hardened"];

/// Maximum number of characters of standard error that are shown if a program fails.
const TAIL: usize = 2000;

/// Prelude that ends a script at the first failing command, and prints that command.
const BEFORE: &str = r#"set -Eeuo pipefail; trap 'echo "stopped at: $BASH_COMMAND" >&2' ERR"#;

/// Option of `env` that resets signals to their default actions. Programs that test signals need
/// the default actions, but a background shell may have set some signals to be ignored.
const SIGNALS: &str = "--default-signal=INT,HUP,QUIT,TERM,PIPE";

/// Outcome of a run.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The program worked, and the allocator served it.
    Passed {
        /// The result that the script printed.
        did: String,
        /// The witness's finding, in words.
        proof: String,
    },
    /// The program worked, but the allocator did not serve it: nothing was tested.
    Untested(String),
    /// The program failed.
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

/// Temporary folder with the libraries, and a witness.
#[derive(Debug)]
pub struct Bench {
    folder: tempfile::TempDir,
    witness: Witness,
}

impl Bench {
    /// Creates a temporary folder with the libraries, and a witness.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder or a library cannot be written, or the witness cannot be
    /// created.
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

    /// Returns the path of an allocator's library.
    #[must_use]
    pub fn library(&self, allocator: &str) -> PathBuf {
        self.folder.path().join(format!("lib{allocator}.so"))
    }

    /// Runs a program under an allocator of [`ALLOCATORS`].
    ///
    /// # Errors
    ///
    /// Returns an error if no folder can be created for the program, or its processes cannot be
    /// followed.
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

/// Creates a temporary folder in which every user may create files, because some programs do not
/// run as root.
fn open_folder(prefix: &str) -> io::Result<tempfile::TempDir> {
    let folder = tempfile::Builder::new().prefix(prefix).tempdir()?;
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o777))?;
    Ok(folder)
}

/// Decides whether the allocator served a program that exited with status 0.
fn judge(proof: &Proof, did: String) -> Outcome {
    if proof.coverage == Coverage::TooLittle || proof.served_processes == 0 {
        let unserved = proof.unserved.iter();
        let unserved: Vec<String> = unserved
            .map(|one| format!("{} ({:?})", one.program, one.reason))
            .collect();
        return Outcome::Untested(format!("not served: {}", unserved.join(", ")));
    }
    Outcome::Passed {
        did,
        proof: format!(
            "{} of {} processes served, {} calls",
            proof.served_processes, proof.processes, proof.calls
        ),
    }
}
