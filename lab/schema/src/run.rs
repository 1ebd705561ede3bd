//! What single runs of the command cost.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Bytes, Nanoseconds};

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// It returned this exit status.
    Exited(i32),
    /// This signal killed it.
    Killed(i32),
    /// It ran out of time and was killed.
    TimedOut,
    /// The `--check` command found its result wrong, with this exit status.
    CheckFailed(i32),
    /// It printed something else than the baseline, where all entrants must print the same.
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

/// The usual name of a signal, where it is one that ends programs.
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

/// One timed run of the command under one entrant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The round, counted from 0; warm-up rounds are not recorded.
    pub round: u32,
    /// The place within the round, counted from 0.
    pub position: u32,
    /// The entrant's place in the plan.
    pub entrant: usize,
    /// From the moment at which the process executed the command until its end was known.
    pub wall: Nanoseconds,
    /// CPU time in user mode of the child and its waited-for descendants.
    pub user: Nanoseconds,
    /// CPU time in the kernel of the same.
    pub system: Nanoseconds,
    /// The largest resident set among the child and its waited-for descendants.
    pub peak_rss: Bytes,
    /// Page faults that needed no input or output.
    pub minor_faults: u64,
    /// Page faults that did.
    pub major_faults: u64,
    /// Times that a thread gave up the CPU by itself.
    pub voluntary_switches: u64,
    /// Times that the scheduler took it away.
    pub involuntary_switches: u64,
    /// How the command ended.
    pub ending: Ending,
    /// SHA-256 of standard output, where output is compared.
    pub output: Option<String>,
    /// The last lines of standard error, where the run failed.
    pub stderr_tail: String,
    /// Hardware and software counters by the names that perf gives them, where the kernel has them.
    pub counters: BTreeMap<String, u64>,
    /// Figures that the command printed about itself.
    pub metrics: BTreeMap<String, f64>,
    /// Bytes by which the environment was lengthened in this run.
    pub environment_padding: u32,
    /// Programs that outlived the command and were stopped.
    pub detached: Vec<String>,
}
