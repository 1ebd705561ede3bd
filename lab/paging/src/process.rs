//! A child that is watched: it ends with its parent, at a time limit, or when someone interrupts.

use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::Error;

/// More than a child ever says.
const MOST_OUTPUT: u64 = 64 << 20;

/// What a child said.
pub(crate) struct Output {
    pub(crate) status: ExitStatus,
    pub(crate) out: Vec<u8>,
    pub(crate) err: String,
}

/// Runs a command to its end.
pub(crate) fn run(
    mut command: Command,
    patience: Duration,
    interrupt: &AtomicBool,
) -> Result<Output, Error> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // SAFETY: prctl is a system call without locks or memory of its own, safe between fork and exec.
    unsafe { command.pre_exec(die_with_the_parent) };
    let mut child = command.spawn().map_err(|error| {
        let program = command.get_program().to_string_lossy();
        Error::Child(format!("{program} cannot be started: {error}"))
    })?;
    let out = collect(child.stdout.take());
    let err = collect(child.stderr.take());
    let waited = wait(&mut child, patience, interrupt);
    if waited.is_err() {
        // Both fail only when the child has gone already.
        let _ = child.kill();
        let _ = child.wait();
    }
    let [out, err] = [out, err].map(|reader| reader.join().unwrap_or_default());
    Ok(Output {
        status: waited?,
        out,
        err: String::from_utf8_lossy(&err).into_owned(),
    })
}

/// Lets the kernel kill this process when its parent dies in whatever way.
pub(crate) fn die_with_the_parent() -> io::Result<()> {
    // SAFETY: PR_SET_PDEATHSIG takes a number and touches no memory.
    match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn collect(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(pipe) = pipe {
            // What was read until an error is all that there is.
            let _ = pipe.take(MOST_OUTPUT).read_to_end(&mut bytes);
        }
        bytes
    })
}

fn wait(
    child: &mut Child,
    patience: Duration,
    interrupt: &AtomicBool,
) -> Result<ExitStatus, Error> {
    let end = Instant::now() + patience;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) => {}
            Err(error) => return Err(Error::Child(format!("cannot be waited for: {error}"))),
        }
        // Relaxed: the flag stands for itself and publishes nothing.
        if interrupt.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        if Instant::now() >= end {
            let seconds = patience.as_secs();
            return Err(Error::Child(format!(
                "took more than {seconds} s and was stopped; take a smaller working set"
            )));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// One line on how a child ended that did not succeed.
pub(crate) fn ending(output: &Output) -> String {
    let last = output
        .err
        .lines()
        .rev()
        .find(|line| !line.trim().is_empty());
    match (output.status.signal(), last) {
        (Some(signal), _) => format!("died of signal {signal}"),
        (None, Some(line)) => format!("failed: {line}"),
        (None, None) => format!("failed with {}", output.status),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
