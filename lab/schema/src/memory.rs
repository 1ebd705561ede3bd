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

/// Composition of a process tree's memory at one moment. In `huge` and `lazily_freed`, a page that
/// several processes share counts fully for each of them. In all other fields, each process counts
/// its proportional share of the page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryParts {
    /// Time since the start of the run.
    pub at: Nanoseconds,
    /// Resident anonymous memory, including huge pages and lazily freed pages.
    pub anonymous: Bytes,
    /// Part of the anonymous memory in huge pages.
    pub huge: Bytes,
    /// Part of the anonymous memory that was freed with `MADV_FREE` and stays resident until the
    /// system needs it.
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

/// Part of a process's resident memory that malloc does not serve: its binary, its libraries with
/// their data, and the stack of its first thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageMemory {
    /// Resident pages of files, such as code.
    pub files: Bytes,
    /// Anonymous pages: written data, zeroed data and the stack.
    pub written: Bytes,
}

impl ImageMemory {
    /// Returns the total size of file pages and anonymous pages.
    pub fn resident(&self) -> Bytes {
        self.files + self.written
    }
}

/// Memory at the end of a period in which all processes of the tree were idle, or in which a server
/// had no load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AfterIdle {
    /// Duration of the idle period.
    pub idle: Nanoseconds,
    /// Composition of the memory at the end of the period.
    pub parts: MemoryParts,
}

/// One untimed run that watched memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemoryRun {
    /// Position of the entrant in the plan.
    pub entrant: usize,
    /// Peak of the tree's anonymous memory.
    pub peak_tree: Bytes,
    /// Method of reading, such as `cgroup v1 memory.stat every 5 ms`.
    pub method: String,
    /// Description of the memory that the method may miss or count more than once.
    pub error: String,
    /// Readings of the anonymous memory in order of time, thinned to at most 500. The reading with
    /// the most memory is kept.
    pub timeline: Vec<MemorySample>,
    /// Average of the tree's anonymous memory over time. For a server, only the time until the end
    /// of its load counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub average: Option<Bytes>,
    /// Composition of the memory over time, thinned to at most 100 readings. The reading with the
    /// most memory, including swapped memory, is kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<MemoryParts>,
    /// Method of reading the composition, and its possible errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts_method: Option<String>,
    /// Largest image of a process. Each reading considers only the process with the most anonymous
    /// memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageMemory>,
    /// Memory at the end of the longest idle period, if there was one. For a server with an idle
    /// time, memory at the end of the idle time that follows its load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_idle: Option<AfterIdle>,
}
