//! Child processes that fetch or build packages. Their output is logged. When such a process ends
//! or is interrupted, its whole process group is killed.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::AtomicBool;

use heapdrome_system::child::{self, Ended, Limits, WaitError};

/// Reason why a child process did not complete its work.
#[derive(Debug, thiserror::Error)]
pub enum ChildError {
    /// The program could not be started, usually because it does not exist, or waiting for it
    /// failed.
    #[error("cannot start {program}: {source}")]
    Start {
        /// Name of the program.
        program: String,
        /// Error that the system returned.
        source: std::io::Error,
    },
    /// The program ended with a failure.
    #[error("{program} ended with {status}")]
    Failed {
        /// Name of the program.
        program: String,
        /// Exit status of the program, or the signal that killed it.
        status: ExitStatus,
    },
    /// The user interrupted heapdrome, and the child's process group was killed.
    #[error("interrupted")]
    Interrupted,
    /// The log could not be opened or written.
    #[error("cannot write {path}: {source}")]
    Log {
        /// Path of the log.
        path: PathBuf,
        /// Error that the system returned.
        source: std::io::Error,
    },
}

/// A command whose output is appended to a log file.
#[derive(Debug)]
pub struct Job<'a> {
    command: Command,
    log: &'a Path,
}

impl<'a> Job<'a> {
    /// Creates a job that runs `program` with an empty standard input, in the C locale, and in its
    /// own process group.
    pub fn new(program: impl AsRef<OsStr>, log: &'a Path) -> Self {
        Self::of(Command::new(program), log)
    }

    /// Creates a job that runs `command` with an empty standard input, in the C locale, and in its
    /// own process group.
    pub fn of(mut command: Command, log: &'a Path) -> Self {
        child::in_own_group(&mut command);
        // Messages must not be translated, because heapdrome searches them for words and quotes
        // them in its own messages.
        command.env("LC_ALL", "C").env("CARGO_TERM_COLOR", "never");
        // A build must not run under an allocator that the user preloads.
        command.env_remove("LD_PRELOAD");
        Self { command, log }
    }

    /// Returns the command, so that the caller can set its arguments, variables and folder.
    pub fn command(&mut self) -> &mut Command {
        &mut self.command
    }

    /// Runs the job until it ends.
    ///
    /// # Errors
    /// When the log cannot be written, or the program cannot be started, fails, or is interrupted.
    pub fn run(mut self, interrupt: &AtomicBool) -> Result<(), ChildError> {
        let program = self.command.get_program().to_string_lossy().into_owned();
        let log_error = |source| ChildError::Log {
            path: self.log.to_owned(),
            source,
        };
        let mut log = open_log(self.log).map_err(log_error)?;
        writeln!(log, "$ {}", in_words(&self.command)).map_err(log_error)?;
        self.command
            .stdout(log.try_clone().map_err(log_error)?)
            .stderr(log);
        let start = |source| ChildError::Start {
            program: program.clone(),
            source,
        };
        let mut child = self.command.spawn().map_err(start)?;
        match child::wait(&mut child, Limits::NONE, interrupt) {
            Ok(Ended::Itself(status)) if status.success() => Ok(()),
            Ok(Ended::Itself(status)) => Err(ChildError::Failed { program, status }),
            // `Limits::NONE` cannot be exceeded.
            Ok(Ended::OverLimit) | Err(WaitError::Interrupted) => Err(ChildError::Interrupted),
            Err(WaitError::Io(source)) => Err(start(source)),
        }
    }
}

fn open_log(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

/// Formats a command, and its working folder if it is set, as a line for a shell.
fn in_words(command: &Command) -> String {
    let mut words = Vec::new();
    if let Some(folder) = command.get_current_dir() {
        words.push(format!("cd {} &&", quoted(&folder.to_string_lossy())));
    }
    let all = std::iter::once(command.get_program()).chain(command.get_args());
    words.extend(all.map(|word| quoted(&word.to_string_lossy())));
    words.join(" ")
}

/// Quotes a word for a shell. Plain words stay unchanged.
pub fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+./,:@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// Returns the last `count` lines of a file that are not blank, for an error message; none if the
/// file cannot be read.
pub fn last_lines(path: &Path, count: usize) -> Vec<String> {
    let text = std::fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<_> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    lines[lines.len().saturating_sub(count)..]
        .iter()
        .map(|&line| line.to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::Ordering;
    use std::time::{Duration, Instant};

    fn log_in(folder: &tempfile::TempDir) -> PathBuf {
        folder.path().join("job log")
    }

    #[test]
    fn output_and_the_command_are_logged() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let log = log_in(&folder);
        let mut job = Job::new("sh", &log);
        job.command().args(["-c", "echo out; echo err >&2; exit 3"]);
        let error = job.run(&AtomicBool::new(false)).expect_err("exit status 3");
        assert_eq!(error.to_string(), "sh ended with exit status: 3");
        let text = std::fs::read_to_string(&log).expect("the log is there");
        assert_eq!(text, "$ sh -c 'echo out; echo err >&2; exit 3'\nout\nerr\n");
        assert_eq!(last_lines(&log, 2), ["out", "err"]);
    }

    #[test]
    fn a_missing_program_is_named() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let log = log_in(&folder);
        let job = Job::new("no-such-program-here", &log);
        let error = job
            .run(&AtomicBool::new(false))
            .expect_err("no such program")
            .to_string();
        assert!(error.contains("no-such-program-here"), "{error}");
    }

    #[test]
    fn an_interrupt_kills_grandchildren_too() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let log = log_in(&folder);
        let begun = folder.path().join("begun");
        let interrupt = Arc::new(AtomicBool::new(false));
        let mut job = Job::new("sh", &log);
        job.command()
            .args([
                "-c",
                "sleep 600 & echo $! >\"$1.new\"; mv \"$1.new\" \"$1\"; wait",
                "sh",
            ])
            .arg(&begun);
        let flag = Arc::clone(&interrupt);
        let written = begun.clone();
        let setter = std::thread::spawn(move || {
            within_a_minute("the grandchild begins", || written.exists());
            flag.store(true, Ordering::Relaxed);
        });
        assert!(matches!(job.run(&interrupt), Err(ChildError::Interrupted)));
        setter.join().expect("the thread ends");
        let grandchild = std::fs::read_to_string(&begun).expect("it has begun");
        let stat = format!("/proc/{}/stat", grandchild.trim());
        within_a_minute("the grandchild ends", || {
            let stat = std::fs::read_to_string(&stat).unwrap_or_default();
            stat.is_empty() || stat.contains(") Z ")
        });
    }

    fn within_a_minute(what: &str, mut holds: impl FnMut() -> bool) {
        let end = Instant::now() + Duration::from_secs(60);
        while !holds() {
            assert!(Instant::now() < end, "{what}: not within a minute");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
