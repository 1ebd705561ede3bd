//! What a search for the least memory of a command found.

use serde::{Deserialize, Serialize};

/// What came of one limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The limit of memory in bytes.
    pub limit_bytes: u64,
    /// Wall times of the runs that finished, in seconds.
    pub wall_s: Vec<f64>,
    /// How the run ended that did not finish; `None` if all did.
    pub failure: Option<String>,
    /// How often the limit was met, of memory or with swap, over all runs.
    pub limit_hits: u64,
    /// Processes that were killed for memory.
    pub oom_kills: u64,
}

impl Trial {
    /// Whether every run finished.
    #[must_use]
    pub fn survived(&self) -> bool {
        self.failure.is_none()
    }

    /// How often it was tried: the runs that finished, and the one that did not.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.wall_s.len() + usize::from(!self.survived())
    }
}

/// What a multiple of the smallest limit is worth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Multiple {
    /// How many times the smallest limit.
    pub times: f64,
    /// The runs.
    pub trial: Trial,
    /// The median of their times over that without a limit; none where a run did not finish.
    pub slower: Option<f64>,
    /// The fastest and the slowest of the runs over the same, where `slower` is known.
    #[serde(default)]
    pub range: Option<[f64; 2]>,
}

/// What came of a search under one allocator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Survival {
    /// The allocator.
    pub allocator: String,
    /// Whether there was swap beside the limit.
    pub swap: bool,
    /// The most memory that was charged without a limit, in bytes; page cache is part of it. Zero
    /// where the kernel does not tell it.
    pub peak_bytes: u64,
    /// Wall times without a limit, in seconds.
    pub unlimited_s: Vec<f64>,
    /// The smallest limit under which every run finished.
    pub smallest_bytes: Option<u64>,
    /// Runs under 1, 1.5 and 2 times that.
    pub at: Vec<Multiple>,
    /// Every limit that was tried in the search, in that order.
    pub trials: Vec<Trial>,
    /// Why there is no smallest limit.
    pub failure: Option<String>,
}

impl Survival {
    /// Runs, under a limit and without one, that show how much slower a command is; the time of
    /// fewer is mostly chance.
    pub const FEWEST_RUNS: usize = 3;

    /// Whether the runs under a limit all finished, and are enough to show how much slower the
    /// command is.
    #[must_use]
    pub fn shows_slowdown(&self, trial: &Trial) -> bool {
        let runs = trial.wall_s.len().min(self.unlimited_s.len());
        trial.survived() && runs >= Self::FEWEST_RUNS
    }

    /// Whether the smallest limit rests on a single run: another might not finish under it.
    #[must_use]
    pub fn tried_once(&self) -> bool {
        let tried = self.tried();
        let mut smallest = tried
            .iter()
            .filter(|trial| Some(trial.limit_bytes) == self.smallest_bytes);
        smallest.any(|trial| trial.runs() == 1)
    }

    /// The largest limit that was too small, in bytes; zero if none was. The command needs more
    /// than this, and at most [`smallest_bytes`](Self::smallest_bytes): a search ends when the two
    /// are as close as its precision asks.
    #[must_use]
    pub fn insufficient_bytes(&self) -> u64 {
        let smallest = self.smallest_bytes.unwrap_or(u64::MAX);
        let failed = self.trials.iter().filter(|trial| !trial.survived());
        let limits = failed.map(|trial| trial.limit_bytes);
        limits
            .filter(|limit| *limit < smallest)
            .max()
            .unwrap_or_default()
    }

    /// Every limit that was tried, by size, each once: a search may end on one that it has tried.
    #[must_use]
    pub fn tried(&self) -> Vec<&Trial> {
        let multiples = self.at.iter().map(|at| &at.trial);
        let mut tried: Vec<&Trial> = self.trials.iter().chain(multiples).collect();
        tried.sort_by_key(|trial| trial.limit_bytes);
        tried.dedup_by_key(|trial| trial.limit_bytes);
        tried
    }
}
