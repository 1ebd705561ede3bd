//! Cache of unwound stacks, so that a call with a known stack is not unwound again.

use rustc_hash::FxHashMap;

use crate::snapshots::Snapshot;

/// Maximum number of cached stacks. Each takes about a kilobyte.
const REMEMBERED: usize = 1 << 14;

/// Maximum number of remembered stacks with equal caller registers, which are compared one by one.
const VARIANTS: usize = 8;

/// An unwound stack, with the memory contents on which the unwinding depended.
pub(crate) struct Unwound {
    /// Addresses that the unwinder read, each with the word there; `None` if the word was not
    /// copied.
    pub reads: Vec<(u64, Option<u64>)>,
    pub stack: u32,
}

/// Stacks that were unwound. The registers of the caller are the key.
#[derive(Default)]
pub(crate) struct Known {
    stacks: FxHashMap<[u64; 3], Vec<Unwound>>,
    number: usize,
}

impl Known {
    fn place(snapshot: Snapshot<'_>) -> [u64; 3] {
        let Snapshot {
            return_address,
            stack_pointer,
            frame_pointer,
            ..
        } = snapshot;
        [return_address, stack_pointer, frame_pointer]
    }

    /// Returns the number of a cached stack that equals the one in `snapshot`: the caller registers
    /// are equal, and so is every word that the unwinder read for the cached stack.
    pub(crate) fn find(&mut self, snapshot: Snapshot<'_>) -> Option<u32> {
        let variants = self.stacks.get_mut(&Self::place(snapshot))?;
        let place = variants.iter().position(|variant| {
            let mut reads = variant.reads.iter();
            reads.all(|&(address, word)| snapshot.read(address) == word)
        })?;
        // The next stack probably has the same calls, so move this one to the front.
        variants.swap(0, place);
        Some(variants[0].stack)
    }

    pub(crate) fn add(&mut self, snapshot: Snapshot<'_>, unwound: Unwound) {
        if self.number >= REMEMBERED {
            *self = Self::default();
        }
        let variants = self.stacks.entry(Self::place(snapshot)).or_default();
        if variants.len() >= VARIANTS {
            variants.pop();
        } else {
            self.number += 1;
        }
        variants.push(unwound);
    }
}
