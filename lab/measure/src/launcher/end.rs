//! Termination of the processes that a launcher started, and of no others.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use heapdrome_schema::Ending;
use rustix::process::Signal;

use super::message::Usage;
use super::wait::{self, Reaped, Reaping};
use crate::tree::{self, Earlier, Process};

/// Time between SIGTERM and SIGKILL for descendants that outlived the awaited process.
const SWEEP_GRACE: Duration = Duration::from_secs(1);
/// Time within which killed processes must be gone.
const KILL_GRACE: Duration = Duration::from_secs(5);

/// Reason why a request to start a process has no outcome.
pub(super) enum Halt {
    /// The client is gone, its request is malformed or not expected, or waiting failed.
    Hangup,
    /// Some processes survive SIGKILL. The text contains their names.
    Immortal(String),
    /// The kernel refuses a required operation. The text describes the refusal.
    Unable(String),
}

/// A process that is being waited for, with all its descendants.
pub(super) struct Running {
    pid: libc::pid_t,
    /// Cost and ending of the process, once it has been reaped.
    reaped: Option<Reaped>,
    /// Resource usage of the orphans that were reaped.
    orphans: Usage,
    timed_out: bool,
    /// Processes that existed before the awaited process was started, and that may outlive it.
    earlier: Earlier,
}

impl Running {
    pub(super) fn new(pid: libc::pid_t, earlier: Earlier) -> Self {
        Self {
            pid,
            reaped: None,
            orphans: Usage::default(),
            timed_out: false,
            earlier,
        }
    }

    /// Creates an instance that awaits no process and has no earlier processes, so that
    /// [`Self::kill_tree`] kills every descendant of the launcher.
    pub(super) fn nothing() -> Self {
        Self::new(0, Earlier::default())
    }

    pub(super) fn pid(&self) -> libc::pid_t {
        self.pid
    }

    /// Reaps the children that have ended, and returns all remaining descendants of the launcher.
    pub(super) fn left(mut self) -> Earlier {
        if self.reap() {
            Earlier::default()
        } else {
            Earlier::below(tree::own_pid())
        }
    }

    /// Waits until the process ends, and reaps it.
    pub(super) fn wait_for(&mut self) -> io::Result<()> {
        self.reaped = Some(wait::wait_for(self.pid)?);
        Ok(())
    }

    /// Returns the cost and the ending of the process; `None` if it has not been reaped. With
    /// `with_orphans`, the cost includes that of the orphans that were reaped.
    pub(super) fn cost(self, with_orphans: bool) -> Option<(Usage, Ending)> {
        let reaped = self.reaped?;
        let usage = match with_orphans {
            true => reaped.usage.plus(self.orphans),
            false => reaped.usage,
        };
        let ending = match self.timed_out {
            true => Ending::TimedOut,
            false => reaped.ending,
        };
        Some((usage, ending))
    }

    /// Reaps every child that has ended. Returns whether no child is left, including earlier ones.
    pub(super) fn reap(&mut self) -> bool {
        loop {
            match wait::reap_any() {
                Reaping::Ended(reaped) if reaped.pid == self.pid => self.reaped = Some(reaped),
                Reaping::Ended(reaped) => self.orphans = self.orphans.plus(reaped.usage),
                Reaping::AllLive => return false,
                Reaping::Childless => return true,
            }
        }
    }

    /// Reaps until no child is left or `patience` has passed. Returns whether no child is left.
    fn reap_within(&mut self, patience: Duration) -> bool {
        let started = Instant::now();
        while !self.reap() {
            if started.elapsed() >= patience {
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        true
    }

    /// Marks the process as timed out, and kills it and its descendants.
    pub(super) fn time_out(&mut self) -> Result<(), Halt> {
        self.timed_out = true;
        self.kill_tree()
    }

    /// Kills the process and all its descendants except earlier ones, and reaps them.
    pub(super) fn kill_tree(&mut self) -> Result<(), Halt> {
        let started = Instant::now();
        // A list of processes misses those that start while it is read, so one empty list proves
        // nothing. If no earlier process is alive, the absence of children is enough proof.
        let mut empty_lists = 0;
        while !self.reap() {
            let left = self.descendants();
            let is_over = self.pid == 0 || self.reaped.is_some();
            empty_lists = if left.is_empty() { empty_lists + 1 } else { 0 };
            if is_over && empty_lists > 1 && !self.earlier.is_empty() {
                return Ok(());
            }
            if started.elapsed() >= KILL_GRACE {
                return Err(Halt::Immortal(described(&left)));
            }
            self.send(&left, Signal::KILL);
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Stops the descendants that outlived the awaited process, except earlier ones, and returns
    /// their names.
    pub(super) fn sweep(&mut self) -> Result<Vec<String>, Halt> {
        if self.reap() {
            return Ok(Vec::new());
        }
        let left = self.descendants();
        let mut names: Vec<String> = left
            .iter()
            .filter_map(|process| tree::name_of_live(process.pid))
            .collect();
        names.sort();
        self.send(&left, Signal::TERM);
        if !self.reap_within(SWEEP_GRACE) {
            self.kill_tree()?;
        }
        Ok(names)
    }

    fn descendants(&self) -> Vec<Process> {
        tree::processes_below(tree::own_pid(), &self.earlier)
    }

    /// Sends `signal` to every process of `processes` that still exists. Some may have ended since
    /// they were listed, and their ids may have been reused. A pidfd therefore pins each process
    /// while it is checked again, and only a matching process receives the signal.
    fn send(&self, processes: &[Process], signal: Signal) {
        for process in processes {
            let pidfd = wait::pidfd(process.pid);
            if !tree::is_below(process, tree::own_pid(), &self.earlier) {
                continue;
            }
            let sent = pidfd.and_then(|pidfd| wait::send_to(pidfd.as_fd(), signal));
            if sent.is_err() {
                // Without a pidfd, the check above must suffice.
                wait::send(process.pid, signal);
            }
        }
    }
}

fn described(processes: &[Process]) -> String {
    let described = processes.iter().map(|&Process { pid, .. }| {
        let name = tree::name_of_live(pid).unwrap_or_else(|| "unnamed".to_owned());
        format!("{name} ({pid})")
    });
    described.collect::<Vec<_>>().join(", ")
}
