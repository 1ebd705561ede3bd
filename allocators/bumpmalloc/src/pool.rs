//! Dead chunks, and address space for new chunks.

use core::ptr::NonNull;
use core::sync::atomic::Ordering::Relaxed;

use heapdrome_pages::{Access, Advice, Linux, Lock, Pages};

use crate::chunk::{Chunk, FIRST, List, SIZE};
use crate::footprint;

/// Number of chunks that are reserved in one batch, if the system has enough address space.
const BATCH: usize = 16;

/// Pool of dead chunks and new chunks.
pub struct Pool {
    dead: List,
    /// First of the new chunks. No code has touched them.
    fresh: Option<NonNull<u8>>,
    fresh_count: usize,
}

// SAFETY: the fresh chunks belong to the thread that holds the pool's lock.
unsafe impl Send for Pool {}

/// Pool of the process. Last in the lock order: a thread that holds its lock takes no other.
pub static POOL: Lock<Pool> = Lock::new(Pool::new());

impl Pool {
    /// Creates a pool without chunks.
    pub const fn new() -> Self {
        Self {
            dead: List::new(),
            fresh: None,
            fresh_count: 0,
        }
    }

    /// Takes a dead chunk from the pool, or a new chunk if there is no dead one. The caller must
    /// restart the chunk.
    pub fn take(&mut self) -> Option<NonNull<Chunk>> {
        self.dead.pop().or_else(|| self.take_fresh())
    }

    /// Adds a dead chunk to the pool.
    pub fn keep(&mut self, chunk: NonNull<Chunk>) {
        self.dead.push(chunk);
    }

    /// Returns the total size of the chunks in the pool in bytes.
    pub fn waiting(&self) -> usize {
        (self.dead.length() + self.fresh_count) * SIZE
    }

    fn take_fresh(&mut self) -> Option<NonNull<Chunk>> {
        if self.fresh_count == 0 {
            self.reserve()?;
        }
        let chunk = self.fresh?;
        self.fresh_count -= 1;
        // SAFETY: the end of the chunk lies within the batch or at the end of the batch.
        self.fresh = Some(unsafe { chunk.add(SIZE) });
        let chunk = chunk.cast::<Chunk>();
        // SAFETY: the chunk is reserved and zero, which is a valid header. No other code uses it.
        let header = unsafe { chunk.as_ref() };
        header.touched.store(FIRST, Relaxed);
        header.end.store(FIRST, Relaxed);
        Some(chunk)
    }

    /// Reserves address space for a batch of chunks. Halves the batch while the system refuses.
    fn reserve(&mut self) -> Option<()> {
        let mut count = BATCH;
        let batch = loop {
            match Linux.reserve(count * SIZE, SIZE, Access::ReadWrite) {
                Some(batch) => break batch,
                None if count > 1 => count /= 2,
                None => return None,
            }
        };
        // A huge page under a header would also make untouched blocks resident. A kernel without
        // huge pages refuses the advice, and does not need it. SAFETY: the range was just reserved.
        let _ = unsafe { Linux.advise(batch, count * SIZE, Advice::NoHugePages) };
        self.fresh = Some(batch);
        self.fresh_count = count;
        // Relaxed: a statistic, on which no other memory depends.
        footprint::CHUNKS.fetch_add(count * SIZE, Relaxed);
        footprint::note_peak();
        Some(())
    }

    /// Releases the address space and memory of all chunks in the pool. Returns whether chunks were
    /// released.
    pub fn release(&mut self) -> bool {
        let before = self.waiting();
        // If the system refuses to release a chunk, for example because that would split a mapping,
        // the chunk stays in the pool.
        for _ in 0..self.dead.length() {
            let Some(chunk) = self.dead.pop() else { break };
            // SAFETY: the chunk is dead and was removed from the list, so no other thread uses it.
            if !unsafe { Linux.release(chunk.cast(), SIZE) } {
                self.dead.push(chunk);
            }
        }
        if let Some(fresh) = self.fresh
            && self.fresh_count > 0
            // SAFETY: these chunks were never handed out, so no code uses them.
            && unsafe { Linux.release(fresh, self.fresh_count * SIZE) }
        {
            self.fresh_count = 0;
        }
        let released = before - self.waiting();
        // Relaxed: a statistic, on which no other memory depends.
        footprint::CHUNKS.fetch_sub(released, Relaxed);
        released > 0
    }

    /// Purges dead chunks, except at most `keep` bytes, and keeps their address space. Returns
    /// whether any memory was purged.
    pub fn purge(&mut self, keep: usize) -> bool {
        let mut any = false;
        let mut kept = 0;
        for _ in 0..self.dead.length() {
            let Some(chunk) = self.dead.pop() else { break };
            // SAFETY: the chunk is dead and was removed from the list, so only this thread uses it.
            let memory = unsafe { touched_beyond_first_page(chunk.as_ref()) };
            if kept + memory <= keep {
                kept += memory;
            } else {
                // SAFETY: the chunk is dead and was removed from the list, so only this thread uses
                // it.
                any |= unsafe { purge_chunk(chunk) };
            }
            self.dead.push(chunk);
        }
        any
    }
}

/// Returns the offset of the first page that holds only blocks.
fn first_page() -> usize {
    FIRST.next_multiple_of(Linux.page_size())
}

/// Returns the number of bytes of a chunk that may be resident and could be purged.
fn touched_beyond_first_page(chunk: &Chunk) -> usize {
    // Relaxed: the chunk belongs to this thread.
    let touched = chunk.touched.load(Relaxed).max(chunk.end.load(Relaxed));
    touched.saturating_sub(first_page())
}

/// Purges the blocks of a chunk. Returns whether memory was purged.
///
/// # Safety
///
/// The chunk is dead and belongs to the calling thread.
unsafe fn purge_chunk(chunk: NonNull<Chunk>) -> bool {
    // SAFETY: the chunk is mapped and belongs to the calling thread, by this function's contract.
    let header = unsafe { chunk.as_ref() };
    let memory = touched_beyond_first_page(header);
    if memory == 0 {
        return false;
    }
    let size = memory.next_multiple_of(Linux.page_size());
    // SAFETY: the pages lie in the chunk, whose end is a multiple of the page size, and hold only
    // dead blocks.
    let purged = unsafe {
        let start = chunk.cast::<u8>().add(first_page());
        Linux.purge(start, size)
    };
    if purged {
        // SAFETY: the chunk is dead and belongs to the calling thread, by this function's contract.
        unsafe { header.clear_marks() };
        // Relaxed: the chunk belongs to this thread.
        header.end.store(FIRST, Relaxed);
        header.touched.store(first_page(), Relaxed);
    }
    purged
}
