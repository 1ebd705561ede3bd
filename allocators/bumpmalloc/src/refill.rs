//! The slow path of a heap that has no room and needs another chunk.

use core::ptr::NonNull;

use crate::chunk::{self, Chunk, Owner};
use crate::heap::Heap;
use crate::large;
use crate::pool::POOL;
use crate::threads;

/// Number of retired chunks that are checked, longest retired first, before a chunk is taken from
/// elsewhere. So a chunk with live blocks costs an occasional check, and a dead one is found soon.
const LOOKS: usize = 8;

/// Largest block for which a new chunk is started. A larger block that does not fit into the
/// remaining room gets its own mapping, so at most this much of a chunk is left unused.
const LARGEST_REFILL: usize = 256 << 10;

impl Heap {
    /// Allocates a block at a multiple of `alignment`, after the fast path found no room.
    ///
    /// # Safety
    ///
    /// The heap is the calling thread's and no static one, or it is locked.
    pub unsafe fn allocate(&self, size: usize, alignment: usize) -> Option<NonNull<u8>> {
        if let Some(block) = self.bump_aligned(size, alignment) {
            return Some(block);
        }
        if size > LARGEST_REFILL || alignment > LARGEST_REFILL {
            return large::allocate(size, alignment);
        }
        // SAFETY: the heap is the calling thread's, or locked.
        unsafe { self.refill()? };
        self.bump_aligned(size, alignment)
    }

    /// Replaces the chunk by an empty one.
    ///
    /// # Safety
    ///
    /// The conditions of [`allocate`](Self::allocate) hold.
    unsafe fn refill(&self) -> Option<()> {
        // SAFETY: the heap is the calling thread's, or locked; no other thread has the chunk that
        // was found.
        unsafe {
            let next = self.next_chunk()?;
            next.as_ref().restart(self.owner_of_chunks());
            self.install(next);
        }
        Some(())
    }

    /// Retires the chunk, and returns a dead one, often the same.
    ///
    /// # Safety
    ///
    /// The conditions of [`allocate`](Self::allocate) hold.
    unsafe fn next_chunk(&self) -> Option<NonNull<Chunk>> {
        {
            let mut retired = self.retired.lock();
            // SAFETY: the heap is the calling thread's, or locked; its chunk is mapped.
            unsafe {
                if let Some(full) = self.uninstall() {
                    if full.as_ref().is_retired_dead() {
                        return Some(full);
                    }
                    self.retire(full, &mut retired);
                }
            }
            if let Some(dead) = retired.pop_dead(LOOKS) {
                return Some(dead);
            }
        }
        // The pool's lock is the last that a thread takes, so no other lock is taken while it is
        // held.
        let chunk = POOL.lock().take();
        chunk.or_else(threads::take_dead_chunk)
    }

    /// Puts a full chunk where its last free will be noticed.
    ///
    /// # Safety
    ///
    /// The chunk was this heap's until now, and is retired.
    unsafe fn retire(&self, full: NonNull<Chunk>, retired: &mut chunk::List) {
        if self.owner_of_chunks().is_null() {
            // SAFETY: the chunk is retired and in no list, and no thread counts as its owner.
            unsafe { threads::give_up(full) };
        } else {
            retired.push(full);
        }
    }

    /// Returns the owner of this heap's chunks: null for the heap of ended threads, since no thread
    /// could count its frees as the owner's.
    fn owner_of_chunks(&self) -> *mut Owner {
        if threads::is_of_ended_threads(self) {
            core::ptr::null_mut()
        } else {
            core::ptr::from_ref(self).cast_mut().cast()
        }
    }
}
