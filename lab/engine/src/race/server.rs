//! Run of a server under the witness, and run of a race's command without the witness. The server
//! gets load, because an idle server proves nothing.

use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use heapdrome_measure::BaseEnvironment;
use heapdrome_schema::{Plan, Server};
use heapdrome_system::child::{self, Ended, Limits, WaitError};
use heapdrome_witness::Session;

use crate::failure::Failure;

/// Interval between two checks of the server's state.
const POLL: Duration = Duration::from_millis(50);

/// Returns a shell command as a program and its arguments.
pub fn shell(line: &str) -> Vec<String> {
    ["/bin/sh", "-c", line].map(str::to_owned).to_vec()
}

/// Time limit for the end of a server after SIGTERM, as in a measured run.
const END_GRACE: Duration = Duration::from_secs(5);

/// Waits until the server answers, runs the command once as its load, and ends the server. Returns
/// `false` if the server ended before it answered.
///
/// # Errors
/// When the server does not answer in time, a command cannot be run, or the user interrupts.
pub fn load_once(
    plan: &Plan,
    server: &Server,
    base: &BaseEnvironment,
    session: &Session,
    interrupt: &AtomicBool,
) -> Result<bool, Failure> {
    let helper = Helper {
        plan,
        base,
        interrupt,
    };
    let deadline = Instant::now() + Duration::from(server.ready_within);
    while !helper.succeeds(&shell(&server.ready), Some(deadline))? {
        if !session.is_running() {
            return Ok(false);
        }
        if Instant::now() > deadline {
            return Err(Failure::Machine(format!(
                "the server did not answer within {}; is the --ready command right?",
                server.ready_within
            )));
        }
        std::thread::sleep(POLL);
    }
    helper.succeeds(&plan.command, None)?;
    session.stop(libc::SIGTERM);
    let deadline = Instant::now() + END_GRACE;
    while session.is_running() && Instant::now() < deadline {
        std::thread::sleep(POLL);
    }
    session.stop(libc::SIGKILL);
    Ok(true)
}

/// Runs the command of a race once, without the witness and without preloading an allocator, and
/// returns whether it succeeded.
///
/// # Errors
/// When the command cannot be run, or the user interrupts.
pub fn succeeds_unwatched(
    plan: &Plan,
    base: &BaseEnvironment,
    interrupt: &AtomicBool,
) -> Result<bool, Failure> {
    let helper = Helper {
        plan,
        base,
        interrupt,
    };
    let mut command = helper.command(&plan.command);
    if let Some(path) = &plan.options.stdin {
        let file = std::fs::File::open(path);
        command.stdin(file.map_err(|error| cannot(&plan.command, &error))?);
    }
    let limit = plan.options.timeout.map_or(UNWATCHED_LIMIT, Duration::from);
    let status = helper.run(&plan.command, command, Some(Instant::now() + limit))?;
    let code = status.and_then(|status| status.code());
    Ok(code.is_some_and(|code| plan.options.is_success(code)))
}

/// Default time limit of the command without the witness.
const UNWATCHED_LIMIT: Duration = Duration::from_secs(600);

/// Runner of commands without an entrant's allocator.
struct Helper<'a> {
    plan: &'a Plan,
    base: &'a BaseEnvironment,
    interrupt: &'a AtomicBool,
}

impl Helper<'_> {
    /// Returns whether a command succeeds within its time limit.
    fn succeeds(&self, words: &[String], deadline: Option<Instant>) -> Result<bool, Failure> {
        let status = self.run(words, self.command(words), deadline)?;
        Ok(status.is_some_and(|status| status.success()))
    }

    /// Runs a command and returns its exit status; `None` if it exceeded its time limit. Kills all
    /// processes that the command leaves in its process group.
    fn run(
        &self,
        words: &[String],
        mut command: Command,
        deadline: Option<Instant>,
    ) -> Result<Option<ExitStatus>, Failure> {
        let mut child = command.spawn().map_err(|error| cannot(words, &error))?;
        let limits = Limits {
            time: deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())),
            memory: None,
            pause: Duration::from_millis(2),
        };
        match child::wait(&mut child, limits, self.interrupt) {
            Ok(Ended::Itself(status)) => Ok(Some(status)),
            Ok(Ended::OverLimit) => Ok(None),
            Err(WaitError::Interrupted) => Err(Failure::Interrupted),
            Err(WaitError::Io(error)) => Err(cannot(words, &error)),
        }
    }

    fn command(&self, words: &[String]) -> Command {
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .env_clear()
            .envs(&self.base.variables);
        command.current_dir(self.plan.directory());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        child::in_own_group(&mut command);
        command
    }
}

fn cannot(words: &[String], error: &std::io::Error) -> Failure {
    Failure::Machine(format!("cannot run {}: {error}", words[0]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_without_statuses_of_success_takes_zero_alone() {
        let succeeds = |script: &str| {
            let plan = Plan {
                command: shell(script),
                started_in: std::env::temp_dir(),
                ..Plan::default()
            };
            let base = heapdrome_measure::base_environment(&plan);
            let found = succeeds_unwatched(&plan, &base, &AtomicBool::new(false));
            found.unwrap_or_else(|error| panic!("{error}"))
        };
        assert!(succeeds("exit 0"));
        assert!(!succeeds("exit 1"));
    }
}
