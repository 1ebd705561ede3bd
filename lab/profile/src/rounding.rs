//! Sums the bytes that blocks take under the size classes of each of [`ALLOCATORS`].

use crate::counts::Rounded;
use crate::size_classes::{ALLOCATORS, COUNT};

/// Number of sizes whose results are cached. Programs use few sizes, and evaluating every
/// allocator's function for each call would take most of a pass's time.
const REMEMBERED: usize = 256;

/// A size, an alignment, and the bytes that each allocator takes for them.
type Known = (u64, u64, [u64; COUNT]);

/// Bytes that the blocks of one process take under each of [`ALLOCATORS`].
#[derive(Debug)]
pub(crate) struct Rounding {
    live: [u64; COUNT],
    pub counts: [Rounded; COUNT],
    /// Cached results. A hash of size and alignment gives the index of an entry.
    known: Vec<Option<Known>>,
}

impl Rounding {
    pub(crate) fn new() -> Self {
        Self {
            live: [0; COUNT],
            counts: [Rounded::default(); COUNT],
            known: vec![None; REMEMBERED],
        }
    }

    /// Counts equal blocks that were made.
    pub(crate) fn made(&mut self, size: u64, alignment: u64, blocks: u64) {
        let rounded = self.rounded(size, alignment);
        for ((live, count), bytes) in self.live.iter_mut().zip(&mut self.counts).zip(rounded) {
            let bytes = bytes.saturating_mul(blocks);
            *live = live.saturating_add(bytes);
            count.made = count.made.saturating_add(bytes);
            count.most_live = count.most_live.max(*live);
        }
    }

    /// Counts equal blocks that were freed.
    pub(crate) fn freed(&mut self, size: u64, alignment: u64, blocks: u64) {
        let rounded = self.rounded(size, alignment);
        for (live, bytes) in self.live.iter_mut().zip(rounded) {
            *live = live.saturating_sub(bytes.saturating_mul(blocks));
        }
    }

    fn rounded(&mut self, size: u64, alignment: u64) -> [u64; COUNT] {
        let place = ((size >> 3) ^ size ^ alignment) as usize % REMEMBERED;
        match self.known[place] {
            Some((known, aligned, rounded)) if (known, aligned) == (size, alignment) => rounded,
            _ => {
                let rounded = ALLOCATORS.map(|allocator| (allocator.round)(size, alignment));
                self.known[place] = Some((size, alignment, rounded));
                rounded
            }
        }
    }
}
