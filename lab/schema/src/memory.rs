//! The memory of process trees, from runs that are not timed.

use serde::{Deserialize, Serialize};

use crate::{Bytes, Nanoseconds};

/// One reading of a process tree's memory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemorySample {
    /// Time since the start of the run.
    pub at: Nanoseconds,
    /// Anonymous memory resident in the whole tree.
    pub anonymous: Bytes,
}

/// Composition of a process tree's memory at one moment. Shared pages are counted once, in
/// proportion to their sharers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryParts {
    /// Time since the start of the run.
    pub at: Nanoseconds,
    /// Resident anonymous memory, including huge pages and lazily freed pages.
    pub anonymous: Bytes,
    /// Part of the anonymous memory in huge pages.
    pub huge: Bytes,
    /// Part of the anonymous memory that was returned with `MADV_FREE` and stays until the system
    /// needs it.
    pub lazily_freed: Bytes,
    /// Resident pages of files, such as code.
    pub file: Bytes,
    /// Resident pages of shared memory (shmem, memfd).
    pub shared: Bytes,
    /// Anonymous memory that was swapped out and is not resident.
    pub swapped: Bytes,
}

impl MemoryParts {
    /// Returns the sum of all resident memory.
    pub fn resident(&self) -> Bytes {
        self.anonymous + self.file + self.shared
    }
}

/// Memory at the end of a period in which no process of the tree did anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AfterIdle {
    /// Duration of the idle period.
    pub idle: Nanoseconds,
    /// Composition of the memory at its end.
    pub parts: MemoryParts,
}

/// One untimed run that watched memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemoryRun {
    /// Position of the entrant in the plan.
    pub entrant: usize,
    /// Highest reading of the tree's anonymous memory.
    pub peak_tree: Bytes,
    /// Method of reading, such as `cgroup v1 memory.stat every 5 ms`.
    pub method: String,
    /// Memory that the method can miss or count twice.
    pub error: String,
    /// Readings in order, thinned to at most 500 with the highest kept.
    pub timeline: Vec<MemorySample>,
    /// Average of the tree's anonymous memory over time, until the load of a server ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub average: Option<Bytes>,
    /// Composition of the memory over time, thinned to at most 100 readings with the highest kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<MemoryParts>,
    /// Method of reading the composition, with its possible errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts_method: Option<String>,
    /// Memory after idling, if there was an idle period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_idle: Option<AfterIdle>,
}
