//! Descriptors of slabs, and their bitmaps of free blocks. They lie out of band: no byte of a slab
//! is read or written by the allocator.

use heapdrome_pages::atomic::{AtomicPtr, Ordering::Relaxed};

use crate::size_class::{Geometry, SizeClass, UNIT};
use crate::slabs::bin::Bin;
use crate::slabs::bit_runs::{bits_of, fill, only_run, run_of, set_range};

/// Words of bitmap that a descriptor holds itself: enough for blocks from 128 bytes on.
pub const INLINE_WORDS: usize = 8;

/// Words of the largest bitmap: that of a unit of the smallest blocks.
pub const MOST_WORDS: usize = UNIT / 16 / 64;

/// When blocks of a slab were last taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Drawn {
    /// Before free blocks of it were last purged.
    NotSincePurge,
    /// Since then, but before the last look of whoever purges.
    BeforeLook,
    /// Since that look.
    SinceLook,
}

/// Where a slab stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Place {
    /// No slab: the unit is free, or lies within a slab or run that begins elsewhere.
    Nowhere = 0,
    /// No block is free. In no list.
    Full,
    /// Being refilled from. In no list.
    Active,
    /// In one of its bin's lists.
    Listed,
    /// Taken out of the lists by whoever purges its free pages. Still its bin's, so that blocks come
    /// back to it; none are taken, and it does not leave the bin even when it is empty.
    Claimed,
    /// A run of units that is one block.
    Large,
}

/// What is known about a slab, or about a large run.
///
/// There is one for each unit of an arena; that of a slab's first unit describes the slab. All but
/// `bin`, `base`, `class`, `head_distance` and `units` belong to whoever holds the lock of the
/// slab's bin. Those change only while no block of the slab is in use outside of the back-end.
///
/// Invariants (see [`check`](Self::check)): `free` is the number of set bits, and `least` no larger; bits from
/// `blocks` on are clear; no word before `hint` has a set bit.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Slab {
    /// The first block.
    pub base: *mut u8,
    /// The bin that the slab belongs to.
    pub bin: AtomicPtr<Bin>,
    /// The next slab in a list.
    pub next: *mut Slab,
    /// The one before.
    pub prev: *mut Slab,
    /// One bit per block, set where it is free.
    pub bits: *mut u64,
    /// Units of the slab or run.
    pub units: u32,
    /// How many units before this one the slab or run begins.
    pub head_distance: u32,
    /// Blocks that are free.
    pub free: u16,
    /// While fewer are free, giving one back changes nothing but the bitmap and the counts: the
    /// slab stays where it stands.
    pub settled: u16,
    /// The first word of the bitmap that may have a set bit.
    pub hint: u16,
    /// The class of the blocks.
    pub class: SizeClass,
    /// Which list.
    pub bucket: u8,
    /// Where the slab stands.
    pub place: Place,
    /// When blocks were last taken, for whoever purges.
    pub drawn: Drawn,
    /// The fewest blocks that were free since then: blocks are taken lowest first, so that the last ones lay idle.
    pub least: u16,
    /// How many of the last free blocks were purged. Exact where none was taken since: what comes back behind them is
    /// taken for one of them.
    pub purged: u16,
    /// How many of the last free blocks are to be purged.
    pub due: u16,
    inline: [u64; INLINE_WORDS],
}

const _: () = assert!(size_of::<Slab>() == 128);

/// A pointer that `free` must not have been given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misuse {
    /// The block is free already.
    DoubleFree(usize),
    /// No block begins there.
    NotABlock(usize),
    /// Something was written behind the last byte of the block.
    Overflow(usize),
    /// Something was written before the first byte of the block, or behind the last.
    Around(usize),
    /// The block was allocated with another size than it is given back with.
    OtherSize(usize),
    /// The block was written to after it was freed.
    WrittenAfterFree(usize),
}

impl Slab {
    /// Makes an unused descriptor that of an empty slab. `external` holds the bitmap where the
    /// descriptor's own words do not suffice.
    ///
    /// # Safety
    ///
    /// `slab` is a descriptor that nobody else uses, `base` the memory of its unit and of as many
    /// after it as `class` wants, `external` null or as many words as the class wants, unused.
    pub unsafe fn start(slab: *mut Self, base: *mut u8, class: SizeClass, external: *mut u64) {
        let shape = class.geometry();
        // SAFETY: the caller's promise; bits is then valid for the words of the class.
        unsafe {
            (*slab).base = base;
            (*slab).bits = if external.is_null() {
                (&raw mut (*slab).inline).cast()
            } else {
                external
            };
            (*slab).units = u32::from(shape.units);
            (*slab).head_distance = 0;
            (*slab).free = shape.blocks;
            (*slab).hint = 0;
            (*slab).class = class;
            (*slab).drawn = Drawn::NotSincePurge;
            (*slab).least = 0;
            (*slab).purged = 0;
            (*slab).due = 0;
            let words = shape.words();
            for word in 0..words {
                *(*slab).bits.add(word) = !0;
            }
            let tail = usize::from(shape.blocks) % 64;
            if tail != 0 {
                *(*slab).bits.add(words - 1) = (1 << tail) - 1;
            }
        }
    }

    /// True where the class's bitmap does not fit into a descriptor.
    #[must_use]
    pub const fn needs_external(shape: &Geometry) -> bool {
        shape.words() > INLINE_WORDS
    }

    /// The bitmap, where the descriptor does not hold it itself; else null.
    ///
    /// # Safety
    ///
    /// `slab` is the descriptor of a slab that the caller owns.
    #[must_use]
    pub unsafe fn external_bits(slab: *mut Self) -> *mut u64 {
        // SAFETY: the caller's promise.
        unsafe {
            let bits = (*slab).bits;
            let own = core::ptr::eq(bits, (&raw const (*slab).inline).cast());
            if own { core::ptr::null_mut() } else { bits }
        }
    }

    /// The bin. It may be another one as soon as it has been read, until its lock is held.
    ///
    /// # Safety
    ///
    /// `slab` is the descriptor of a slab.
    #[inline]
    pub unsafe fn bin_of(slab: *mut Self) -> *mut Bin {
        // SAFETY: the caller's promise. Relaxed: the reader takes the bin's lock and looks again.
        unsafe { (*slab).bin.load(Relaxed) }
    }

    /// Takes up to `want` free blocks, lowest address first, into the slots from `slots` on, highest
    /// address first: a magazine gives its last slot first, so the program gets ascending addresses.
    /// Returns how many.
    ///
    /// # Safety
    ///
    /// The caller holds the lock of the slab's bin; `slots` has room for `want` pointers.
    pub unsafe fn take(slab: *mut Self, slots: *mut *mut u8, want: usize) -> usize {
        // SAFETY: the lock makes the descriptor the caller's; a set bit's index is below the number
        // of blocks, so that its address lies in the slab; left counts the slots still to fill, all
        // within want, and reaches zero before the bits are used up, since free counts them.
        unsafe {
            let taken = want.min(usize::from((*slab).free));
            let size = (*slab).class.size();
            let bits = (*slab).bits;
            let mut word = usize::from((*slab).hint);
            let mut left = taken;
            while left != 0 {
                let mut free = *bits.add(word);
                let base = (*slab).base.add(word * 64 * size);
                if let Some(run) = only_run(free) {
                    let count = run.length.min(left);
                    left -= count;
                    fill(slots.add(left), base.add(run.first * size), size, count);
                    free &= !bits_of(run.first, count);
                }
                while free != 0 && left != 0 {
                    left -= 1;
                    *slots.add(left) = base.add(free.trailing_zeros() as usize * size);
                    free &= free - 1;
                }
                *bits.add(word) = free;
                word += usize::from(free == 0);
            }
            (*slab).hint = word as u16;
            (*slab).free -= taken as u16;
            (*slab).least = (*slab).least.min((*slab).free);
            (*slab).drawn = Drawn::SinceLook;
            taken
        }
    }

    /// Takes back one block, if that leaves the slab where it stands; else, or if the pointer is no
    /// block in use, does nothing and returns false. This is the whole way of a block that is freed
    /// in no order.
    ///
    /// # Safety
    ///
    /// The caller holds the lock of the slab's bin, and nobody uses the block any more.
    #[inline(always)]
    pub unsafe fn give_one(slab: *mut Self, block: *mut u8) -> bool {
        // SAFETY: the lock makes the descriptor the caller's; the index is checked before it is used.
        unsafe {
            let free = (*slab).free + 1;
            let shape = (*slab).class.geometry();
            let offset = block.addr() - (*slab).base.addr();
            if free >= (*slab).settled {
                return false;
            }
            let Some(index) = shape.block_at(offset) else {
                return false;
            };
            let word = (*slab).bits.add(index / 64);
            let bit = 1 << (index % 64);
            if *word & bit != 0 {
                return false;
            }
            *word |= bit;
            (*slab).free = free;
            (*slab).hint = (*slab).hint.min((index / 64) as u16);
        }
        true
    }

    /// Takes back the blocks at the start of `blocks` that lie in this slab. Returns how many.
    ///
    /// # Errors
    ///
    /// A pointer at which no block in use begins. Those before it were taken back, but for neighbours in descending order.
    ///
    /// # Safety
    ///
    /// The caller holds the lock of the slab's bin, and nobody uses the blocks any more.
    pub unsafe fn give(slab: *mut Self, blocks: &[*mut u8]) -> Result<usize, Misuse> {
        // SAFETY: the lock makes the descriptor the caller's.
        let (base, shape, bits) = unsafe {
            let slab = &*slab;
            (slab.base.addr(), slab.class.geometry(), slab.bits)
        };
        let length = usize::from(shape.units) * UNIT;
        let mut lowest = usize::MAX;
        let mut done = 0;
        let mut outcome = Ok(());
        while let Some(block) = blocks.get(done) {
            let offset = block.addr().wrapping_sub(base);
            if offset >= length {
                break;
            }
            let Some(index) = shape.block_at(offset) else {
                outcome = Err(Misuse::NotABlock(block.addr()));
                break;
            };
            let run = run_of(&blocks[done..], shape, index);
            // SAFETY: the run's indices are below the number of blocks.
            if let Err(index) = unsafe { set_range(bits, run.first, run.length) } {
                outcome = Err(Misuse::DoubleFree(base + index * shape.size as usize));
                break;
            }
            lowest = lowest.min(run.first / 64);
            done += run.length;
        }
        // SAFETY: as above.
        unsafe {
            (*slab).free += done as u16;
            (*slab).hint = (*slab).hint.min(lowest.min(u16::MAX as usize) as u16);
        }
        outcome.map(|()| done)
    }

    /// Whether a block is free.
    ///
    /// # Safety
    ///
    /// The caller holds the lock of the slab's bin, and the slab has that many blocks.
    #[inline]
    #[must_use]
    pub unsafe fn is_free(slab: *mut Self, index: usize) -> bool {
        // SAFETY: the bitmap has a bit for every block.
        unsafe { *(*slab).bits.add(index / 64) >> (index % 64) & 1 == 1 }
    }

    /// Asserts the invariants.
    ///
    /// # Panics
    ///
    /// Where one does not hold.
    ///
    /// # Safety
    ///
    /// The caller holds the lock of the slab's bin.
    pub unsafe fn check(slab: *mut Self) {
        // SAFETY: the caller's promise.
        let slab = unsafe { &*slab };
        let shape = slab.class.geometry();
        let mut free = 0;
        for word in 0..shape.words() {
            // SAFETY: the bitmap has as many words.
            let bits = unsafe { *slab.bits.add(word) };
            free += bits.count_ones();
            assert!(
                bits == 0 || word >= usize::from(slab.hint),
                "a free block before the hint"
            );
            let valid = usize::from(shape.blocks) - word * 64;
            assert!(
                valid >= 64 || bits >> valid == 0,
                "a free block beyond the last"
            );
        }
        assert_eq!(free, u32::from(slab.free), "the count of free blocks");
        assert!(slab.least <= slab.free, "fewer are free than ever were");
    }
}
