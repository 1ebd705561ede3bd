//! Slow path of a heap whose chunk has no room.

use core::ptr::NonNull;

use crate::chunk::{self, Chunk, Owner};
use crate::heap::Heap;
use crate::large;
use crate::pool::POOL;
use crate::threads;

/// Maximum number of retired chunks, oldest first, that a refill checks before it takes a chunk
/// from the pool. A small number keeps a refill cheap if these chunks still have live blocks. The
/// next refill checks the chunks after them.
const LOOKS: usize = 8;

/// Maximum size and alignment of a block for which a new chunk is started. A larger block that does
/// not fit into the current chunk gets its own mapping. So the unused rest of a chunk has at most
/// about this size, plus the alignment of the block that did not fit.
const LARGEST_REFILL: usize = 256 << 10;

impl Heap {
    /// Allocates a block at a multiple of `alignment`. Called if the fast path cannot serve the
    /// request.
    ///
    /// # Safety
    ///
    /// The heap belongs to the calling thread and is not static, or it is the locked heap of ended
    /// threads.
    pub unsafe fn allocate(&self, size: usize, alignment: usize) -> Option<NonNull<u8>> {
        if let Some(block) = self.bump_aligned(size, alignment) {
            return Some(block);
        }
        if size > LARGEST_REFILL || alignment > LARGEST_REFILL {
            return large::allocate(size, alignment);
        }
        // SAFETY: this function's contract is that of `refill`.
        unsafe { self.refill()? };
        self.bump_aligned(size, alignment)
    }

    /// Replaces the heap's chunk with an empty one.
    ///
    /// # Safety
    ///
    /// The conditions of [`allocate`](Self::allocate) hold.
    unsafe fn refill(&self) -> Option<()> {
        // SAFETY: by this function's contract, the heap belongs to the calling thread or is locked.
        // The chunk that was found is dead or new, belongs only to this thread, and is restarted
        // before it is installed.
        unsafe {
            let next = self.next_chunk()?;
            next.as_ref().restart(self.owner_of_chunks());
            self.install(next);
        }
        Some(())
    }

    /// Retires the heap's chunk, and returns a dead or new chunk, which may be the same chunk.
    ///
    /// # Safety
    ///
    /// The conditions of [`allocate`](Self::allocate) hold.
    unsafe fn next_chunk(&self) -> Option<NonNull<Chunk>> {
        {
            let mut retired = self.retired.lock();
            // SAFETY: by this function's contract, the heap belongs to the calling thread or is
            // locked. Its chunk is mapped, and `uninstall` retires it.
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
        // The pool's lock is the last in the lock order, so release it before other locks are
        // taken.
        let chunk = POOL.lock().take();
        chunk.or_else(threads::take_dead_chunk)
    }

    /// Adds a full chunk to the list of retired chunks, or gives it up if this is the heap of ended
    /// threads. In both cases, a thread detects when all blocks of the chunk are free.
    ///
    /// # Safety
    ///
    /// The chunk was this heap's current chunk until now, and is retired.
    unsafe fn retire(&self, full: NonNull<Chunk>, retired: &mut chunk::List) {
        if self.owner_of_chunks().is_null() {
            // SAFETY: by this function's contract, the chunk is retired, and was the current chunk
            // until now, so it is in no list. It has no owner.
            unsafe { threads::give_up(full) };
        } else {
            retired.push(full);
        }
    }

    /// Returns the owner of this heap's chunks. Null for the heap of ended threads, because several
    /// threads use it and an owner must be a single thread.
    fn owner_of_chunks(&self) -> *mut Owner {
        if threads::is_of_ended_threads(self) {
            core::ptr::null_mut()
        } else {
            core::ptr::from_ref(self).cast_mut().cast()
        }
    }
}
