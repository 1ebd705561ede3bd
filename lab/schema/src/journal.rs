//! Lines of a race's journal. Each line is on disk before the next run starts.

use serde::{Deserialize, Serialize};

use crate::{Ending, Evidence, Machine, MemoryRun, Plan, Proof, Run, Stopping};

/// One line of a journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case")]
pub enum JournalLine {
    /// The first line: the plan and the machine of the race. A later plan replaces the first and
    /// clears all earlier proofs and evidence; its machine is ignored. A later plan must precede
    /// the first run and keep every failed entrant at its position. It may replace other entrants
    /// or append more.
    Plan {
        /// Version of the journal's format.
        schema: u32,
        /// Plan of the race.
        plan: Box<Plan>,
        /// Machine on which the race runs.
        machine: Box<Machine>,
    },
    /// A proof was taken for an entrant, or taken again.
    Proof {
        /// Position of the entrant in the plan.
        entrant: usize,
        /// Proof, which replaces an earlier proof of the entrant.
        proof: Proof,
    },
    /// An entrant's memory was watched.
    Memory(MemoryRun),
    /// An untimed run tracked every block of an entrant.
    Evidence {
        /// Position of the entrant in the plan.
        entrant: usize,
        /// Findings of the run that tracked the blocks.
        evidence: Box<Evidence>,
    },
    /// A timed run ended successfully.
    Run(Box<Run>),
    /// An entrant failed and left the race.
    Failed {
        /// Position of the entrant in the plan.
        entrant: usize,
        /// Way in which the run failed.
        ending: Ending,
        /// Last phase of the race in which the entrant took part, such as `round 3`.
        during: String,
        /// Last lines of the run's standard error.
        stderr_tail: String,
    },
    /// All comparisons with an entrant are decided: every target on the entrant is decided, or
    /// another entrant was shown to beat it in the judged figures. The entrant runs no further
    /// rounds, and its row stays valid.
    Decided {
        /// Position of the entrant in the plan.
        entrant: usize,
        /// Number of rounds that the entrant ran.
        rounds: u32,
        /// Comparisons that were decided, in words.
        because: String,
    },
    /// New limits that replace those of the plan. They also resume a race that ended because of its
    /// old limits.
    Limits {
        /// Limits that apply from this line on.
        stopping: Stopping,
    },
    /// A remark for the readers of the result.
    Remark {
        /// Text of the remark. A resumed race does not report the remark again.
        text: String,
    },
    /// The race has ended.
    Finished {
        /// Reason why no further rounds were run.
        reason: String,
    },
}
