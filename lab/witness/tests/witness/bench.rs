//! Shared bench of the tests: a folder with small programs, compiled on demand.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use heapdrome_schema::{Entrant, Role};
use heapdrome_witness::{Report, Request, Witness, WitnessError};

pub struct Bench {
    pub folder: tempfile::TempDir,
}

impl Bench {
    pub fn new() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("witness-")
            .tempdir()
            .expect("a folder");
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(folder.path(), open).expect("the folder is ours");
        Self { folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn text(&self, name: &str) -> String {
        self.path(name).to_str().expect("a plain path").to_owned()
    }

    fn compile(
        &self,
        compiler: &str,
        suffix: &str,
        name: &str,
        source: &str,
        flags: &[&str],
    ) -> String {
        let file = self.path(&format!("{name}.{suffix}"));
        std::fs::write(&file, source).expect("the folder is writable");
        let mut command = Command::new(compiler);
        command
            .args(["-O0", "-fno-builtin", "-w", "-o"])
            .arg(self.path(name))
            .arg(&file);
        let output = command
            .args(flags)
            .output()
            .expect("a C and a C++ compiler are installed");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        self.text(name)
    }

    /// Compiles a C program and returns its path.
    pub fn c(&self, name: &str, source: &str, flags: &[&str]) -> String {
        self.compile("gcc", "c", name, source, flags)
    }

    /// Compiles a C++ program and returns its path.
    pub fn cxx(&self, name: &str, source: &str, flags: &[&str]) -> String {
        self.compile("g++", "cc", name, source, flags)
    }

    /// Compiles an allocator that defines the usual C functions, but no C++ operators. Returns an
    /// entrant that preloads it.
    pub fn bump(&self) -> Entrant {
        self.c(
            "bump.so",
            include_str!("programs/bump.c"),
            &["-shared", "-fPIC", "-O2"],
        );
        entrant("bump", &[self.path("bump.so")])
    }

    pub fn request(&self, entrant: &Entrant, command: &[&str]) -> Request {
        let mut environment = BTreeMap::new();
        for (name, value) in std::env::vars_os() {
            environment.insert(name, value);
        }
        Request {
            command: command.iter().map(|&word| word.to_owned()).collect(),
            environment,
            entrant: entrant.clone(),
            directory: Some(self.folder.path().to_owned()),
            stdin: None,
            stdout: Some(self.path("stdout")),
            stderr: Some(self.path("stderr")),
            timeout: Some(Duration::from_secs(150)),
            interrupt: Arc::new(AtomicBool::new(false)),
        }
    }

    pub fn take(&self, request: &Request) -> Result<Report, WitnessError> {
        Witness::new(self.folder.path())?.start(request)?.finish()
    }

    pub fn run(&self, entrant: &Entrant, command: &[&str]) -> Report {
        self.take(&self.request(entrant, command)).expect("a proof")
    }

    /// Runs a command under an entrant and follows every block.
    pub fn follow(&self, entrant: &Entrant, command: &[&str]) -> Report {
        let request = self.request(entrant, command);
        let witness = Witness::new(self.folder.path()).expect("a witness");
        let session = witness.start_following(&request).expect("a session");
        session.finish().expect("a report")
    }

    pub fn stderr(&self) -> String {
        std::fs::read_to_string(self.path("stderr")).unwrap_or_default()
    }
}

pub fn entrant(name: &str, preload: &[PathBuf]) -> Entrant {
    Entrant {
        name: name.to_owned(),
        role: Role::Rival,
        version: String::new(),
        library: preload.first().cloned(),
        sha256: None,
        preload: preload.to_vec(),
        settings: BTreeMap::new(),
        hardened: false,
        known_faults: Vec::new(),
        faults_of_new: Vec::new(),
        as_is: false,
    }
}

pub fn system() -> Entrant {
    entrant("system", &[])
}

/// Returns the entrant `system`, forced by preloading the C library.
pub fn forced() -> Entrant {
    let folders = [
        "/lib/x86_64-linux-gnu",
        "/lib/aarch64-linux-gnu",
        "/lib64",
        "/usr/lib",
    ];
    let libc = folders
        .iter()
        .map(|folder| Path::new(folder).join("libc.so.6"));
    entrant(
        "system",
        &[libc
            .into_iter()
            .find(|path| path.exists())
            .expect("a C library")],
    )
}
