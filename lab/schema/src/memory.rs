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

/// What a process tree's memory was made of at one moment. Pages that processes share are counted
/// once, in proportion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryParts {
    /// Time since the start of the run.
    pub at: Nanoseconds,
    /// Resident anonymous memory, with its huge pages and its lazily freed ones.
    pub anonymous: Bytes,
    /// How much of it stands in huge pages.
    pub huge: Bytes,
    /// How much of it was given back with `MADV_FREE`, and stays until the system needs it.
    pub lazily_freed: Bytes,
    /// Resident pages of files, such as code.
    pub file: Bytes,
    /// Resident pages of shared memory (shmem, memfd).
    pub shared: Bytes,
    /// Anonymous memory that was swapped out, and is not resident.
    pub swapped: Bytes,
}

impl MemoryParts {
    /// All that is resident.
    pub fn resident(&self) -> Bytes {
        self.anonymous + self.file + self.shared
    }
}

/// Memory at the end of a time in which no process of the tree did anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AfterIdle {
    /// For how long nothing was done.
    pub idle: Nanoseconds,
    /// What the memory was made of then.
    pub parts: MemoryParts,
}

/// One untimed run that watched memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemoryRun {
    /// The entrant's place in the plan.
    pub entrant: usize,
    /// The highest reading of the tree's anonymous memory.
    pub peak_tree: Bytes,
    /// How it was read, such as `cgroup v1 memory.stat every 5 ms`.
    pub method: String,
    /// What the method can miss or count twice.
    pub error: String,
    /// The readings in order, thinned to at most 500 and with the highest kept.
    pub timeline: Vec<MemorySample>,
    /// The average of the tree's anonymous memory over time, until the load of a server ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub average: Option<Bytes>,
    /// What the memory was made of, thinned to at most 100 and with the highest kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<MemoryParts>,
    /// How the parts were read, and what that can miss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts_method: Option<String>,
    /// The memory after idling, where there was such a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_idle: Option<AfterIdle>,
}
