//! The allocator behind the ABI, and how a thread enters and leaves it.

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

/// Arena of the process.
#[derive(Clone, Copy, Debug)]
pub struct Bumpmalloc;

static EXIT: ThreadExit = ThreadExit::new(thread_ends);

/// Gate of the arena. Only threads inside change what threads share.
static FORK_GATE: ForkGate = ForkGate::new();

/// Calls `body` with a heap in which the calling thread may allocate.
fn with_heap<T>(body: impl FnOnce(&Heap) -> Option<T>) -> Option<T> {
    let heap = current();
    if core::ptr::eq(heap, &raw const ENDED) {
        return threads::with_heap_of_ended(body);
    }
    if !core::ptr::eq(heap, &raw const EMPTY) {
        return body(heap);
    }
    let heap = threads::take_heap()?;
    // Set before the key is armed, which may allocate.
    CURRENT::set(heap.as_ptr());
    // Without a key, the heap stays with its thread, and is lost when the thread ends.
    let _ = EXIT.arm(heap);
    FORK_GATE.register::<Bumpmalloc>();
    // SAFETY: heaps are never freed.
    body(unsafe { heap.as_ref() })
}

unsafe extern "C" fn thread_ends(word: *mut c_void) {
    // SAFETY: this is the destructor of EXIT's key, which gets the armed value: a heap.
    let Some(heap) = (unsafe { EXIT.ends::<Heap>(word) }) else {
        return;
    };
    CURRENT::set((&raw const ENDED).cast_mut());
    // SAFETY: the heap was this thread's until now, and belongs to no thread until it is in the
    // list.
    unsafe { end_thread::<Bumpmalloc>(|heap| threads::give_up_heap(heap.cast()), heap.cast()) };
}

// SAFETY: blocks of a chunk follow one another, each a multiple of 16 bytes from the chunk's start.
// A chunk is restarted only when all its blocks have been freed. Mappings are new.
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
        // SAFETY: the heap is the calling thread's, or locked.
        with_heap(|heap| unsafe { heap.allocate(size, alignment.max(MIN_ALIGNMENT)) })
    }

    fn allocate_zeroed_fast(size: usize) -> Option<NonNull<u8>> {
        let block = Self::allocate_fast(size)?;
        // SAFETY: the block is new and has this size.
        unsafe { block.write_bytes(0, possibly_not_zero(block, size)) };
        Some(block)
    }

    fn allocate_zeroed(size: usize) -> Option<NonNull<u8>> {
        let block = Self::allocate(size)?;
        // SAFETY: the block is new and has this size.
        unsafe { block.write_bytes(0, possibly_not_zero(block, size)) };
        Some(block)
    }

    unsafe fn reallocate_fast(block: NonNull<u8>, size: usize) -> Option<NonNull<u8>> {
        // SAFETY: the block is live, by this function's contract.
        unsafe { resize_own(block, size) }
    }

    unsafe fn reallocate(block: NonNull<u8>, size: usize) -> Option<NonNull<u8>> {
        // SAFETY: the block is live and the caller's; a new block overlaps no other.
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
        // SAFETY: the caller gives up null or a live block.
        block.is_null() || unsafe { current().free_own(block) }
    }

    unsafe fn deallocate(block: NonNull<u8>) {
        let header = large::header_of(block);
        // SAFETY: every live block lies behind a header; the caller gives the block up.
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
        // SAFETY: this thread is the only one; no other was on a slow path when the process forked.
        unsafe { threads::free_locks() };
    }

    fn fork_child() {
        // SAFETY: this thread is the only one.
        unsafe { threads::give_up_after_fork() };
    }
}
