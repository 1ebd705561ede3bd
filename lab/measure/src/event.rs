//! Events that a race reports while it runs. The measurer itself prints nothing.

use heapdrome_schema::{Ending, MemoryRun, Run};

/// An entrant that left the race.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// Position of the entrant in the plan.
    pub entrant: usize,
    /// Way in which the entrant's last run ended.
    pub ending: Ending,
    /// Phase of the race in which the entrant failed, such as `round 3`.
    pub during: String,
    /// Last lines of the run's standard error.
    pub stderr_tail: String,
}

/// An event in a race.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A warm-up round starts.
    WarmupStarted {
        /// Number of the warm-up round, from 0.
        round: u32,
        /// Total number of warm-up rounds.
        of: u32,
    },
    /// A counted round starts or is resumed.
    RoundStarted {
        /// Number of the round, from 0.
        round: u32,
        /// Number of runs left in the round.
        runs: usize,
    },
    /// The `--prepare` command of an entrant's run starts.
    Preparing {
        /// Position of the entrant in the plan.
        entrant: usize,
    },
    /// A run starts, warm-up runs included.
    RunStarted {
        /// Position of the entrant in the plan.
        entrant: usize,
    },
    /// A run ended, successfully or not; warm-up runs included.
    RunEnded(&'a Run),
    /// A metric's pattern did not match a successful run's output, or its match is not a number.
    /// Missing optional figures of the plan are not reported.
    MetricMissing {
        /// Position of the entrant in the plan.
        entrant: usize,
        /// Name of the metric.
        name: &'a str,
    },
    /// An entrant left the race.
    EntrantFailed(&'a Failure),
    /// An untimed memory run starts.
    MemoryRunStarted {
        /// Position of the entrant in the plan.
        entrant: usize,
    },
    /// An untimed memory run ended.
    MemoryRunEnded(&'a MemoryRun),
}

/// Result of a completed round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundEnd {
    /// Number of the round, from 0.
    pub round: u32,
    /// Entrants that left the race in the round, including the part of the round before an
    /// interruption.
    pub failed: Vec<usize>,
}
