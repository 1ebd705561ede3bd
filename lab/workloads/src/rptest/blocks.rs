//! One thread's blocks of drawn sizes.

use super::sizes::Sizes;
use super::slot::Slot;
use crate::account::Account;
use crate::caller::{Caller, Tally};
use crate::random::{Random, mix};
use crate::{Failure, Heap, Parameter, Parameters, contents};

/// Whether blocks are asked for with an alignment.
pub(crate) const ALIGN: Parameter = Parameter {
    name: "align",
    meaning: "0: no alignment is asked for (malloc); 8 or 16: every block is asked for with this \
              alignment (posix_memalign); 3: a third of the blocks each, drawn at random",
    unit: "",
    default: 3,
    least: 0,
    most: 16,
};

/// Whether whole blocks are made resident.
pub(crate) const TOUCH: Parameter = Parameter {
    name: "touch",
    meaning: "1: write to every page of every block, so that resident memory can be compared with \
              requested; 0: write the first and last bytes only",
    unit: "",
    default: 1,
    least: 0,
    most: 1,
};

/// Says what is wrong with `align`.
pub(crate) fn check_align(parameters: &Parameters) -> Result<(), String> {
    match parameters.value("align") {
        0 | 3 | 8 | 16 => Ok(()),
        other => Err(format!("align must be 0, 3, 8 or 16, not {other}")),
    }
}

/// What blocks are like, for all threads.
#[derive(Debug)]
pub(crate) struct Kind {
    sizes: Sizes,
    alignments: [usize; 3],
    touch: bool,
    timed: bool,
    seed: u64,
}

impl Kind {
    /// Blocks of these sizes; the rest is as the parameters say.
    pub(crate) fn new(sizes: Sizes, parameters: &Parameters) -> Self {
        Self {
            sizes,
            alignments: match parameters.value("align") {
                3 => [0, 8, 16],
                one => [one as usize; 3],
            },
            touch: parameters.value("touch") == 1,
            timed: parameters.value("latency") == 1,
            seed: parameters.value("seed"),
        }
    }
}

/// One thread's way to blocks; to be made and dropped on that thread.
pub(crate) struct Blocks<'a, H: Heap> {
    kind: &'a Kind,
    caller: Caller<'a, H>,
    random: Random,
    key: u32,
}

impl<'a, H: Heap> Blocks<'a, H> {
    /// The blocks of a thread; each `stream` draws other sizes.
    pub(crate) fn new(kind: &'a Kind, heap: &'a H, account: &'a Account, stream: usize) -> Self {
        Self {
            kind,
            caller: Caller::new(heap, account, kind.timed),
            random: Random::new(kind.seed, stream),
            key: mix(mix(kind.seed) ^ stream as u64) as u32,
        }
    }

    /// A block of a size that is drawn.
    #[inline]
    pub(crate) fn allocate(&mut self) -> Result<Slot, Failure> {
        let bits = self.random.bits();
        let size = self.kind.sizes.draw(bits);
        // The size is all but settled by the high bits.
        let alignment = self.kind.alignments[(((bits & 0xFFFF) * 3) >> 16) as usize];
        self.key = self.key.wrapping_add(1);
        let key = self.key;
        let block = self
            .caller
            .allocate(size as usize, alignment, u64::from(key))?;
        if self.kind.touch {
            // SAFETY: the block has `size` bytes and is known here only.
            unsafe { contents::touch_pages(block, size as usize) };
        }
        Ok(Slot { block, size, key })
    }

    /// Frees a block after looking at its contents.
    ///
    /// # Safety
    /// `slot` holds a block that `allocate` gave on the same heap, to this thread or another, and
    /// that has not been freed since.
    #[inline]
    pub(crate) unsafe fn free(&mut self, slot: Slot) -> Result<(), Failure> {
        let (size, key) = (slot.size as usize, u64::from(slot.key));
        // SAFETY: the caller vouches for the block; size and key are those of its allocation.
        unsafe { self.caller.free(slot.block, size, key) }
    }

    /// Random bits for other ends than sizes.
    pub(crate) fn bits(&mut self) -> u64 {
        self.random.bits()
    }

    /// Passes this thread's count of requested bytes on.
    pub(crate) fn flush(&mut self) {
        self.caller.flush();
    }

    /// What was done.
    pub(crate) fn finish(self) -> Tally {
        self.caller.finish()
    }
}
