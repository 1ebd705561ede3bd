//! Watched children: a child ends with its parent, at a time limit, or when the user interrupts.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use heapdrome_system::child::{self, Ended, Limits, WaitError};

use crate::Error;

/// Exit status and output of a child.
pub(crate) struct Output {
    pub(crate) status: ExitStatus,
    pub(crate) out: Vec<u8>,
    pub(crate) err: String,
}

/// Runs a command until it ends, reaches its time limit or is interrupted.
pub(crate) fn run(
    mut command: Command,
    patience: Duration,
    interrupt: &AtomicBool,
) -> Result<Output, Error> {
    child::dies_with_parent(child::in_own_group(&mut command))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut running = command.spawn().map_err(|error| {
        let program = command.get_program().to_string_lossy();
        Error::Child(format!("{program} cannot be started: {error}"))
    })?;
    let out = child::collect(running.stdout.take());
    let err = child::collect(running.stderr.take());
    let waited = child::wait(&mut running, Limits::of_time(patience), interrupt);
    let [out, err] = [out, err].map(|reader| reader.join().unwrap_or_default());
    let status = match waited {
        Ok(Ended::Itself(status)) => status,
        Ok(Ended::OverLimit) => {
            let seconds = patience.as_secs();
            return Err(Error::Child(format!(
                "took more than {seconds} s and was stopped; use a smaller working set"
            )));
        }
        Err(WaitError::Interrupted) => return Err(Error::Interrupted),
        Err(WaitError::Io(error)) => {
            return Err(Error::Child(format!("cannot be waited for: {error}")));
        }
    };
    Ok(Output {
        status,
        out,
        err: String::from_utf8_lossy(&err).into_owned(),
    })
}

/// Describes the end of a child that failed, in one line.
pub(crate) fn ending(output: &Output) -> String {
    let last = child::last_line(&output.err);
    match (output.status.signal(), last) {
        (Some(signal), _) => format!("died of signal {signal}"),
        (None, Some(line)) => format!("failed: {line}"),
        (None, None) => format!("failed with {}", output.status),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn output_and_endings_are_told() {
        let quiet = AtomicBool::new(false);
        let patience = Duration::from_secs(20);
        let good = run(shell("echo yes"), patience, &quiet).expect("run");
        assert!(good.status.success());
        assert_eq!(good.out, b"yes\n");
        let bad = run(shell("echo no >&2; exit 3"), patience, &quiet).expect("run");
        assert_eq!(ending(&bad), "failed: no");
        let killed = run(shell("kill -9 $$"), patience, &quiet).expect("run");
        assert_eq!(ending(&killed), "died of signal 9");
    }

    #[test]
    fn a_child_ends_in_time_and_when_interrupted() {
        let start = Instant::now();
        let quiet = AtomicBool::new(false);
        let late = run(shell("exec sleep 60"), Duration::from_millis(100), &quiet);
        assert!(matches!(late, Err(Error::Child(_))));
        let raised = AtomicBool::new(true);
        let stopped = run(shell("exec sleep 60"), Duration::from_secs(60), &raised);
        assert!(matches!(stopped, Err(Error::Interrupted)));
        assert!(start.elapsed() < Duration::from_secs(30));
    }
}
