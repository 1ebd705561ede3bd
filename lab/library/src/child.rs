//! Child processes of a recipe. [`Running::finish`] gives each child a time limit, and leaves no
//! process of the child's group behind.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;
use std::time::Duration;

use heapdrome_system::child::{self, Ended, Limits, WaitError};

use crate::LibraryError;

/// A running child process of a recipe, and the threads that collect its output.
pub(crate) struct Running {
    step: &'static str,
    child: Child,
    out: JoinHandle<Vec<u8>>,
    errors: JoinHandle<Vec<u8>>,
}

/// Returns a command that runs the shell line `line` in `folder`.
pub(crate) fn shell(line: &str, folder: &Path) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(folder);
    command
}

impl Running {
    /// Starts a command in its own process group. Errors name `step`.
    pub(crate) fn start(step: &'static str, mut command: Command) -> Result<Self, LibraryError> {
        child::in_own_group(&mut command);
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let failed = |error: std::io::Error| LibraryError::Failed {
            step,
            reason: error.to_string(),
        };
        let mut child = command.spawn().map_err(failed)?;
        let (out, errors) = (child.stdout.take(), child.stderr.take());
        Ok(Self {
            step,
            child,
            out: child::collect(out),
            errors: child::collect(errors),
        })
    }

    pub(crate) fn has_ended(&self) -> bool {
        let limit = Limits::of_time(Duration::ZERO);
        let never = AtomicBool::new(false);
        !matches!(child::watch(&self.child, limit, &never), Ok(false))
    }

    /// Waits for the child's end, and returns its standard output. Kills the child's process group
    /// after its end, at the time limit and on Ctrl-C. Returns an error unless the child exits with
    /// status 0.
    pub(crate) fn finish(
        mut self,
        limit: Duration,
        interrupt: &AtomicBool,
    ) -> Result<String, LibraryError> {
        let step = self.step;
        let failed = |reason: String| LibraryError::Failed { step, reason };
        let status = match child::wait(&mut self.child, Limits::of_time(limit), interrupt) {
            Ok(Ended::Itself(status)) => status,
            Ok(Ended::OverLimit) => {
                let seconds = limit.as_secs();
                return Err(LibraryError::TooLong { step, seconds });
            }
            Err(WaitError::Interrupted) => return Err(LibraryError::Interrupted),
            Err(WaitError::Io(error)) => return Err(failed(error.to_string())),
        };
        let text = |bytes: JoinHandle<Vec<u8>>| {
            String::from_utf8_lossy(&bytes.join().unwrap_or_default()).into_owned()
        };
        let (out, errors) = (text(self.out), text(self.errors));
        if status.success() {
            return Ok(out);
        }
        let last = child::last_line(&errors).or_else(|| child::last_line(&out));
        Err(failed(
            last.map_or_else(|| status.to_string(), str::to_owned),
        ))
    }

    /// Kills the child's process group.
    pub(crate) fn stop(self) {
        let _ = self.finish(Duration::ZERO, &AtomicBool::new(true));
    }
}
