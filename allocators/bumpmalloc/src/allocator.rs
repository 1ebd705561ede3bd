//! Implementation of the ABI's trait, with the first allocation and the end of a thread.

use core::ffi::c_void;
use core::ptr::NonNull;
use core::sync::atomic::Ordering::Relaxed;

use heapdrome_malloc_abi::{
    ForkGate, MIN_ALIGNMENT, MallocAbi, Presence, Statistics, ThreadExit, deallocate, end_thread,
};

use crate::footprint::{BLOCKS, CHUNKS, MAPPINGS, PEAK};
use crate::heap::{CURRENT, EMPTY, ENDED, Heap, current};
use crate::large;
use crate::pool::POOL;
use crate::resize::{possibly_not_zero, resize_in_place, resize_own, usable_size};
use crate::threads;

/// Allocator of the process: a bump-allocating arena.
#[derive(Clone, Copy, Debug)]
pub struct Bumpmalloc;

static EXIT: ThreadExit = ThreadExit::new(thread_ends);

/// Gate that keeps other threads from changing shared structures during a fork.
static FORK_GATE: ForkGate = ForkGate::new();

/// Calls `body` with the heap from which the calling thread allocates. A thread without a heap gets
/// one first. Returns `None` if that fails, or if `body` returns `None`.
fn with_heap<T>(body: impl FnOnce(&Heap) -> Option<T>) -> Option<T> {
    let heap = current();
    if core::ptr::eq(heap, &raw const ENDED) {
        return threads::with_heap_of_ended(body);
    }
    if !core::ptr::eq(heap, &raw const EMPTY) {
        return body(heap);
    }
    let heap = threads::take_heap()?;
    // Set the heap before arming the key, which may allocate.
    CURRENT::set(heap.as_ptr());
    // If the key cannot be armed, the heap is not reused after this thread has ended.
    let _ = EXIT.arm(heap);
    FORK_GATE.register::<Bumpmalloc>();
    // SAFETY: `take_heap` returned an initialised heap, and heaps are never freed.
    body(unsafe { heap.as_ref() })
}

unsafe extern "C" fn thread_ends(word: *mut c_void) {
    // SAFETY: this is the destructor of EXIT's key, so `word` is the armed value: a heap.
    let Some(heap) = (unsafe { EXIT.ends::<Heap>(word) }) else {
        return;
    };
    CURRENT::set((&raw const ENDED).cast_mut());
    // SAFETY: the heap was this thread's own until now, so it is in no list of free heaps, and no
    // thread uses it before `give_up_heap` adds it to that list. This thread now uses `ENDED`,
    // whose presence is shared.
    unsafe { end_thread::<Bumpmalloc>(|heap| threads::give_up_heap(heap.cast()), heap.cast()) };
}

// SAFETY: blocks of a chunk do not overlap, and begin at multiples of 16 bytes and of the requested
// alignment. A chunk is restarted only when all its blocks have been freed. Blocks with their own
// mapping get new, aligned mappings. Zeroed blocks are cleared wherever the chunk may have been
// touched, and the contents of a block that moves are copied or remapped.
unsafe impl MallocAbi for Bumpmalloc {
    const NAME: &'static str = "bumpmalloc";

    #[inline(always)]
    fn allocate_fast(size: usize) -> Option<NonNull<u8>> {
        current().bump(size)
    }

    fn allocate(size: usize) -> Option<NonNull<u8>> {
        Self::allocate_aligned(size, MIN_ALIGNMENT)
    }

    fn allocate_aligned(size: usize, alignment: usize) -> Option<NonNull<u8>> {
        // SAFETY: `with_heap` passes the calling thread's own heap, which is not static, or the
        // locked heap of ended threads.
        with_heap(|heap| unsafe { heap.allocate(size, alignment.max(MIN_ALIGNMENT)) })
    }

    fn allocate_zeroed_fast(size: usize) -> Option<NonNull<u8>> {
        let block = Self::allocate_fast(size)?;
        // SAFETY: this thread has just allocated the block with at least `size` bytes.
        unsafe { block.write_bytes(0, possibly_not_zero(block, size)) };
        Some(block)
    }

    fn allocate_zeroed(size: usize) -> Option<NonNull<u8>> {
        let block = Self::allocate(size)?;
        // SAFETY: this thread has just allocated the block with at least `size` bytes.
        unsafe { block.write_bytes(0, possibly_not_zero(block, size)) };
        Some(block)
    }

    unsafe fn reallocate_fast(block: NonNull<u8>, size: usize) -> Option<NonNull<u8>> {
        // SAFETY: by this function's contract, the block is live, no other thread uses it during
        // the call, and the caller does not use it again if the result is another block.
        unsafe { resize_own(block, size) }
    }

    unsafe fn reallocate(block: NonNull<u8>, size: usize) -> Option<NonNull<u8>> {
        // SAFETY: by this function's contract, the block is live, no other thread uses it during
        // the call, and the caller does not use it again if the result is another block. A new
        // block overlaps no other, and both blocks have at least the copied size.
        unsafe {
            if let Some(same) = resize_in_place(block, size) {
                return Some(same);
            }
            let moved = Self::allocate_fast(size).or_else(|| Self::allocate(size))?;
            moved.copy_from_nonoverlapping(block, usable_size(block).min(size));
            if !Self::deallocate_fast(block.as_ptr()) {
                deallocate::<Self>(block);
            }
            Some(moved)
        }
    }

    #[inline(always)]
    unsafe fn deallocate_fast(block: *mut u8) -> bool {
        // SAFETY: by this function's contract, a block that is not null is live, and the caller no
        // longer uses it. `current` returned this heap in the calling thread.
        block.is_null() || unsafe { current().free_own(block) }
    }

    unsafe fn deallocate(block: NonNull<u8>) {
        let header = large::header_of(block);
        // SAFETY: every live block lies behind a header. By this function's contract, the block is
        // live, and the caller no longer uses it. `large::free` gets only headers of blocks with
        // their own mapping.
        unsafe {
            if large::is_mapped(header.as_ref()) {
                large::free(header);
            } else if header.as_ref().count_remote_free() {
                POOL.lock().keep(header);
            }
        }
    }

    unsafe fn usable_size(block: NonNull<u8>) -> usize {
        // SAFETY: the block is live, by this function's contract.
        unsafe { usable_size(block) }
    }

    fn trim(keep: usize) -> bool {
        threads::trim(keep)
    }

    fn statistics() -> Statistics {
        // Relaxed: statistics, on which no other memory depends.
        let chunks = CHUNKS.load(Relaxed);
        let live_mapped = MAPPINGS.load(Relaxed);
        let free = POOL.lock().waiting().min(chunks);
        Statistics {
            live: chunks - free + live_mapped,
            live_mapped,
            mapped_blocks: BLOCKS.load(Relaxed),
            free,
            releasable: free,
            reserved: chunks + live_mapped,
            peak_reserved: PEAK.load(Relaxed),
        }
    }

    fn start() {
        FORK_GATE.register::<Self>();
    }

    #[inline]
    fn fork_gate() -> &'static ForkGate {
        &FORK_GATE
    }

    #[inline]
    fn presence() -> &'static Presence {
        &current().presence
    }

    fn each_presence(visit: &mut dyn FnMut(&Presence)) {
        visit(&EMPTY.presence);
        visit(&ENDED.presence);
        threads::each_heap(|heap| visit(&heap.presence));
    }

    fn free_locks_in_child() {
        // SAFETY: this runs in the child of a fork, where this thread is the only one. The fork
        // gate kept every other thread off slow paths when the process forked. This thread has no
        // guard, unless a signal handler forked in the middle of a slow path.
        unsafe { threads::free_locks() };
    }

    fn fork_child() {
        // SAFETY: this runs in the child of a fork, where this thread is the only one.
        unsafe { threads::give_up_after_fork() };
    }
}
