//! Findings of an untimed run that followed every block.

use serde::{Deserialize, Serialize};

/// Blocks whose sizes have the same number of binary digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizeCount {
    /// Power of two above all sizes, in bytes. Each size is at least half of it, except 0.
    pub below: u64,
    /// How many were asked for; a block that is resized counts again.
    pub blocks: u64,
    /// Their sizes, added up.
    pub bytes: u64,
}

/// Calls to the system for memory, of the whole process tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemCalls {
    /// Anonymous mappings made.
    pub mmap: u64,
    /// Mappings taken away, files' among them.
    pub munmap: u64,
    /// Mappings resized or moved.
    pub mremap: u64,
    /// Advice given, such as to take pages away.
    pub madvise: u64,
    /// Calls that move the end of the heap, or ask where it is.
    pub brk: u64,
}

impl SystemCalls {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.mmap + self.munmap + self.mremap + self.madvise + self.brk
    }
}

/// Time in calls of the allocator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallTime {
    /// Estimate for all calls of the run in seconds, page faults within them included.
    pub spent_s: f64,
    /// Calls of the run.
    pub calls: u64,
    /// How many of them gave a time.
    pub timed: u64,
}

/// Findings of one untimed run in which every block was followed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Blocks that were asked for, by size, the smallest first; sizes without blocks are left out.
    pub sizes: Vec<SizeCount>,
    /// Blocks that were freed or resized.
    pub frees: u64,
    /// How many of those another thread had asked for.
    pub freed_by_others: u64,
    /// Most bytes that lived at one time in one process, as the program asked for them.
    pub peak_live_bytes: u64,
    /// The peaks of all processes added up, each with what it inherited by fork.
    pub peak_live_of_all_bytes: u64,
    /// Anonymous memory in huge pages when the process with the most of it ended.
    pub huge_at_end_bytes: u64,
    /// Calls to the system for memory, where they could be counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_calls: Option<SystemCalls>,
    /// Time in calls of the allocator, where enough of them were timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_time: Option<CallTime>,
}

impl Evidence {
    /// Blocks that were asked for.
    pub fn blocks(&self) -> u64 {
        self.sizes.iter().map(|size| size.blocks).sum()
    }

    /// Whether one process had nearly all of the live bytes, so that they can be compared with the
    /// memory of the whole tree.
    pub fn is_of_one_process(&self) -> bool {
        let rest =
            self.peak_live_of_all_bytes - self.peak_live_bytes.min(self.peak_live_of_all_bytes);
        rest * 20 <= self.peak_live_of_all_bytes
    }
}
