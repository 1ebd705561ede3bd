//! Findings of an untimed run that tracked every block.

use serde::{Deserialize, Serialize};

/// Number and total size of the blocks in one range of sizes, up to a power of two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizeCount {
    /// Exclusive upper limit of the sizes in bytes, a power of two. Every size except 0 is at least
    /// half of this limit.
    pub below: u64,
    /// Number of requested blocks. A resized block counts again.
    pub blocks: u64,
    /// Sum of the blocks' sizes.
    pub bytes: u64,
}

/// System calls for memory, over the whole process tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemCalls {
    /// Number of anonymous mappings that were made.
    pub mmap: u64,
    /// Number of mappings that were removed, including mappings of files.
    pub munmap: u64,
    /// Number of mappings that were resized or moved.
    pub mremap: u64,
    /// Number of `madvise` calls, for example to purge pages.
    pub madvise: u64,
    /// Number of calls that move or query the end of the heap.
    pub brk: u64,
}

impl SystemCalls {
    /// Returns the total number of system calls.
    pub fn total(&self) -> u64 {
        self.mmap + self.munmap + self.mremap + self.madvise + self.brk
    }
}

/// Time that a run spends in calls of the allocator, estimated from timed calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallTime {
    /// Estimated time in all calls of the run, in seconds. This time includes page faults within
    /// the calls.
    pub spent_s: f64,
    /// Number of allocator calls in the run.
    pub calls: u64,
    /// Number of allocator calls that were timed.
    pub timed: u64,
}

/// Findings of one untimed run in which every block was tracked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Requested blocks by size, the smallest first. Sizes without blocks are omitted.
    pub sizes: Vec<SizeCount>,
    /// Number of blocks that were freed or resized.
    pub frees: u64,
    /// Number of freed or resized blocks that another thread had allocated (remote frees).
    pub freed_by_others: u64,
    /// Highest peak of live requested bytes in a single process.
    pub peak_live_bytes: u64,
    /// Sum of the peaks of all processes. Each peak includes the blocks inherited by fork.
    pub peak_live_of_all_bytes: u64,
    /// Highest amount of anonymous memory that a program had in huge pages at its end.
    pub huge_at_end_bytes: u64,
    /// System calls for memory, if they could be counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_calls: Option<SystemCalls>,
    /// Time in calls of the allocator, if enough calls were timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_time: Option<CallTime>,
}

impl Evidence {
    /// Returns the number of blocks that were requested.
    pub fn blocks(&self) -> u64 {
        self.sizes.iter().map(|size| size.blocks).sum()
    }

    /// Returns whether the peak of one process is at least 95% of the sum of all peaks. Only then
    /// can that peak be compared with the memory of the whole process tree.
    pub fn is_of_one_process(&self) -> bool {
        let rest =
            self.peak_live_of_all_bytes - self.peak_live_bytes.min(self.peak_live_of_all_bytes);
        rest * 20 <= self.peak_live_of_all_bytes
    }
}
