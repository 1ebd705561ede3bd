//! Costs and endings of single runs of the command.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Bytes, Nanoseconds};

/// Way in which a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The process returned this exit status.
    Exited(i32),
    /// This signal killed the process.
    Killed(i32),
    /// The run exceeded its time limit and was killed.
    TimedOut,
    /// The `--check` command rejected the result with this exit status.
    CheckFailed(i32),
    /// The output differs from the baseline's, although all entrants must print the same output.
    OutputDiffers,
}

impl fmt::Display for Ending {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(status) => write!(out, "exit status {status}"),
            Self::Killed(signal) => match signal_name(*signal) {
                Some(name) => write!(out, "killed by {name}"),
                None => write!(out, "killed by signal {signal}"),
            },
            Self::TimedOut => write!(out, "timed out"),
            Self::CheckFailed(status) => write!(out, "the check failed with status {status}"),
            Self::OutputDiffers => write!(out, "its output differs from the baseline's"),
        }
    }
}

/// Returns the usual name of a signal that often ends programs; `None` for any other signal.
fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        _ => return None,
    })
}

/// One timed run of the command under one entrant. For a server, the wall time is that of its load,
/// and all other costs are the server's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Index of the round, counted from 0. Warm-up rounds are not recorded.
    pub round: u32,
    /// Position of the run in its round, counted from 0.
    pub position: u32,
    /// Position of the entrant in the plan.
    pub entrant: usize,
    /// Time from the execution of the command until its end was detected.
    pub wall: Nanoseconds,
    /// Processor time in user mode of the child and its waited-for descendants.
    pub user: Nanoseconds,
    /// Processor time in the kernel of the child and its waited-for descendants.
    pub system: Nanoseconds,
    /// The largest resident set among the child and its waited-for descendants.
    pub peak_rss: Bytes,
    /// Page faults without I/O (minor faults).
    pub minor_faults: u64,
    /// Page faults with I/O (major faults).
    pub major_faults: u64,
    /// Number of times that a thread gave up the CPU voluntarily.
    pub voluntary_switches: u64,
    /// Number of times that the scheduler preempted a thread.
    pub involuntary_switches: u64,
    /// Way in which the run ended.
    pub ending: Ending,
    /// SHA-256 of standard output without its masked parts, if outputs are compared.
    pub output: Option<String>,
    /// Last lines of standard error, if the run failed.
    pub stderr_tail: String,
    /// Hardware and software counters by their names in perf, if the kernel supports them.
    pub counters: BTreeMap<String, u64>,
    /// Figures that the command printed about itself.
    pub metrics: BTreeMap<String, f64>,
    /// Length in bytes of the padding that was added to the environment for this run.
    pub environment_padding: u32,
    /// Programs that outlived the command and were stopped.
    pub detached: Vec<String>,
}
