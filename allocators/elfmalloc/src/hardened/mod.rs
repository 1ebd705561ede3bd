//! The hardened variant: elfmalloc with checks for misuse.
//!
//! The allocator records out of band which blocks are live, and the requested size of each
//! ([`states`](crate::slabs::states)). So it detects every free of an address at which no live
//! block begins. Behind the requested bytes lie [canaries](crate::hardened::canary), which are
//! checked when the block is freed or reallocated. Freed blocks are [filled](crate::hardened::fill)
//! and stay in a [`Quarantine`](crate::heap::quarantine::Quarantine)
//! ([`hardened_free`](crate::hardened::free)). Blocks of 128 KiB and more, and blocks aligned to
//! more than a slab allows, have their own mappings between guard pages ([`guarded`]). Zero-sized
//! blocks are [inaccessible addresses](crate::hardened::zero).
//!
//! No other variant may serve the same process. All variants share free blocks, but only this
//! variant fills them. It would report a use after free for a freed block that another variant has
//! used in the meantime.

pub(crate) mod block;
pub(crate) mod canary;
pub(crate) mod fill;
pub(crate) mod free;
pub(crate) mod guarded;
pub(crate) mod zero;

use core::ptr::NonNull;

use heapdrome_malloc_abi::{
    ForkGate, Form, MIN_ALIGNMENT, MallocAbi, Presence, Report, Statistics, deallocate,
};

use crate::hardened::block::{
    change, hand_out, hand_out_fast, prepare, slack_or_report, state_or_report,
};
use crate::hardened::canary::is_whole;
use crate::hardened::free::{free_fast, has_another_size, take_back};
use crate::hardened::guarded::{allocate_growing, allocate_guarded, free_guarded, resize_guarded};
use crate::heap::front::will_be_used;
use crate::misuse::{Misuse, report};
use crate::process::thread_local::{front, heap};
use crate::process::{Elfmalloc, HEAPS, class_of};
use crate::size_class::{LARGEST, SizeClass};
use crate::slabs::shape::SHORT;
use crate::slabs::states::{Long, Short, State, find_states};

/// Pops a block from the magazine of `class`, and hands it out for `size` bytes. Returns `None`,
/// without any change, if the slow path is required or a check fails.
#[inline(always)]
fn take<S: State>(class: SizeClass, size: usize) -> Option<NonNull<u8>> {
    // If the thread has no heap, its front is a static whose magazines are empty.
    let front = front();
    let top = front.top(class);
    // SAFETY: the word before a top is a slot with a free block of the class, or null. If it is a
    // slot, another slot or null precedes it, and the front belongs to this thread. Callers pass
    // the smallest class with more than `size` bytes, whose states are of kind `S`.
    unsafe {
        let block = NonNull::new(*top.sub(1))?;
        if !hand_out_fast::<S>(block, class, size) {
            return None;
        }
        front.set_top(class, top.sub(1));
        will_be_used(*top.sub(2));
        Some(block)
    }
}

/// Shrinks a block in place to `size` bytes, at most its usable size. Used if a smaller block
/// cannot be allocated.
///
/// # Safety
///
/// The block has this class and belongs to the caller, who no longer needs bytes after the first
/// `size`.
#[cold]
unsafe fn shrink(block: NonNull<u8>, class: SizeClass, size: usize) {
    // SAFETY: by this function's contract, the block has this class and belongs to the caller, who
    // no longer needs bytes after the first `size`. A slab block has at least one byte of slack, so
    // its class has more than `size` bytes.
    unsafe {
        if class.is_slab() {
            let (state, _) = state_or_report(block.addr().get(), class);
            change(block, state, class, size);
        } else if !resize_guarded(block, size) {
            // A block that shrinks does not move. If the system refuses, it keeps its size.
            HEAPS.mapped.resize(HEAPS.memory(), block, size);
        }
    }
}

/// Copies the first `kept` bytes of `block` to the block `to`, and frees `block`.
///
/// # Safety
///
/// The blocks are different, belong to the caller, and have at least `kept` bytes. The caller no
/// longer uses `block`.
unsafe fn move_to(to: NonNull<u8>, block: NonNull<u8>, kept: usize) {
    // SAFETY: by this function's contract, the blocks are different, belong to the caller, and have
    // at least `kept` bytes, and the caller no longer uses `block`.
    unsafe {
        to.as_ptr().copy_from_nonoverlapping(block.as_ptr(), kept);
        if !free_fast(block.as_ptr()) {
            deallocate::<Hardened>(block);
        }
    }
}

/// The hardened allocator.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hardened;

// SAFETY: every block is a slab block that is at least one byte larger than requested, a mapping
// between guard pages, a large block of elfmalloc, or an inaccessible address for size zero. Each
// is aligned as requested, and no other code uses it. `allocate_zeroed` clears every block that
// does not read as zero, and a block that moves is copied.
unsafe impl MallocAbi for Hardened {
    const NAME: &'static str = "elfmalloc-hardened";

    #[inline(always)]
    fn allocate_fast(size: usize) -> Option<NonNull<u8>> {
        // One branch on the size selects both the lookup of the class and the kind of state. A
        // second branch would often be mispredicted. Size zero takes the slow path.
        if size.wrapping_sub(1) < SHORT - 1 {
            take::<Short>(front().class_of_small(size + 1), size)
        } else if size.wrapping_sub(SHORT) < LARGEST - SHORT {
            take::<Long>(SizeClass::of(size + 1), size)
        } else {
            None
        }
    }

    fn allocate(size: usize) -> Option<NonNull<u8>> {
        Self::allocate_aligned(size, MIN_ALIGNMENT)
    }

    fn allocate_aligned(size: usize, alignment: usize) -> Option<NonNull<u8>> {
        prepare();
        let alignment = alignment.max(MIN_ALIGNMENT);
        if size == 0
            && alignment == MIN_ALIGNMENT
            && let Some(block) = zero::allocate()
        {
            return Some(block);
        }
        let size = size.max(1);
        if size < LARGEST
            && let Some(class) = SizeClass::of_aligned(size + 1, alignment)
        {
            let memory = HEAPS.memory();
            let fast = Elfmalloc::allocate_fast(class.size());
            let block = fast.or_else(|| Elfmalloc::allocate(class.size()))?;
            find_states(&memory.map, memory.directory(), block);
            // SAFETY: the block is new, lies in a slab of `class`, and has more than `size` bytes.
            unsafe { hand_out(block, class, size) };
            return Some(block);
        }
        heap();
        Some(allocate_guarded(size, alignment)?.block)
    }

    fn allocate_zeroed(size: usize) -> Option<NonNull<u8>> {
        let (block, clean) = if size < LARGEST {
            let block = Self::allocate_fast(size).or_else(|| Self::allocate(size))?;
            (block, false)
        } else {
            prepare();
            heap();
            let large = allocate_guarded(size, MIN_ALIGNMENT)?;
            (large.block, large.clean)
        };
        if !clean {
            // SAFETY: the block is new and has at least `size` bytes.
            unsafe { block.as_ptr().write_bytes(0, size) };
        }
        Some(block)
    }

    #[inline]
    unsafe fn reallocate_fast(block: NonNull<u8>, size: usize) -> Option<NonNull<u8>> {
        let (address, size) = (block.addr().get(), size.max(1));
        let class = HEAPS.memory().map.get(address);
        if !class.is_slab() {
            return None;
        }
        let (state, slack) = state_or_report(address, class);
        // SAFETY: by this function's contract, the block is live, no other thread uses it during
        // the call, and the caller does not use it again if the result is another block. It lies in
        // a slab of `class`. A new block is different, and both blocks have at least the copied
        // number of bytes.
        unsafe {
            if !is_whole(block, class.size(), slack) {
                report(Misuse::Overflow(address));
            }
            if size < LARGEST && SizeClass::of(size + 1) == class {
                change(block, state, class, size);
                return Some(block);
            }
            let to = Self::allocate_fast(size)?;
            move_to(to, block, (class.size() - slack).min(size));
            Some(to)
        }
    }

    unsafe fn reallocate(block: NonNull<u8>, size: usize) -> Option<NonNull<u8>> {
        let (address, size) = (block.addr().get(), size.max(1));
        let class = class_of(address);
        // SAFETY: by this function's contract, the block is live, no other thread uses it during
        // the call, and the caller does not use it again if the result is another block.
        unsafe {
            if class.is_slab() {
                let (state, slack) = state_or_report(address, class);
                if !is_whole(block, class.size(), slack) {
                    report(Misuse::Overflow(address));
                }
                if size < LARGEST && SizeClass::of(size + 1) == class {
                    change(block, state, class, size);
                    return Some(block);
                }
            }
            let usable = Self::usable_size(block);
            let stays_large = !class.is_slab() && size >= LARGEST;
            if stays_large && resize_guarded(block, size) {
                return Some(block);
            }
            let to = match stays_large && size > usable {
                true => allocate_growing(size),
                false => Self::allocate_fast(size).or_else(|| Self::allocate(size)),
            };
            let Some(to) = to else {
                return (size <= usable).then(|| {
                    shrink(block, class, size);
                    block
                });
            };
            move_to(to, block, usable.min(size));
            Some(to)
        }
    }

    #[inline(always)]
    unsafe fn deallocate_fast(block: *mut u8) -> bool {
        // SAFETY: this function's contract is that of `free_fast`.
        unsafe { free_fast(block) }
    }

    #[inline(always)]
    unsafe fn deallocate_sized_fast(block: *mut u8, size: usize, alignment: usize) -> bool {
        let _ = alignment;
        if has_another_size(block.addr(), size) {
            report(Misuse::OtherSize(block.addr()));
        }
        // SAFETY: this function's contract is that of `free_fast`.
        unsafe { free_fast(block) }
    }

    unsafe fn deallocate(block: NonNull<u8>) {
        let address = block.addr().get();
        let class = class_of(address);
        // SAFETY: by this function's contract, the caller no longer uses the block. If `class` is
        // that of a slab, the address lies in a slab of this class.
        unsafe {
            if class.is_slab() {
                take_back(block, class);
            } else if class == SizeClass::LARGE || !(zero::free(address) || free_guarded(block)) {
                Elfmalloc::deallocate(block);
            }
        }
    }

    unsafe fn usable_size(block: NonNull<u8>) -> usize {
        let address = block.addr().get();
        let class = class_of(address);
        if class.is_slab() {
            return class.size() - slack_or_report(address, class);
        }
        if class == SizeClass::LARGE {
            // SAFETY: the block is live, by this function's contract.
            return unsafe { Elfmalloc::usable_size(block) };
        }
        if zero::is_block(address) {
            return 0;
        }
        let Some(entry) = HEAPS.mapped.find(address) else {
            report(Misuse::NotABlock(address))
        };
        entry.size
    }

    fn trim(keep: usize) -> bool {
        Elfmalloc::trim(keep)
    }

    fn statistics() -> Statistics {
        Elfmalloc::statistics()
    }

    fn report(report: &mut Report<'_>) {
        crate::process::snapshot().report(Self::NAME, report);
    }

    fn report_form() -> Form {
        Elfmalloc::report_form()
    }

    fn start() {
        prepare();
        Elfmalloc::start();
    }

    fn stop() {
        crate::process::report_at_exit::<Self>();
    }

    #[inline]
    fn fork_gate() -> &'static ForkGate {
        Elfmalloc::fork_gate()
    }

    #[inline]
    fn presence() -> &'static Presence {
        Elfmalloc::presence()
    }
}
