//! A server under the witness: it must be loaded, or it would prove nothing.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use heapdrome_measure::BaseEnvironment;
use heapdrome_schema::{Plan, Server};
use heapdrome_witness::Session;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::failure::Failure;
use crate::interrupt;

/// How often the server is asked whether it is ready.
const POLL: Duration = Duration::from_millis(50);

/// A command that the shell understands, as a program and its arguments.
pub fn shell(line: &str) -> Vec<String> {
    ["/bin/sh", "-c", line].map(str::to_owned).to_vec()
}

/// How long a server may take to end after SIGTERM, as in a measured run.
const END_GRACE: Duration = Duration::from_secs(5);

/// Waits until the server answers, runs the command once as its load, and ends the server. Says
/// whether the server ever answered.
///
/// # Errors
/// When the server does not answer in time, or a command cannot be run.
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

/// Runs the command of a race once, without an allocator and without the witness, and says whether it
/// succeeds.
///
/// # Errors
/// When it cannot be run.
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
    Ok(code.is_some_and(|code| plan.options.success.contains(&code)))
}

/// How long the command may take without the witness where no limit is asked for.
const UNWATCHED_LIMIT: Duration = Duration::from_secs(600);

/// Runs commands without the allocator.
struct Helper<'a> {
    plan: &'a Plan,
    base: &'a BaseEnvironment,
    interrupt: &'a AtomicBool,
}

impl Helper<'_> {
    /// Whether a command succeeds; one that takes too long does not, and is killed with its children,
    /// as it is when someone presses Ctrl-C.
    fn succeeds(&self, words: &[String], deadline: Option<Instant>) -> Result<bool, Failure> {
        let status = self.run(words, self.command(words), deadline)?;
        Ok(status.is_some_and(|status| status.success()))
    }

    /// How a command ended; `None` where it took too long and was killed with its children.
    fn run(
        &self,
        words: &[String],
        mut command: Command,
        deadline: Option<Instant>,
    ) -> Result<Option<ExitStatus>, Failure> {
        let mut child = command.spawn().map_err(|error| cannot(words, &error))?;
        loop {
            let ended = child.try_wait();
            if let Some(status) = ended.map_err(|error| cannot(words, &error))? {
                return Ok(Some(status));
            }
            let interrupted = interrupt::check(self.interrupt);
            let late = deadline.is_some_and(|deadline| Instant::now() > deadline);
            if interrupted.is_err() || late {
                end_group(&mut child);
                return interrupted.map(|()| None);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn command(&self, words: &[String]) -> Command {
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .env_clear()
            .envs(&self.base.variables);
        command.current_dir(self.plan.directory()).process_group(0);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }
}

fn cannot(words: &[String], error: &std::io::Error) -> Failure {
    Failure::Machine(format!("cannot run {}: {error}", words[0]))
}

/// Kills a child that leads a process group, with the group.
fn end_group(child: &mut Child) {
    // It has not been waited for, so its id, which is also its group's, is no other process's.
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    let _ = child.wait();
}
