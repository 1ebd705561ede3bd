//! Runs heapdrome in a private home folder for each test, and checks its output.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

pub use built::{
    allocator, bundling_program, faulty, fidelity_program, forwarding_allocator, linked_program,
    misused, news_program, opened_library, private_program, program, recorded_program,
    reentrant_allocator, stacks_program, static_program, throwing_program,
};

mod built;

/// Time limit of a call of heapdrome in these tests, long enough for a busy machine.
const LIMIT: Duration = Duration::from_secs(180);

/// Home folder for one test, so that none of the user's files are read or written.
pub struct Site {
    home: tempfile::TempDir,
}

/// Exit status and output of a call.
pub struct Outcome {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Site {
    pub fn new() -> Self {
        let home = tempfile::Builder::new().prefix("heapdrome-test-").tempdir();
        Self {
            home: home.expect("a temporary folder"),
        }
    }

    /// Returns a path in the home folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Writes a file into the home folder.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, content).expect("a file can be written");
        path
    }

    /// Returns the names of the files and folders in the home folder itself, sorted, without hidden
    /// ones.
    pub fn visible_files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.home.path()).expect("the home folder is there");
        let names = entries.flatten().map(|entry| entry.file_name());
        let names = names.map(|name| name.to_string_lossy().into_owned());
        let mut names: Vec<_> = names.filter(|name| !name.starts_with('.')).collect();
        names.sort();
        names
    }

    /// Returns the journal of the only race; `None` if no race has begun yet.
    pub fn journal(&self) -> Option<PathBuf> {
        let races = std::fs::read_dir(self.path(".local/state/heapdrome/races")).ok()?;
        let folders: Vec<_> = races.flatten().map(|race| race.path()).collect();
        assert!(folders.len() <= 1, "one race: {folders:?}");
        Some(folders.first()?.join("journal.jsonl"))
    }

    /// Returns the contents of the only race's journal; empty if there is none.
    pub fn journal_text(&self) -> String {
        let text = self.journal().map(std::fs::read_to_string);
        text.and_then(Result::ok).unwrap_or_default()
    }

    /// Creates a command that runs heapdrome with these arguments, in the home folder.
    pub fn command<S: AsRef<std::ffi::OsStr>>(&self, arguments: &[S]) -> Command {
        self.program(env!("CARGO_BIN_EXE_heapdrome"), arguments)
    }

    /// Creates a command that runs a program with these arguments, in the home folder and without
    /// this user's settings.
    pub fn program<S: AsRef<std::ffi::OsStr>>(&self, name: &str, arguments: &[S]) -> Command {
        let mut command = Command::new(name);
        command.args(arguments).current_dir(self.home.path());
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if ["XDG_", "HEAPDROME_", "LD_", "MALLOC_", "GLIBC_"]
                .iter()
                .any(|start| text.starts_with(start))
            {
                command.env_remove(&name);
            }
        }
        command.env("HOME", self.home.path()).stdin(Stdio::null());
        command
    }

    /// Runs heapdrome to its end.
    pub fn run<S: AsRef<std::ffi::OsStr>>(&self, arguments: &[S]) -> Outcome {
        self.finish(self.command(arguments))
    }

    /// Runs a command to its end, up to the time limit.
    pub fn finish(&self, command: Command) -> Outcome {
        let running = self.start(command);
        running.wait()
    }

    /// Starts a command in a process group of its own.
    pub fn start(&self, mut command: Command) -> Running {
        let out = tempfile::NamedTempFile::new().expect("a temporary file");
        let err = tempfile::NamedTempFile::new().expect("a temporary file");
        command
            .stdout(out.reopen().expect("the file opens again"))
            .stderr(err.reopen().expect("the file opens again"))
            .process_group(0);
        // SAFETY: `heed_signals` only calls signal, which is async-signal-safe, as required between
        // fork and exec.
        unsafe { command.pre_exec(heed_signals) };
        Running {
            child: command.spawn().expect("heapdrome starts"),
            out,
            err,
        }
    }

    /// Races `command` under these allocators, and returns the outcome and the result as JSON. The
    /// race has two rounds unless `options` contain a number of rounds.
    pub fn race(
        &self,
        allocators: &[&Path],
        options: &[&str],
        command: &[&str],
    ) -> (Outcome, Value) {
        let json = self.path("result.json");
        let names: Vec<_> = allocators
            .iter()
            .map(|path| path.to_str().expect("plain"))
            .collect();
        let names = names.join(",");
        let json_text = json.to_str().expect("plain");
        let mut arguments = vec!["race", "-a", &names, "--json", json_text];
        if !options.iter().any(|option| option.contains("rounds")) {
            arguments.extend(["--rounds", "2"]);
        }
        arguments.extend(options);
        arguments.push("--");
        arguments.extend(command);
        let outcome = self.run(&arguments);
        let text = std::fs::read_to_string(&json).unwrap_or_default();
        let value = serde_json::from_str(&text).unwrap_or(Value::Null);
        (outcome, value)
    }

    /// Returns the full output for the race whose result is in `result.json`.
    #[track_caller]
    pub fn in_full(&self) -> Outcome {
        let shown = self.run(&["show", "result.json", "--full"]);
        shown.ends_with(0);
        shown
    }
}

/// Restores the default actions of signals, which a shell sets to ignore for background commands.
/// Otherwise heapdrome would inherit the ignored signals.
fn heed_signals() -> std::io::Result<()> {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: `SIG_DFL` is a valid action for these signals.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    Ok(())
}

/// Running heapdrome process, and the files of its output.
pub struct Running {
    child: Child,
    out: tempfile::NamedTempFile,
    err: tempfile::NamedTempFile,
}

impl Running {
    /// Sends a signal to heapdrome alone.
    pub fn signal(&self, signal: i32) {
        let id = i32::try_from(self.child.id()).expect("a process number");
        // SAFETY: kill accesses no memory. No caller signals after `try_wait` has returned a
        // status, so the child has not been waited for, and its ID has not been reused.
        assert_eq!(unsafe { libc::kill(id, signal) }, 0);
    }

    /// Returns whether heapdrome still runs.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("it can be asked").is_none()
    }

    /// Returns heapdrome's standard error so far.
    pub fn stderr(&self) -> String {
        self.text().1
    }

    /// Waits for the end of heapdrome. After the time limit, kills it and fails the test.
    pub fn wait(mut self) -> Outcome {
        let started = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                break status;
            }
            if started.elapsed() > LIMIT {
                self.signal(libc::SIGKILL);
                let _ = self.child.wait();
                panic!("heapdrome did not end within {LIMIT:?}:\n{}", self.text().1);
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let (stdout, stderr) = self.text();
        Outcome {
            status: number_of(status),
            stdout,
            stderr,
        }
    }

    fn text(&self) -> (String, String) {
        let read = |file: &tempfile::NamedTempFile| {
            let bytes = std::fs::read(file.path()).expect("the output can be read");
            String::from_utf8_lossy(&bytes).into_owned()
        };
        (read(&self.out), read(&self.err))
    }
}

/// Returns the exit status, or 128 plus the number of the signal, as a shell does.
fn number_of(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt as _;
    status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

impl Outcome {
    /// Checks that the call ended with this status, and that heapdrome itself did not crash.
    #[track_caller]
    pub fn ends_with(&self, status: i32) -> &Self {
        let all = format!("{}\n{}", self.stdout, self.stderr);
        assert_eq!(self.status, status, "{all}");
        assert!(
            !all.contains("panicked") && !all.contains("stack backtrace"),
            "{all}"
        );
        self
    }

    /// Checks that the call ended with this status and one line on standard error, which contains
    /// all of `words`.
    #[track_caller]
    pub fn complains(&self, status: i32, words: &[&str]) {
        self.ends_with(status);
        let lines: Vec<_> = self
            .stderr
            .lines()
            .filter(|line| !line.is_empty())
            .collect();
        assert_eq!(lines.len(), 1, "one line is enough:\n{}", self.stderr);
        for word in words {
            assert!(
                lines[0].contains(word),
                "'{word}' is missing in: {}",
                lines[0]
            );
        }
    }

    /// Checks that standard output contains these words. Ignores spaces and line breaks, which
    /// depend on the length of the test folder's path.
    #[track_caller]
    pub fn tells(&self, words: &str) {
        let without_spaces = |text: &str| text.split_whitespace().collect::<String>();
        assert!(
            without_spaces(&self.stdout).contains(&without_spaces(words)),
            "'{words}' is missing in:\n{}",
            self.stdout
        );
    }

    /// Checks that the call ended with this status, and that a line of standard error contains all
    /// of `words`.
    #[track_caller]
    pub fn says(&self, status: i32, words: &[&str]) {
        self.ends_with(status);
        let has_all = |line: &str| words.iter().all(|word| line.contains(word));
        assert!(
            self.stderr.lines().any(has_all),
            "{words:?} in:\n{}",
            self.stderr
        );
    }
}

/// Returns the row of the result whose library has this path.
#[track_caller]
pub fn row<'a>(result: &'a Value, library: &Path) -> &'a Value {
    let rows = result["entrants"].as_array().expect("a result with rows");
    let is_it = |row: &&Value| row["library"].as_str() == library.to_str();
    rows.iter()
        .find(is_it)
        .unwrap_or_else(|| panic!("no row for {}", library.display()))
}

/// Returns the row of the entrant of this name.
#[track_caller]
pub fn named<'a>(result: &'a Value, name: &str) -> &'a Value {
    let rows = result["entrants"].as_array().expect("a result with rows");
    let found = rows.iter().find(|row| row["allocator"] == name);
    found.unwrap_or_else(|| panic!("no row {name} in {rows:?}"))
}

/// Returns the row of the baseline.
#[track_caller]
pub fn baseline(result: &Value) -> &Value {
    let rows = result["entrants"].as_array().expect("a result with rows");
    rows.iter()
        .find(|row| row["role"] == "baseline")
        .expect("a baseline")
}
