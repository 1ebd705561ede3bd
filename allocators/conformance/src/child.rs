//! Child processes that may crash or hang.

use std::io::{Read, Seek};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Runs a command to its end, or to the end of its time; then it is killed with its own children.
///
/// # Errors
///
/// How it ended, if other than by status 0, and what it wrote.
pub(crate) fn run(command: &mut Command, limit: Duration) -> Result<(), String> {
    let mut output = tempfile::tempfile().map_err(|error| format!("no temporary file: {error}"))?;
    let share = || output.try_clone().map(Stdio::from);
    let (stdout, stderr) = share()
        .and_then(|stdout| share().map(|stderr| (stdout, stderr)))
        .map_err(|error| format!("no second handle of a temporary file: {error}"))?;
    command
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(stderr)
        .process_group(0);
    let mut child = command.spawn().map_err(|error| {
        format!(
            "cannot run {}: {error}",
            command.get_program().to_string_lossy()
        )
    })?;
    let status = wait(&mut child, limit);
    let how = match status {
        Ok(Some(status)) if status.success() => return Ok(()),
        Ok(Some(status)) => describe(status),
        Ok(None) => format!("still running after {} s", limit.as_secs()),
        Err(error) => format!("cannot wait for it: {error}"),
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

fn wait(child: &mut Child, limit: Duration) -> std::io::Result<Option<ExitStatus>> {
    let start = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() > limit {
            if let Ok(group) = libc::pid_t::try_from(child.id()) {
                // SAFETY: the child is not waited for yet, so its number names its group and no other.
                unsafe { libc::kill(-group, libc::SIGKILL) };
            }
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("status {code}"),
        (_, Some(signal)) => format!("killed by signal {signal}"),
        _ => "ended strangely".into(),
    }
}
