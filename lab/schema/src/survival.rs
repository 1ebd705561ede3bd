//! Results of a search for the smallest amount of memory that a command needs.

use serde::{Deserialize, Serialize};

/// Result of trying one limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Memory limit in bytes.
    pub limit_bytes: u64,
    /// Wall times of the runs that finished, in seconds.
    pub wall_s: Vec<f64>,
    /// Failure of the run that did not finish; `None` if all runs finished.
    pub failure: Option<String>,
    /// Number of times that the runs hit the limit on memory, or the limit on memory and swap
    /// together. Zero if the kernel does not count; see [`Survival::counts_hits`].
    pub limit_hits: u64,
    /// Number of processes that the kernel killed because they were out of memory.
    pub oom_kills: u64,
}

impl Trial {
    /// Returns whether every run finished.
    #[must_use]
    pub fn survived(&self) -> bool {
        self.failure.is_none()
    }

    /// Returns the number of runs. A failed run counts, too.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.wall_s.len() + usize::from(!self.survived())
    }
}

/// Slowdown under a multiple of the smallest limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Multiple {
    /// Factor by which the smallest limit is multiplied.
    pub times: f64,
    /// Runs under the multiplied limit.
    pub trial: Trial,
    /// Median time of the runs divided by the median without a limit; `None` if a run did not
    /// finish.
    pub slower: Option<f64>,
    /// Fastest and slowest run, each divided by the median without a limit, if `slower` is known.
    #[serde(default)]
    pub range: Option<[f64; 2]>,
}

/// Result of a search under one allocator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Survival {
    /// Name of the allocator.
    pub allocator: String,
    /// Whether swap was available in addition to the limit.
    pub swap: bool,
    /// Peak of charged memory without a limit, in bytes, including the page cache; zero if the
    /// kernel does not report it.
    pub peak_bytes: u64,
    /// Wall times of the runs without a memory limit, in seconds.
    pub unlimited_s: Vec<f64>,
    /// Smallest limit under which every run finished.
    pub smallest_bytes: Option<u64>,
    /// Runs under 1, 1.5 and 2 times the smallest limit.
    pub at: Vec<Multiple>,
    /// One trial for each limit that the search tried, in the order of the search.
    pub trials: Vec<Trial>,
    /// Reason why there is no smallest limit.
    pub failure: Option<String>,
}

impl Survival {
    /// Minimum number of runs with the limit, and of runs without a limit, for a meaningful
    /// slowdown. With fewer runs, the slowdown is mostly chance.
    pub const FEWEST_RUNS: usize = 3;

    /// Returns whether all runs of `trial` finished, and there are enough of them and of the runs
    /// without a limit to show a slowdown.
    #[must_use]
    pub fn shows_slowdown(&self, trial: &Trial) -> bool {
        let runs = trial.wall_s.len().min(self.unlimited_s.len());
        trial.survived() && runs >= Self::FEWEST_RUNS
    }

    /// Returns whether the kernel counts how often the limit is hit. An OOM kill is preceded by a
    /// hit, so a trial with kills and without hits shows that it does not. Under cgroup v1 without
    /// swap, recent kernels fail only the limit on memory and swap together, and count no failure
    /// of that limit.
    #[must_use]
    pub fn counts_hits(&self) -> bool {
        let mut trials = self.tried().into_iter();
        trials.all(|trial| trial.oom_kills == 0 || trial.limit_hits > 0)
    }

    /// Returns whether the smallest limit was tried with a single run. Another run might fail.
    #[must_use]
    pub fn tried_once(&self) -> bool {
        let tried = self.tried();
        let mut smallest = tried
            .iter()
            .filter(|trial| Some(trial.limit_bytes) == self.smallest_bytes);
        smallest.any(|trial| trial.runs() == 1)
    }

    /// Returns the largest limit that was too small, in bytes; zero if there is none. The command
    /// needs more than this limit, and at most [`smallest_bytes`](Self::smallest_bytes). A search
    /// ends when the two are as close as its precision requires.
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

    /// Returns one trial for each limit that was tried, in ascending order of the limits. The
    /// smallest limit is in both `trials` and `at`, so one of its trials is omitted.
    #[must_use]
    pub fn tried(&self) -> Vec<&Trial> {
        let multiples = self.at.iter().map(|at| &at.trial);
        let mut tried: Vec<&Trial> = self.trials.iter().chain(multiples).collect();
        tried.sort_by_key(|trial| trial.limit_bytes);
        tried.dedup_by_key(|trial| trial.limit_bytes);
        tried
    }
}
