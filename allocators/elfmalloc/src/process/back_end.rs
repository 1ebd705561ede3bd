//! Back-end of the process, mostly as functions without type parameters.
//!
//! Generic code is compiled in every crate that uses it. If the generic code of a library called
//! the back-end directly, the library would contain most of the back-end a second time. The pages
//! of the second copy would be resident in every process.

use core::ptr::NonNull;

use heapdrome_malloc_abi::{MallocAbi, deallocate};

use super::background;
use super::thread_local::{front, heap, heap_to_free, present_heap};
use super::{Allocator, HEAPS, class_of};
use crate::heap::front_end::{FrontEnd, Magazines};
use crate::heap::large::{allocate_grown, allocate_large, free_large};
use crate::heap::local_cache::LocalCache;
use crate::heap::maintenance::look_around;
use crate::heap::threads;
use crate::misuse::{Misuse, report};
use crate::size_class::SizeClass;
use crate::slabs::free_blocks::FreeBlock;
use crate::units::large::{Large, usable};

/// Front-end whose slow paths are compiled in this crate.
pub trait Compiled: FrontEnd {
    /// Allocates a block of `class`; `None` if out of memory.
    fn allocate_here(class: SizeClass) -> Option<NonNull<u8>>;
    /// Frees a block. Aborts the process if it detects that no live block begins at the address.
    ///
    /// # Safety
    ///
    /// The conditions of [`MallocAbi::deallocate`] hold.
    unsafe fn deallocate_here(block: NonNull<u8>);
}

impl Compiled for Magazines {
    fn allocate_here(class: SizeClass) -> Option<NonNull<u8>> {
        allocate_class::<Self>(class)
    }

    unsafe fn deallocate_here(block: NonNull<u8>) {
        // SAFETY: this function's contract is that of `free_any`.
        unsafe { free_any::<Self>(block) };
    }
}

impl Compiled for LocalCache {
    fn allocate_here(class: SizeClass) -> Option<NonNull<u8>> {
        allocate_class::<Self>(class)
    }

    unsafe fn deallocate_here(block: NonNull<u8>) {
        // SAFETY: this function's contract is that of `free_any`.
        unsafe { free_any::<Self>(block) };
    }
}

#[inline(always)]
fn allocate_class<F: FrontEnd>(class: SizeClass) -> Option<NonNull<u8>> {
    if let Some(block) = NonNull::new(front().pop(class)) {
        return Some(block);
    }
    let Some(heap) = heap() else {
        return NonNull::new(take_without_heap(class));
    };
    // The background thread is started here, not in `free`: the C library calls `free` while it
    // holds locks that are needed to start a thread.
    background::start_if_wanted();
    // Creating the heap or starting the thread may have allocated and freed blocks, so the magazine
    // may now have blocks.
    let block = heap.front.pop(class);
    NonNull::new(if block.is_null() {
        F::refill(&HEAPS, heap, class)
    } else {
        block
    })
}

/// Frees a block of any size.
///
/// # Safety
///
/// The conditions of [`MallocAbi::deallocate`] hold.
#[inline(always)]
unsafe fn free_any<F: FrontEnd>(block: NonNull<u8>) {
    let address = block.addr().get();
    let class = class_of(address);
    // SAFETY: by this function's contract, the block is live, so it is on no list of free blocks,
    // and the caller no longer uses it. If it lies in a slab, `class_of` returned the slab's class.
    unsafe {
        if class.is_slab() {
            free_class::<F>(FreeBlock::new(class, block));
        } else if class == SizeClass::LARGE {
            if let Err(misuse) = free_large(&HEAPS, address) {
                report(misuse);
            }
        } else if !HEAPS.mapped.free(&HEAPS.memory().pages, address) {
            report(Misuse::NotABlock(address));
        }
    }
}

#[inline(always)]
fn free_class<F: FrontEnd>(block: FreeBlock) {
    let Some(heap) = heap_to_free() else {
        HEAPS.give_one(None, block);
        return;
    };
    if heap.front.is_misuse(block.class(), block.as_ptr()) {
        misused(heap.front.top(block.class()), block.as_ptr());
    }
    if heap.front.is_due() {
        look_around(&HEAPS, heap);
    }
    F::put(&HEAPS, heap, block);
}

/// Reports the misuse that [`Front::is_misuse`](crate::heap::front::Front::is_misuse) found. `top`
/// is the top of the magazine of the block's class.
#[cold]
pub(super) fn misused(top: *mut *mut u8, block: *mut u8) -> ! {
    // SAFETY: the word before a top is a slot, or the null before the first slot.
    let was_last = unsafe { *top.sub(1) } == block;
    let misuse = if was_last {
        Misuse::DoubleFree
    } else {
        Misuse::NotABlock
    };
    report(misuse(block.addr()))
}

/// Takes a block for a thread without a heap. Returns null if out of memory.
#[cold]
fn take_without_heap(class: SizeClass) -> *mut u8 {
    HEAPS.take_without_heap(class)
}

/// Allocates a block for which no class is large enough or sufficiently aligned; `None` if out of
/// memory.
pub(super) fn large(size: usize, alignment: usize) -> Option<Large> {
    allocate_large(&HEAPS, size, alignment)
}

/// Allocates a large block to replace a block that could not grow in place; `None` if out of
/// memory.
pub(super) fn grown(size: usize) -> Option<NonNull<u8>> {
    allocate_grown(&HEAPS, size)
}

/// Resizes a large block without copying it; the block may move. Returns `None`, without any
/// change, if that is impossible.
///
/// # Safety
///
/// The block is live, lies in no slab, and belongs to the caller, who no longer needs bytes after
/// the first `size`. The caller does not use the block again if the result is another block.
pub(super) unsafe fn resize_large(block: NonNull<u8>, size: usize) -> Option<NonNull<u8>> {
    // SAFETY: this function's contract includes that of `MappedBlocks::resize`.
    unsafe { HEAPS.mapped.resize(HEAPS.memory(), block, size) }
}

/// Returns the usable bytes of a live block; 0 if the address lies in no slab and no live block
/// begins there.
pub(super) fn usable_size(block: NonNull<u8>) -> usize {
    let address = block.addr().get();
    let class = class_of(address);
    if class.is_slab() {
        return class.size();
    }
    if class == SizeClass::LARGE {
        return usable(HEAPS.memory(), address).unwrap_or(0);
    }
    let mapped = HEAPS.mapped.find(address);
    mapped.map_or(0, |entry| entry.size)
}

/// Releases idle memory to the system, except about `keep` bytes. Returns whether any memory was
/// released.
#[cold]
pub(super) fn trim(keep: usize) -> bool {
    threads::trim(&HEAPS, present_heap(), keep)
}

/// Unlocks all locks in the child of a fork.
#[cold]
pub(super) fn free_locks_in_child() {
    // SAFETY: this thread is the only one in the child. No other thread was on a slow path when the
    // process forked, so no lock guarded data that was being changed. This thread holds no guard,
    // unless a signal handler forked in the middle of a slow path; in that case this condition is
    // broken.
    unsafe { HEAPS.free_locks() };
}

/// Makes the heaps of the parent's other threads available to new threads, in the child of a fork.
#[cold]
pub(super) fn disown_in_child() {
    background::forked();
    // SAFETY: this thread is the only one in the child of a fork, and `present_heap` returns its
    // heap. No other thread was on a slow path when the process forked.
    unsafe { HEAPS.disown(present_heap()) };
}

/// Copies the first `kept` bytes of `block` to the block `to`, frees `block`, and returns `to`.
///
/// # Safety
///
/// The blocks are live and different, and have at least `kept` bytes. The caller no longer uses
/// `block`.
pub(super) unsafe fn move_to<F: Compiled>(
    to: NonNull<u8>,
    block: NonNull<u8>,
    kept: usize,
) -> NonNull<u8> {
    // SAFETY: by this function's contract, the blocks are live and different, both have at least
    // `kept` bytes, and the caller no longer uses `block`.
    unsafe {
        to.as_ptr().copy_from_nonoverlapping(block.as_ptr(), kept);
        if !Allocator::<F>::deallocate_fast(block.as_ptr()) {
            deallocate::<Allocator<F>>(block);
        }
    }
    to
}
