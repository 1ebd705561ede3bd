//! Runs the load of a server that is being recorded. The load itself is not recorded.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use heapdrome_system::interrupt;
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::LibraryError;
use crate::child::{Running, shell};
use crate::error::at;
use crate::work::{Served, Work};

/// Pause between two checks that the server answers.
const PAUSE: Duration = Duration::from_millis(50);

/// Time limit of one check.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// Returns the command that runs a server and writes the server's process ID to a file. The shell
/// writes its own ID and then becomes the server, because the server's command uses `exec`.
pub(crate) fn command(server: &Served, number: &Path) -> Vec<String> {
    let line = format!("echo $$ > '{}'\n{}", number.display(), server.serve);
    ["sh", "-c", line.as_str()].map(str::to_owned).to_vec()
}

/// Waits until a server answers, runs the load, and then sends SIGTERM to the server. `recording`
/// is the process that records the server.
pub(crate) fn load(
    work: &Work,
    server: &Served,
    number: &Path,
    recording: &Running,
    (limit, interrupt): (Duration, &AtomicBool),
) -> Result<(), LibraryError> {
    wait_for_answer(work, server, recording, interrupt)?;
    let process = open(number)?;
    let mut command = std::process::Command::new(&work.command[0]);
    command
        .args(&work.command[1..])
        .current_dir(&work.directory);
    let outcome = Running::start("the load", command)?.finish(limit, interrupt);
    // Ignore an error: if the server has already ended, its recorder reports the reason.
    let _ = pidfd_send_signal(process, Signal::TERM);
    outcome.map(|_| ())
}

fn wait_for_answer(
    work: &Work,
    server: &Served,
    recording: &Running,
    interrupt: &AtomicBool,
) -> Result<(), LibraryError> {
    let began = Instant::now();
    let late = |reason: String| LibraryError::Failed {
        step: "the server's start",
        reason,
    };
    loop {
        let asked = Running::start("the question", shell(&server.ready, &work.directory))?;
        match asked.finish(ANSWERS_WITHIN, interrupt) {
            Ok(_) => return Ok(()),
            Err(LibraryError::Interrupted) => return Err(LibraryError::Interrupted),
            Err(_) if recording.has_ended() => {
                return Err(late("it ended before it answered".to_owned()));
            }
            Err(error) if began.elapsed() > server.ready_within => {
                return Err(late(error.to_string()));
            }
            Err(_) => std::thread::sleep(PAUSE),
        }
        if interrupt::raised(interrupt) {
            return Err(LibraryError::Interrupted);
        }
    }
}

/// Returns a handle of the process whose ID is in the file `number`. The handle refers to that
/// process even after the ID is reused.
fn open(number: &Path) -> Result<OwnedFd, LibraryError> {
    let text = std::fs::read_to_string(number).map_err(at(number))?;
    let pid = text.trim().parse().ok().and_then(Pid::from_raw);
    let failed = |reason: String| LibraryError::Failed {
        step: "finding the server's process",
        reason,
    };
    let pid = pid.ok_or_else(|| failed(format!("its number is '{}'", text.trim())))?;
    pidfd_open(pid, PidfdFlags::empty()).map_err(|error| failed(error.to_string()))
}
