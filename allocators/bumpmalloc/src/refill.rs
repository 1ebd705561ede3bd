//! The slow path: a heap has no room, and needs another chunk.

use core::ptr::NonNull;

use crate::chunk::{self, Chunk, Owner};
use crate::heap::Heap;
use crate::large;
use crate::pool::POOL;
use crate::threads;

/// How many retired chunks are looked at, longest retired first, before a chunk is taken from
/// elsewhere. So a chunk that stays alive costs a look now and then, and a dead one is found soon.
const LOOKS: usize = 8;

/// A larger block that does not fit into the room left gets its own mapping instead of a new chunk:
/// at most this much of a chunk is left unused.
const LARGEST_REFILL: usize = 256 << 10;

impl Heap {
    /// A block at a multiple of `alignment`, where the fast path found no room.
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
        // SAFETY: the caller's promise.
        unsafe { self.refill()? };
        self.bump_aligned(size, alignment)
    }

    /// Replaces the chunk by one with all its room.
    ///
    /// # Safety
    ///
    /// As for [`allocate`](Self::allocate).
    unsafe fn refill(&self) -> Option<()> {
        // SAFETY: the caller's promise; a chunk that was found is nobody else's.
        unsafe {
            let next = self.next_chunk()?;
            next.as_ref().restart(self.owner_of_chunks());
            self.install(next);
        }
        Some(())
    }

    /// Retires the chunk, and finds a dead one, often the same.
    ///
    /// # Safety
    ///
    /// As for [`allocate`](Self::allocate).
    unsafe fn next_chunk(&self) -> Option<NonNull<Chunk>> {
        {
            let mut retired = self.retired.lock();
            // SAFETY: the caller's promise; the heap's chunk is mapped.
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
        // The pool's lock is the last that a thread takes: others are taken without it.
        let chunk = POOL.lock().take();
        chunk.or_else(threads::take_dead_chunk)
    }

    /// Puts a full chunk where its last free will be noticed.
    ///
    /// # Safety
    ///
    /// The chunk was this heap's until now and is retired.
    unsafe fn retire(&self, full: NonNull<Chunk>, retired: &mut chunk::List) {
        if self.owner_of_chunks().is_null() {
            // SAFETY: the caller's promise; nobody counts as the owner of such a chunk.
            unsafe { threads::give_up(full) };
        } else {
            retired.push(full);
        }
    }

    /// Who owns the chunks of this heap: nobody those of the heap of ended threads, since no thread
    /// could count its frees as the owner's.
    fn owner_of_chunks(&self) -> *mut Owner {
        if threads::is_of_ended_threads(self) {
            core::ptr::null_mut()
        } else {
            core::ptr::from_ref(self).cast_mut().cast()
        }
    }
}
