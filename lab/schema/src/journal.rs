//! The lines of a race's journal: each is on disk before the next run starts.

use serde::{Deserialize, Serialize};

use crate::{Ending, Evidence, Machine, MemoryRun, Plan, Proof, Run, Stopping};

/// One line of a journal, in the order in which a race writes them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case")]
pub enum JournalLine {
    /// The first line: what the race is going to do, and where. Another one before the first run
    /// takes its place, and voids the proofs before it. It may replace entrants that have not
    /// failed, and add others at the end.
    Plan {
        /// The version of the journal's format.
        schema: u32,
        /// The plan.
        plan: Box<Plan>,
        /// The machine.
        machine: Box<Machine>,
    },
    /// An entrant's proof was taken, or taken again.
    Proof {
        /// The entrant's place in the plan.
        entrant: usize,
        /// What it showed.
        proof: Proof,
    },
    /// An entrant's memory was watched.
    Memory(MemoryRun),
    /// Every block of an entrant was followed.
    Evidence {
        /// The entrant's place in the plan.
        entrant: usize,
        /// What it showed.
        evidence: Box<Evidence>,
    },
    /// A timed run ended.
    Run(Box<Run>),
    /// An entrant left the race.
    Failed {
        /// The entrant's place in the plan.
        entrant: usize,
        /// How its run ended.
        ending: Ending,
        /// In which part of the race, such as `round 3` or `the run under the witness`.
        during: String,
        /// The last lines of its standard error.
        stderr_tail: String,
    },
    /// Nothing is open on an entrant: every target on it is decided, or it was shown to be beaten.
    /// It runs no more rounds, and its row counts.
    Decided {
        /// The entrant's place in the plan.
        entrant: usize,
        /// How many rounds it ran.
        rounds: u32,
        /// The comparisons that were decided, in words.
        because: String,
    },
    /// The race goes on until other limits than its plan's, also where it had ended by those.
    Limits {
        /// The limits.
        stopping: Stopping,
    },
    /// Something that a reader of the result must know, in words.
    Remark {
        /// The remark.
        text: String,
    },
    /// All rounds are done, and why no more were run.
    Finished {
        /// The reason, in words.
        reason: String,
    },
}
