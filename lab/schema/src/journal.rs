//! Lines of a race's journal. Each line is on disk before the next run starts.

use serde::{Deserialize, Serialize};

use crate::{Ending, Evidence, Machine, MemoryRun, Plan, Proof, Run, Stopping};

/// One line of a journal. The variants are in the order in which a race writes them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case")]
pub enum JournalLine {
    /// The first line: the plan of the race, and its machine. A second line of this kind replaces
    /// the first and clears all earlier proofs; it must precede the first run. It may replace
    /// entrants that have not failed, and append others.
    Plan {
        /// Version of the journal's format.
        schema: u32,
        /// The plan.
        plan: Box<Plan>,
        /// The machine.
        machine: Box<Machine>,
    },
    /// A proof was taken for an entrant, or taken again.
    Proof {
        /// Position of the entrant in the plan.
        entrant: usize,
        /// The proof.
        proof: Proof,
    },
    /// An entrant's memory was watched.
    Memory(MemoryRun),
    /// Every block of an entrant was tracked.
    Evidence {
        /// Position of the entrant in the plan.
        entrant: usize,
        /// The findings.
        evidence: Box<Evidence>,
    },
    /// A timed run ended successfully.
    Run(Box<Run>),
    /// An entrant left the race.
    Failed {
        /// Position of the entrant in the plan.
        entrant: usize,
        /// Way in which the run failed.
        ending: Ending,
        /// Phase of the race, such as `round 3` or `the run under the witness`.
        during: String,
        /// Last lines of the run's standard error.
        stderr_tail: String,
    },
    /// All comparisons with an entrant are decided: every target on it is decided, or it was shown
    /// to be beaten. It runs no further rounds, and its row stays valid.
    Decided {
        /// Position of the entrant in the plan.
        entrant: usize,
        /// Number of rounds that the entrant ran.
        rounds: u32,
        /// Comparisons that were decided, in words.
        because: String,
    },
    /// New limits that replace those of the plan. They also resume a race that had ended by its old
    /// limits.
    Limits {
        /// The limits.
        stopping: Stopping,
    },
    /// A remark for the readers of the result.
    Remark {
        /// The remark.
        text: String,
    },
    /// All rounds are done.
    Finished {
        /// Reason why no further rounds were run.
        reason: String,
    },
}
