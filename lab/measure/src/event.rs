//! What a race tells while it goes on; the measurer itself prints nothing.

use heapdrome_schema::{Ending, MemoryRun, Run};

/// An entrant that left the race.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The entrant's place in the plan.
    pub entrant: usize,
    /// How its run ended.
    pub ending: Ending,
    /// In which part of the race, such as `round 3`.
    pub during: String,
    /// The last lines of its standard error.
    pub stderr_tail: String,
}

/// Something that happened in a race.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A warm-up round starts; `round` counts from 0.
    WarmupStarted {
        /// Which warm-up round.
        round: u32,
        /// How many there will be.
        of: u32,
    },
    /// A counted round starts or is taken up again.
    RoundStarted {
        /// Which round, from 0.
        round: u32,
        /// How many runs are left in it.
        runs: usize,
    },
    /// The `--prepare` command of an entrant's run starts.
    Preparing {
        /// The entrant's place in the plan.
        entrant: usize,
    },
    /// A run starts, warm-up runs included.
    RunStarted {
        /// The entrant's place in the plan.
        entrant: usize,
    },
    /// A run ended, well or not; warm-up runs included.
    RunEnded(&'a Run),
    /// A metric's pattern was not found in a run's output, or was not a number there.
    MetricMissing {
        /// The entrant's place in the plan.
        entrant: usize,
        /// The metric's name.
        name: &'a str,
    },
    /// An entrant left the race.
    EntrantFailed(&'a Failure),
    /// An untimed memory run starts.
    MemoryRunStarted {
        /// The entrant's place in the plan.
        entrant: usize,
    },
    /// An untimed memory run ended.
    MemoryRunEnded(&'a MemoryRun),
}

/// How a round ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundEnd {
    /// Which round, from 0.
    pub round: u32,
    /// The entrants that left the race in it, those of an earlier part of the round included.
    pub failed: Vec<usize>,
}
