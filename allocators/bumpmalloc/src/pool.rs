//! Chunks that nobody owns, and address space for new ones.

use core::ptr::NonNull;
use core::sync::atomic::Ordering::Relaxed;

use heapdrome_pages::{Access, Advice, Linux, Lock, Pages};

use crate::chunk::{Chunk, FIRST, List, SIZE};
use crate::footprint;

/// How many chunks are reserved together, where the system has the room.
const BATCH: usize = 16;

/// Chunks without an owner.
pub struct Pool {
    /// All dead.
    dead: List,
    /// New chunks that nobody has touched: the first, and how many.
    fresh: Option<NonNull<u8>>,
    fresh_count: usize,
}

// SAFETY: the fresh chunks belong to whoever holds the pool.
unsafe impl Send for Pool {}

/// The process's pool. Its lock is the last that a thread takes.
pub static POOL: Lock<Pool> = Lock::new(Pool::new());

impl Pool {
    /// No chunks.
    pub const fn new() -> Self {
        Self {
            dead: List::new(),
            fresh: None,
            fresh_count: 0,
        }
    }

    /// A chunk that no other thread knows, to be restarted.
    pub fn take(&mut self) -> Option<NonNull<Chunk>> {
        self.dead.pop().or_else(|| self.take_fresh())
    }

    /// Keeps a dead chunk for the next thread that needs one.
    pub fn keep(&mut self, chunk: NonNull<Chunk>) {
        self.dead.push(chunk);
    }

    /// Bytes in chunks that wait here.
    pub fn waiting(&self) -> usize {
        (self.dead.length() + self.fresh_count) * SIZE
    }

    fn take_fresh(&mut self) -> Option<NonNull<Chunk>> {
        if self.fresh_count == 0 {
            self.reserve()?;
        }
        let chunk = self.fresh?;
        self.fresh_count -= 1;
        // SAFETY: one past the chunk is within the batch or just behind it.
        self.fresh = Some(unsafe { chunk.add(SIZE) });
        let chunk = chunk.cast::<Chunk>();
        // SAFETY: the chunk is reserved, and zero, which is a valid header; nobody else knows it.
        let header = unsafe { chunk.as_ref() };
        header.touched.store(FIRST, Relaxed);
        header.end.store(FIRST, Relaxed);
        Some(chunk)
    }

    /// Gets address space for a batch of chunks, or for as many as there is room for.
    fn reserve(&mut self) -> Option<()> {
        let mut count = BATCH;
        let batch = loop {
            match Linux.reserve(count * SIZE, SIZE, Access::ReadWrite) {
                Some(batch) => break batch,
                None if count > 1 => count /= 2,
                None => return None,
            }
        };
        // A huge page under a header would put memory behind blocks that are never touched. Without
        // huge pages in the kernel the advice fails, and is not needed.
        // SAFETY: the range was just reserved.
        let _ = unsafe { Linux.advise(batch, count * SIZE, Advice::NoHugePages) };
        self.fresh = Some(batch);
        self.fresh_count = count;
        // Relaxed: a count for statistics.
        footprint::CHUNKS.fetch_add(count * SIZE, Relaxed);
        footprint::note_peak();
        Some(())
    }

    /// Gives all chunks back to the system, addresses and all. True if there were any.
    pub fn release(&mut self) -> bool {
        let before = self.waiting();
        // What the system will not take back, because it would need another mapping, stays.
        for _ in 0..self.dead.length() {
            let Some(chunk) = self.dead.pop() else { break };
            // SAFETY: a dead chunk, taken from the list: nobody uses it or will.
            if !unsafe { Linux.release(chunk.cast(), SIZE) } {
                self.dead.push(chunk);
            }
        }
        if let Some(fresh) = self.fresh
            && self.fresh_count > 0
            // SAFETY: nobody has touched these chunks.
            && unsafe { Linux.release(fresh, self.fresh_count * SIZE) }
        {
            self.fresh_count = 0;
        }
        let released = before - self.waiting();
        // Relaxed: a count for statistics.
        footprint::CHUNKS.fetch_sub(released, Relaxed);
        released > 0
    }

    /// Gives the memory of dead chunks back to the system, but for `keep` bytes of chunks; their
    /// address space stays. True if any was given back.
    pub fn purge(&mut self, keep: usize) -> bool {
        let mut any = false;
        let mut kept = 0;
        for _ in 0..self.dead.length() {
            let Some(chunk) = self.dead.pop() else { break };
            // SAFETY: a dead chunk, taken from the list: this thread's alone.
            let memory = unsafe { touched_beyond_first_page(chunk.as_ref()) };
            if kept + memory <= keep {
                kept += memory;
            } else {
                // SAFETY: as above.
                any |= unsafe { purge_chunk(chunk) };
            }
            self.dead.push(chunk);
        }
        any
    }
}

/// Offset of the first page that holds nothing but blocks.
fn first_page() -> usize {
    FIRST.next_multiple_of(Linux.page_size())
}

/// Bytes that may have memory behind them and could be purged.
fn touched_beyond_first_page(chunk: &Chunk) -> usize {
    // Relaxed: the chunk is this thread's.
    let touched = chunk.touched.load(Relaxed).max(chunk.end.load(Relaxed));
    touched.saturating_sub(first_page())
}

/// Purges the blocks of a chunk. True if there was anything to purge.
///
/// # Safety
///
/// The chunk is dead, and the calling thread's.
unsafe fn purge_chunk(chunk: NonNull<Chunk>) -> bool {
    // SAFETY: the caller's promise.
    let header = unsafe { chunk.as_ref() };
    let memory = touched_beyond_first_page(header);
    if memory == 0 {
        return false;
    }
    let size = memory.next_multiple_of(Linux.page_size());
    // SAFETY: the pages lie in the chunk, whose end is a multiple of the page size, and hold
    // nothing but dead blocks.
    let purged = unsafe {
        let start = chunk.cast::<u8>().add(first_page());
        Linux.purge(start, size)
    };
    if purged {
        // SAFETY: the caller's promise.
        unsafe { header.clear_marks() };
        // Relaxed: as above.
        header.end.store(FIRST, Relaxed);
        header.touched.store(first_page(), Relaxed);
    }
    purged
}
