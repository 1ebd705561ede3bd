//! The measurer's side of a launcher.

use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::message::{Answer, Reply, Request, Spawn, Stop};
use super::{LauncherKind, LauncherProgram, Simulation, wait};
use crate::{Interrupt, MeasureError};

/// Interval at which a waiting measurer checks the interrupt flag. It is long, because each check
/// disturbs the run.
const GLANCE: Duration = Duration::from_millis(100);

/// A running launcher. Dropping it kills all processes that it started.
pub(crate) enum Launcher {
    /// A process.
    Process(Box<Process>),
    /// A function, and its answer to the last request.
    Simulated(Simulation, Option<Answer>),
}

impl Launcher {
    /// Starts a launcher and waits until it is ready.
    pub(crate) fn start(kind: &LauncherKind) -> Result<Self, MeasureError> {
        Ok(match kind {
            LauncherKind::Program(program) => Self::Process(Box::new(Process::start(program)?)),
            LauncherKind::Simulated(simulation) => Self::Simulated(simulation.clone(), None),
        })
    }

    /// Returns the process id of the parent of all started processes, or 0 for a simulated
    /// launcher.
    pub(crate) fn pid(&self) -> libc::pid_t {
        match self {
            Self::Process(process) => process.pid(),
            Self::Simulated(..) => 0,
        }
    }

    /// Requests the start of a process, and does not wait for its end. Only one process may run at
    /// a time.
    pub(crate) fn begin(&mut self, spawn: Spawn) -> Result<(), MeasureError> {
        match self {
            Self::Process(process) => process.begin(spawn),
            Self::Simulated(simulation, answer) => {
                *answer = Some(simulation.answer(&spawn));
                Ok(())
            }
        }
    }

    /// Requests the end of the running process. The answer to the start request still arrives.
    pub(crate) fn stop(&mut self, stop: Stop) -> Result<(), MeasureError> {
        match self {
            Self::Process(process) => process.stop(stop),
            Self::Simulated(..) => Ok(()),
        }
    }

    /// Waits at most `patience` for the end of the requested process. Returns `None` if the process
    /// has not ended.
    pub(crate) fn poll(&mut self, patience: Duration) -> Result<Option<Answer>, MeasureError> {
        match self {
            Self::Process(process) => process.poll(patience),
            Self::Simulated(_, answer) => Ok(answer.take()),
        }
    }

    /// Waits for the end of the requested process without a time limit.
    pub(crate) fn finish(&mut self) -> Result<Answer, MeasureError> {
        loop {
            if let Some(answer) = self.poll(Duration::from_secs(3600))? {
                return Ok(answer);
            }
        }
    }

    /// Starts a process and waits for its end. If the interrupt flag is set, kills the process with
    /// its tree and returns an error.
    pub(crate) fn run(
        &mut self,
        spawn: Spawn,
        interrupt: &Interrupt,
    ) -> Result<Answer, MeasureError> {
        if interrupt.load(Ordering::Relaxed) {
            return Err(MeasureError::Interrupted);
        }
        self.begin(spawn)?;
        loop {
            if let Some(answer) = self.poll(GLANCE)? {
                return Ok(answer);
            }
            self.end_if(interrupt)?;
        }
    }

    /// If the interrupt flag is set, kills the running process and returns an error.
    pub(crate) fn end_if(&mut self, interrupt: &Interrupt) -> Result<(), MeasureError> {
        if !interrupt.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.kill()?;
        Err(MeasureError::Interrupted)
    }

    /// Kills the running process, if any, with its tree, and waits until it is gone.
    pub(crate) fn kill(&mut self) -> Result<(), MeasureError> {
        if self.is_busy() {
            self.stop(Stop::Kill)?;
            self.finish()?;
        }
        Ok(())
    }

    fn is_busy(&self) -> bool {
        match self {
            Self::Process(process) => process.busy,
            Self::Simulated(_, answer) => answer.is_some(),
        }
    }
}

/// A launcher that is a process.
pub(crate) struct Process {
    process: Child,
    socket: BufReader<UnixStream>,
    /// Whether a requested process has not been reported as ended.
    busy: bool,
}

impl Process {
    /// Starts a launcher and waits until it is ready.
    fn start(program: &LauncherProgram) -> Result<Self, MeasureError> {
        let (near, far) = UnixStream::pair().map_err(|error| cannot_start(&error))?;
        let process = Command::new(&program.program)
            .args(&program.arguments)
            .stdin(Stdio::from(OwnedFd::from(far)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| cannot_start(&error))?;
        let mut launcher = Self {
            process,
            socket: BufReader::new(near),
            busy: false,
        };
        match launcher.reply()? {
            Reply::Ready => Ok(launcher),
            Reply::Unable(reason) => Err(unable(reason)),
            other => Err(launcher.misbehaved(&format!("answered {other:?}"))),
        }
    }

    /// Returns the id of the launcher's process, the parent of all processes that it starts.
    fn pid(&self) -> libc::pid_t {
        libc::pid_t::try_from(self.process.id()).unwrap_or(0)
    }

    /// Requests the start of a process, and does not wait for its end. Only one process may run at
    /// a time.
    fn begin(&mut self, spawn: Spawn) -> Result<(), MeasureError> {
        self.busy = true;
        self.send(&Request::Run(Box::new(spawn)))
    }

    /// Requests the end of the running process. The answer to the start request still arrives.
    fn stop(&mut self, stop: Stop) -> Result<(), MeasureError> {
        self.send(&Request::Stop(stop))
    }

    /// Waits at most `patience` for the end of the requested process. Returns `None` if the process
    /// has not ended.
    fn poll(&mut self, patience: Duration) -> Result<Option<Answer>, MeasureError> {
        if self.socket.buffer().is_empty() {
            let ready = wait::poll([self.socket.get_ref().as_fd()], Some(patience));
            let [ready] = ready.map_err(|error| self.misbehaved(&error.to_string()))?;
            if !ready {
                return Ok(None);
            }
        }
        let reply = self.reply()?;
        self.busy = false;
        match reply {
            Reply::Ended(outcome) => Ok(Some(Answer::Ended(outcome))),
            Reply::Refused(refusal) => Ok(Some(Answer::Refused(refusal))),
            Reply::Immortal(names) => Err(MeasureError::CannotKill { names }),
            Reply::Unable(reason) => Err(unable(reason)),
            Reply::Ready => Err(self.misbehaved("started twice")),
        }
    }

    fn send(&mut self, request: &Request) -> Result<(), MeasureError> {
        let line = serde_json::to_vec(request).map(|mut line| {
            line.push(b'\n');
            line
        });
        let line = line.map_err(|error| self.misbehaved(&error.to_string()))?;
        let sent = self.socket.get_mut().write_all(&line);
        sent.map_err(|error| self.misbehaved(&error.to_string()))
    }

    fn reply(&mut self) -> Result<Reply, MeasureError> {
        let mut line = String::new();
        match self.socket.read_line(&mut line) {
            Ok(0) => Err(self.misbehaved("closed its socket")),
            Ok(_) => {
                serde_json::from_str(&line).map_err(|error| self.misbehaved(&error.to_string()))
            }
            Err(error) => Err(self.misbehaved(&error.to_string())),
        }
    }

    /// Returns the error for a failed launcher. Its reason is the launcher's exit status or fatal
    /// signal, or `reason` if the launcher has not ended.
    fn misbehaved(&mut self, reason: &str) -> MeasureError {
        // The launcher closes its socket a moment before its process ends.
        std::thread::sleep(Duration::from_millis(20));
        let reason = match self.process.try_wait() {
            Ok(Some(status)) => match status.signal() {
                Some(signal) => format!("killed by signal {signal}"),
                None => format!("exit status {}", status.code().unwrap_or(-1)),
            },
            _ => reason.to_owned(),
        };
        MeasureError::Launcher {
            what: "ended",
            reason,
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // After the shutdown, the launcher kills its tree, which takes a few seconds at most.
        let _ = self.socket.get_ref().shutdown(std::net::Shutdown::Both);
        let _ = self.process.wait();
    }
}

fn unable(reason: String) -> MeasureError {
    MeasureError::Launcher {
        what: "cannot work on this machine",
        reason,
    }
}

fn cannot_start(error: &std::io::Error) -> MeasureError {
    MeasureError::Launcher {
        what: "cannot be started",
        reason: error.to_string(),
    }
}
