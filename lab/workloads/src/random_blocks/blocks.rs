//! One thread's blocks of random sizes.

use super::sizes::Sizes;
use super::slot::Slot;
use crate::account::Account;
use crate::caller::{Caller, Tally};
use crate::random::{Random, mix};
use crate::{Failure, Heap, Parameters, contents};

/// Value of [`Kind::written`] that stands for a whole block.
const WHOLE: u64 = 1 << 16;

/// Properties of the blocks of all threads.
#[derive(Debug)]
pub(crate) struct Kind {
    sizes: Sizes,
    alignments: [usize; 3],
    /// Share of each block, from its start, whose pages are written, in units of 1 / [`WHOLE`].
    written: u64,
    timed: bool,
    seed: u64,
}

impl Kind {
    /// Creates the properties from these sizes and from the parameters. A workload without `align`
    /// uses malloc. A workload without `touch` has a parameter `written`, in percent.
    pub(crate) fn new(sizes: Sizes, parameters: &Parameters) -> Self {
        let percent = parameters.get("touch").map(|touch| 100 * touch);
        let percent = percent.unwrap_or_else(|| parameters.value("written"));
        Self {
            sizes,
            alignments: match parameters.get("align").unwrap_or(0) {
                3 => [0, 8, 16],
                one => [one as usize; 3],
            },
            written: percent * WHOLE / 100,
            timed: parameters.value("latency") == 1,
            seed: parameters.value("seed"),
        }
    }
}

/// One thread's access to blocks. Create and drop it on that thread.
pub(crate) struct Blocks<'a, H: Heap> {
    kind: &'a Kind,
    caller: Caller<'a, H>,
    random: Random,
    key: u32,
}

impl<'a, H: Heap> Blocks<'a, H> {
    /// Creates the access of a thread; each `stream` draws different sizes.
    pub(crate) fn new(kind: &'a Kind, heap: &'a H, account: &'a Account, stream: usize) -> Self {
        Self {
            kind,
            caller: Caller::new(heap, account, kind.timed),
            random: Random::new(kind.seed, stream),
            key: mix(mix(kind.seed) ^ stream as u64) as u32,
        }
    }

    /// Creates the access of a thread that is one of many. Each `number` draws different sizes.
    /// Unlike in [`new`](Self::new), a large number costs no more than a small one.
    pub(crate) fn of_task(kind: &'a Kind, heap: &'a H, account: &'a Account, number: u64) -> Self {
        let seed = mix(mix(kind.seed) ^ number);
        Self {
            kind,
            caller: Caller::new(heap, account, kind.timed),
            random: Random::new(seed, 0),
            key: mix(seed) as u32,
        }
    }

    /// Allocates a block of random size.
    #[inline]
    pub(crate) fn allocate(&mut self) -> Result<Slot, Failure> {
        let bits = self.random.bits();
        let size = self.kind.sizes.draw(bits);
        // The size depends almost only on the high bits, so the low bits are free for the
        // alignment.
        let alignment = self.kind.alignments[(((bits & 0xFFFF) * 3) >> 16) as usize];
        self.key = self.key.wrapping_add(1);
        let key = self.key;
        let block = self
            .caller
            .allocate(size as usize, alignment, u64::from(key))?;
        let written = u64::from(size) * self.kind.written / WHOLE;
        // SAFETY: the block has `size` bytes, `written` is at most `size`, and no other code uses
        // the block yet.
        unsafe { contents::touch_pages(block, written as usize) };
        Ok(Slot { block, size, key })
    }

    /// Frees a block after checking its contents.
    ///
    /// # Safety
    /// `slot` holds a block that `allocate` returned on the same heap, to this thread or another,
    /// and that has not been freed since. No other thread uses the block, and it is not used
    /// afterwards.
    #[inline]
    pub(crate) unsafe fn free(&mut self, slot: Slot) -> Result<(), Failure> {
        let (size, key) = (slot.size as usize, u64::from(slot.key));
        // SAFETY: by contract the block is in use, and no other thread uses it. It was allocated on
        // this heap with this size and key.
        unsafe { self.caller.free(slot.block, size, key) }
    }

    /// Checks the contents of a block and writes them again.
    ///
    /// # Safety
    /// `slot` holds a block that `allocate` returned on the same heap, to this thread or another,
    /// and that has not been freed since; no other thread uses it.
    pub(crate) unsafe fn rewrite(&mut self, slot: Slot) -> Result<(), Failure> {
        let (size, key) = (slot.size as usize, u64::from(slot.key));
        // SAFETY: by contract the block is in use, and no other thread uses it. It was allocated on
        // this heap with this size and key.
        unsafe { self.caller.rewrite(slot.block, size, key) }
    }

    /// Draws random bits for purposes other than sizes.
    pub(crate) fn bits(&mut self) -> u64 {
        self.random.bits()
    }

    /// Draws a number below `end`, which must not be 0, for purposes other than sizes.
    #[inline]
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.random.below(end)
    }

    /// Publishes this thread's count of requested bytes.
    pub(crate) fn flush(&mut self) {
        self.caller.flush();
    }

    /// Returns the work that was done.
    pub(crate) fn finish(self) -> Tally {
        self.caller.finish()
    }
}
