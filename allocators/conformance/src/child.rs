//! Runs child processes, and reports their output if they fail.

use std::io::{Read, Seek};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use heapdrome_system::child::{self, Ended, Limits, WaitError};

/// Time between two checks of a child. Most children end within a few milliseconds.
const PAUSE: Duration = Duration::from_millis(2);

/// Runs a command, and kills it with its own children if it exceeds its time limit.
///
/// # Errors
///
/// Unless the child exits with status 0, a description of how it ended, and the start of its
/// output.
pub(crate) fn run(command: &mut Command, limit: Duration) -> Result<(), String> {
    let mut output = tempfile::tempfile().map_err(|error| format!("no temporary file: {error}"))?;
    let share = || output.try_clone().map(Stdio::from);
    let (stdout, stderr) = share()
        .and_then(|stdout| share().map(|stderr| (stdout, stderr)))
        .map_err(|error| format!("no second handle of a temporary file: {error}"))?;
    child::in_own_group(command).stdout(stdout).stderr(stderr);
    let mut child = command.spawn().map_err(|error| {
        format!(
            "cannot run {}: {error}",
            command.get_program().to_string_lossy()
        )
    })?;
    let limits = Limits {
        pause: PAUSE,
        ..Limits::of_time(limit)
    };
    let how = match child::wait(&mut child, limits, &AtomicBool::new(false)) {
        Ok(Ended::Itself(status)) if status.success() => return Ok(()),
        Ok(Ended::Itself(status)) => child::ending(status).to_string(),
        Ok(Ended::OverLimit) => format!("still running after {} s", limit.as_secs()),
        Err(WaitError::Io(error)) => format!("cannot wait for it: {error}"),
        Err(WaitError::Interrupted) => "interrupted".to_owned(),
    };
    let mut text = Vec::new();
    let read = output
        .rewind()
        .and_then(|()| output.by_ref().take(4096).read_to_end(&mut text));
    let text = read.map(|_| String::from_utf8_lossy(&text).trim_end().to_owned());
    Err(format!(
        "{how}: {}",
        text.unwrap_or_else(|error| format!("output lost: {error}"))
    ))
}
