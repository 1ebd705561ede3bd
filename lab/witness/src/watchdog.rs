//! Kills a process tree that must end: after a timeout, an interrupt, a dropped session, or the end
//! of the command.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::inspect::{Inspection, inspect};
use crate::objects::Objects;

/// Interval between the watchdog's checks.
const STEP: Duration = Duration::from_millis(20);

/// Time for which other processes may outlive the command.
const GRACE: Duration = Duration::from_millis(200);

/// Reason why the watchdog killed a tree before the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// No timeout or interrupt. The watchdog may still have killed the tree of a dropped session,
    /// or processes that outlived the command.
    None,
    /// The tree ran out of time.
    Time,
    /// The user interrupted the run.
    Interrupt,
}

#[derive(Debug, Default)]
struct State {
    live: BTreeSet<i32>,
    looks: HashMap<i32, Inspection>,
    leader_ended: Option<Instant>,
    finished: bool,
}

/// State that the tracer and the watchdog share.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    state: Mutex<State>,
    changed: Condvar,
    cut: AtomicU8,
    abandoned: AtomicBool,
}

impl Watch {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a process began.
    pub(crate) fn born(&self, pid: i32) {
        self.state().live.insert(pid);
    }

    /// Records the death of a process before it is reaped, because the kernel may reuse its ID
    /// afterwards. Returns the inspection of its memory if the watchdog made one before it killed
    /// the process.
    pub(crate) fn died(&self, pid: i32) -> Option<Inspection> {
        let mut state = self.state();
        state.live.remove(&pid);
        state.looks.remove(&pid)
    }

    /// Returns whether a process is among those that the watchdog kills if the tree must end.
    #[cfg(test)]
    pub(crate) fn knows(&self, pid: i32) -> bool {
        self.state().live.contains(&pid)
    }

    /// Records that the command itself ended.
    pub(crate) fn leader_ended(&self) {
        self.state().leader_ended = Some(Instant::now());
        self.changed.notify_all();
    }

    /// Returns whether the command itself has ended.
    pub(crate) fn has_leader_ended(&self) -> bool {
        let state = self.state();
        state.finished || state.leader_ended.is_some()
    }

    /// Records that the tracer has ended, with or without an error.
    pub(crate) fn finished(&self) {
        self.state().finished = true;
        self.changed.notify_all();
    }

    /// Records that the session was dropped.
    pub(crate) fn abandon(&self) {
        self.abandoned.store(true, Ordering::Release);
        self.changed.notify_all();
    }

    /// Returns the timeout or interrupt for which the watchdog killed the tree.
    pub(crate) fn cut(&self) -> Cut {
        match self.cut.load(Ordering::Acquire) {
            1 => Cut::Time,
            2 => Cut::Interrupt,
            _ => Cut::None,
        }
    }

    /// Sends a signal to the process group that the process `pid` leads, if that process is still
    /// alive.
    pub(crate) fn signal_group(&self, pid: i32, signal: i32) {
        let state = self.state();
        if state.live.contains(&pid) {
            // SAFETY: kill has no precondition. The ID cannot belong to the group of another
            // process: `died` removes a process from `live` before it is reaped, and `state` is
            // locked.
            unsafe { libc::kill(-pid, signal) };
        }
    }

    /// Checks the tree regularly until it has ended, and kills it if necessary.
    pub(crate) fn guard(
        &self,
        deadline: Option<Instant>,
        interrupt: &Arc<AtomicBool>,
        library: &Path,
        objects: &Objects,
    ) {
        let mut state = self.state();
        while !state.finished {
            let running = state.leader_ended.is_none();
            if running && interrupt.load(Ordering::Acquire) {
                self.cut.store(2, Ordering::Release);
            } else if running && deadline.is_some_and(|end| Instant::now() >= end) {
                self.cut.store(1, Ordering::Release);
            }
            let outlived = state.leader_ended.is_some_and(|end| end.elapsed() >= GRACE);
            let must_end = self.cut() != Cut::None || self.abandoned.load(Ordering::Acquire);
            if must_end || outlived {
                kill_all(&mut state, library, objects);
            }
            state = self.wait(state);
        }
    }

    /// Kills the tree, and waits until it has ended.
    pub(crate) fn kill_until_finished(&self) {
        let mut state = self.state();
        while !state.finished {
            state.live.iter().for_each(|&pid| kill(pid));
            state = self.wait(state);
        }
    }

    /// Waits for a change, at most for one [`STEP`].
    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let waited = self.changed.wait_timeout(state, STEP);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Inspects each live process a last time and kills it. [`Watch::guard`] calls this again for
/// processes that are created in the meantime.
fn kill_all(state: &mut State, library: &Path, objects: &Objects) {
    for &pid in &state.live {
        if let Some(look) = inspect(pid, library, objects) {
            state.looks.entry(pid).or_insert(look);
        }
        kill(pid);
    }
}

/// Kills a process of [`State::live`]. The caller has locked the state.
fn kill(pid: i32) {
    // SAFETY: kill has no precondition. The ID cannot belong to another process: `Watch::died`
    // removes a process from `live` before it is reaped, and the caller has locked the state.
    unsafe { libc::kill(pid, libc::SIGKILL) };
}
