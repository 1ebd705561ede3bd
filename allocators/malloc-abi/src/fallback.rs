//! Fallback: allocates blocks for threads that may not use the allocator because another thread
//! forks.
//!
//! There is no lock: a lock that some thread holds at the moment of the fork would stay held in the
//! child. Blocks lie in chunks, in a list that only grows. One word of a chunk holds both the
//! number of live blocks and the offset of the free room. So allocating and freeing each change
//! these in one atomic step. A chunk is reused when its last block is freed. The child can continue
//! from any step at which the process forked. If another thread of the parent was allocating or
//! freeing at that moment, the child may lose that thread's block, and then the block's chunk is
//! not reused.
//!
//! ```text
//! chunk, at a multiple of 1 MiB
//! | header | size, mark | block | size, mark | block | ... room ... |
//! ```

use core::ptr::{NonNull, null_mut};
use heapdrome_pages::atomic::{
    AtomicBool, AtomicPtr, AtomicU64, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

use heapdrome_pages::{Access, Pages};

/// Alignment of every chunk, and size of every chunk whose first block fits into this size. Every
/// block begins within this distance of its chunk's header.
pub const CHUNK: usize = 1 << 20;
/// Alignment of blocks, and bytes before each block for its size and mark.
const GRAIN: usize = 16;
/// Offset of the first byte behind a chunk's header.
const FIRST: u32 = 64;
/// Value in place of the offset while a thread is purging the chunk, which then has no live block.
const CLAIMED: u32 = u32::MAX;
/// Maximum number of resident bytes at the start of an empty chunk that do not justify a purge.
const KEPT: u32 = 64 << 10;
/// Number of empty chunks that [`Fallback::purge`] leaves resident, because a program that has
/// forked may soon fork again.
const KEPT_CHUNKS: usize = 2;
/// Number of entries in a table of known chunks, which saves walks through the list.
const KNOWN: usize = 64;
/// Size of the smallest large block. Large blocks have separate chunks, because a long-lived small
/// block would keep the whole chunk from being reused.
const LARGE: usize = 16 << 10;
/// Tag of a live block; its mark is the tag XOR the block's address.
const LIVE: usize = 0x6c69_7665_626c_6f63;
/// Tag of a freed block; its mark is the tag XOR the block's address.
const FREED: usize = 0x6672_6565_626c_6f63;

/// Header of a chunk.
#[derive(Debug)]
#[repr(C)]
struct Chunk {
    /// Always null. An allocator's `free` may read the first word at a multiple of 1 MiB; null
    /// shows that the block is not its own.
    foreign: *mut u8,
    /// Chunk that was added before this one, or null.
    next: *mut Chunk,
    /// Bytes of the whole chunk, including this header.
    size: usize,
    /// Whether the chunk holds blocks of at least [`LARGE`] bytes; otherwise it holds only smaller
    /// blocks.
    large: bool,
    /// Upper half: number of live blocks. Lower half: offset of the free room, or [`CLAIMED`].
    state: AtomicU64,
    /// Whether more than [`KEPT`] bytes may be resident when the chunk becomes empty.
    resident: AtomicBool,
}

const _: () = assert!(size_of::<Chunk>() <= FIRST as usize);

/// Header of a block, directly before its first byte.
#[derive(Debug)]
#[repr(C)]
struct Prefix {
    size: usize,
    mark: AtomicUsize,
}

const _: () = assert!(size_of::<Prefix>() == GRAIN);

/// Result of freeing an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freed {
    /// The fallback had allocated the block, which is free now.
    Done,
    /// The address lies in a chunk, but no live block begins there.
    NotABlock,
    /// The address does not lie in a chunk.
    Elsewhere,
}

/// List of all chunks.
#[derive(Debug)]
pub struct Fallback {
    newest: AtomicPtr<Chunk>,
    /// Chunks from which the last small and the last large block were taken.
    current: [AtomicPtr<Chunk>; 2],
    /// Table of known chunks, indexed by address. An entry that was once valid stays valid, because
    /// chunks are never unmapped.
    known: [AtomicPtr<Chunk>; KNOWN],
}

impl Fallback {
    /// Creates a list without chunks.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            newest: AtomicPtr::new(null_mut()),
            current: [const { AtomicPtr::new(null_mut()) }; 2],
            known: [const { AtomicPtr::new(null_mut()) }; KNOWN],
        }
    }

    /// Returns a block of at least `size` bytes at a multiple of `alignment`, a power of two;
    /// `None` if out of memory, or if the size or the alignment is too large. The contents are
    /// undefined.
    pub fn allocate(
        &self,
        pages: &impl Pages,
        size: usize,
        alignment: usize,
    ) -> Option<NonNull<u8>> {
        let size = size.max(1).checked_next_multiple_of(GRAIN)?;
        let alignment = alignment.max(GRAIN);
        // Acquire: pairs with the release in `allocate_elsewhere`, so that this thread sees the
        // header.
        let current = NonNull::new(self.current[usize::from(size >= LARGE)].load(Acquire));
        current
            .and_then(|chunk| take(chunk, size, alignment))
            .or_else(|| self.allocate_elsewhere(pages, size, alignment))
    }

    #[cold]
    fn allocate_elsewhere(
        &self,
        pages: &impl Pages,
        size: usize,
        alignment: usize,
    ) -> Option<NonNull<u8>> {
        // SAFETY: chunks are never unmapped, and `large` does not change.
        let fits = |chunk: &NonNull<Chunk>| unsafe { (*chunk.as_ptr()).large } == (size >= LARGE);
        let found = self
            .chunks()
            .filter(fits)
            .find_map(|chunk| Some((chunk, take(chunk, size, alignment)?)));
        let (chunk, block) = match found {
            Some(found) => found,
            None => self.allocate_in_new_chunk(pages, size, alignment)?,
        };
        // Release: pairs with the acquire in `allocate`.
        self.current[usize::from(size >= LARGE)].store(chunk.as_ptr(), Release);
        Some(block)
    }

    /// Frees the block at `address`, if the fallback allocated it. If the chunk is then empty,
    /// purges it, unless `keep` is true because the memory will soon be needed again.
    #[cold]
    pub fn free(&self, pages: &impl Pages, address: usize, keep: bool) -> Freed {
        let Some(chunk) = self.chunk_of(address) else {
            return Freed::Elsewhere;
        };
        let Some(prefix) = prefix_of(chunk, address) else {
            return Freed::NotABlock;
        };
        // SAFETY: the prefix lies in the chunk, whose memory is never unmapped.
        let mark = unsafe { &(*prefix.as_ptr()).mark };
        // If two threads free the block, only one exchange succeeds. Relaxed: `give` orders the
        // free before the reuse of the room.
        let was_live = mark
            .compare_exchange(address ^ LIVE, address ^ FREED, Relaxed, Relaxed)
            .is_ok();
        if !was_live {
            return Freed::NotABlock;
        }
        if give(chunk) && !keep {
            purge(chunk, pages);
        }
        Freed::Done
    }

    /// Returns the usable bytes of the live block at `address`; `None` if another allocator
    /// allocated it.
    #[must_use]
    pub fn usable_size(&self, address: usize) -> Option<usize> {
        let prefix = prefix_of(self.chunk_of(address)?, address)?;
        // SAFETY: the prefix lies in the chunk. A live block's size does not change.
        Some(unsafe { (*prefix.as_ptr()).size })
    }

    /// Purges empty chunks, except [`KEPT_CHUNKS`].
    #[cold]
    pub fn purge(&self, pages: &impl Pages) {
        let empty = |chunk: &NonNull<Chunk>| {
            // SAFETY: chunks are never unmapped. Relaxed: `purge` checks again.
            unsafe { (*chunk.as_ptr()).state.load(Relaxed) == pack(0, FIRST) }
        };
        self.chunks()
            .filter(empty)
            .skip(KEPT_CHUNKS)
            .for_each(|chunk| purge(chunk, pages));
    }

    /// In the child of a fork, makes the chunks that threads of the parent were purging usable
    /// again.
    #[cold]
    pub fn restore_in_child(&self) {
        for chunk in self.chunks() {
            // SAFETY: chunks are never unmapped.
            let state = unsafe { &(*chunk.as_ptr()).state };
            // Relaxed: there is no other thread.
            let (live, room) = unpack(state.load(Relaxed));
            if room == CLAIMED {
                state.store(pack(live, FIRST), Relaxed);
            }
        }
    }

    fn chunks(&self) -> impl Iterator<Item = NonNull<Chunk>> {
        // Acquire: pairs with the release in `add`, so that this thread sees the header.
        let mut next = self.newest.load(Acquire);
        core::iter::from_fn(move || {
            let chunk = NonNull::new(next)?;
            // SAFETY: chunks are never unmapped, and `next` does not change once a chunk is listed.
            next = unsafe { (*chunk.as_ptr()).next };
            Some(chunk)
        })
    }

    /// Returns whether the fallback has ever allocated a block.
    #[inline]
    pub fn is_used(&self) -> bool {
        // Relaxed: a thread with a block of the fallback received the block from a thread that had
        // seen the list, so it cannot read null.
        !self.newest.load(Relaxed).is_null()
    }

    fn chunk_of(&self, address: usize) -> Option<NonNull<Chunk>> {
        if !self.is_used() {
            return None;
        }
        let chunk = self.find_chunk_of(address)?;
        // SAFETY: chunks are never unmapped; the size does not change.
        let end = chunk.addr().get() + unsafe { (*chunk.as_ptr()).size };
        // An address at the exact end of the chunk belongs to another mapping.
        (address < end).then_some(chunk)
    }

    #[cold]
    fn find_chunk_of(&self, address: usize) -> Option<NonNull<Chunk>> {
        // Address of the header: every block begins within [`CHUNK`] bytes behind it.
        let base = address.wrapping_sub(1) & !(CHUNK - 1);
        let known = &self.known[base / CHUNK % KNOWN];
        // Acquire: pairs with the release below, so that this thread sees the header.
        let chunk = NonNull::new(known.load(Acquire));
        if let Some(chunk) = chunk.filter(|chunk| chunk.addr().get() == base) {
            return Some(chunk);
        }
        let chunk = self.chunks().find(|chunk| chunk.addr().get() == base)?;
        // Release: pairs with the acquire above.
        known.store(chunk.as_ptr(), Release);
        Some(chunk)
    }

    fn allocate_in_new_chunk(
        &self,
        pages: &impl Pages,
        size: usize,
        alignment: usize,
    ) -> Option<(NonNull<Chunk>, NonNull<u8>)> {
        let page = pages.page_size();
        // The block begins at the next multiple of its alignment behind the header and the block's
        // prefix. If the alignment is at least that of a chunk, this is exactly [`CHUNK`] bytes
        // behind the header. A larger alignment also leaves unused addresses before the header.
        let offset = (FIRST as usize + GRAIN).next_multiple_of(alignment.min(CHUNK));
        let front = alignment.max(CHUNK) - CHUNK;
        let bytes = offset.checked_add(size)?.max(CHUNK);
        let bytes = bytes.checked_next_multiple_of(page)?;
        let whole = front.checked_add(bytes)?;
        let start = pages.reserve(whole, alignment.max(CHUNK), Access::ReadWrite)?;
        // SAFETY: the chunk lies within the reservation.
        let chunk = unsafe { start.add(front) }.cast::<Chunk>();
        // SAFETY: the memory is new, and no other thread knows it. If the system refuses to release
        // the front, only addresses are lost.
        unsafe {
            if front > 0 {
                let _ = pages.release(start, front);
            }
            chunk.write(Chunk {
                foreign: null_mut(),
                next: null_mut(),
                size: bytes,
                large: size >= LARGE,
                state: AtomicU64::new(pack(0, FIRST)),
                resident: AtomicBool::new(false),
            });
        }
        let block = take(chunk, size, alignment)?;
        self.add(chunk);
        Some((chunk, block))
    }

    fn add(&self, chunk: NonNull<Chunk>) {
        let mut newest = self.newest.load(Relaxed);
        loop {
            // SAFETY: the chunk is not listed yet, so no other thread uses it.
            unsafe { (*chunk.as_ptr()).next = newest };
            // Release: pairs with the acquire in `chunks`.
            match self
                .newest
                .compare_exchange(newest, chunk.as_ptr(), Release, Relaxed)
            {
                Ok(_) => return,
                Err(other) => newest = other,
            }
        }
    }
}

impl Default for Fallback {
    fn default() -> Self {
        Self::new()
    }
}

const fn pack(live: u32, room: u32) -> u64 {
    (live as u64) << 32 | room as u64
}

const fn unpack(state: u64) -> (u32, u32) {
    ((state >> 32) as u32, state as u32)
}

/// Allocates a block in a chunk; `None` if the chunk has no room or is being purged.
fn take(chunk: NonNull<Chunk>, size: usize, alignment: usize) -> Option<NonNull<u8>> {
    // SAFETY: chunks are never unmapped; the size does not change.
    let (state, bytes) = unsafe { (&(*chunk.as_ptr()).state, (*chunk.as_ptr()).size) };
    let base = chunk.addr().get();
    // Acquire, here and in the exchange: pairs with the releases in `give` and `purge`, so that
    // accesses to freed blocks precede the reuse of their room.
    let mut seen = state.load(Acquire);
    let offset = loop {
        let (live, room) = unpack(seen);
        if room == CLAIMED {
            return None;
        }
        let from = base + room as usize + GRAIN;
        let offset = from.checked_next_multiple_of(alignment)? - base;
        let end = offset.checked_add(size)?;
        if offset > CHUNK || end > bytes {
            return None;
        }
        // No block begins beyond the first mebibyte, so a larger offset need not be recorded
        // exactly.
        let after = pack(live + 1, end.min(CHUNK) as u32);
        match state.compare_exchange(seen, after, AcqRel, Acquire) {
            Ok(_) => break offset,
            Err(other) => seen = other,
        }
    };
    // SAFETY: the block and its prefix lie in the chunk, and belong to this thread since the
    // exchange.
    unsafe {
        let block = chunk.cast::<u8>().add(offset);
        let prefix = block.sub(GRAIN).cast::<Prefix>().as_ptr();
        (*prefix).size = size;
        // Relaxed: the thread that frees the block received it from this thread.
        (*prefix).mark.store(block.addr().get() ^ LIVE, Relaxed);
        Some(block)
    }
}

/// Returns the prefix of the block at `address`; `None` if no block can begin there.
fn prefix_of(chunk: NonNull<Chunk>, address: usize) -> Option<NonNull<Prefix>> {
    let offset = address - chunk.addr().get();
    let possible = address.is_multiple_of(GRAIN) && offset >= FIRST as usize + GRAIN;
    // SAFETY: the offset is at most the minimum size of a chunk, so the prefix lies in the chunk.
    possible.then(|| unsafe { chunk.cast::<u8>().add(offset - GRAIN) }.cast())
}

/// Counts a free. Returns whether the chunk is empty now.
fn give(chunk: NonNull<Chunk>) -> bool {
    // SAFETY: chunks are never unmapped.
    let (state, resident) = unsafe { (&(*chunk.as_ptr()).state, &(*chunk.as_ptr()).resident) };
    let mut seen = state.load(Relaxed);
    loop {
        let (live, room) = unpack(seen);
        if room > KEPT {
            // Relaxed: only a hint. The exchange below orders it for the thread that frees the last
            // block.
            resident.store(true, Relaxed);
        }
        let after = match live {
            1 => pack(0, FIRST),
            _ => pack(live - 1, room),
        };
        // AcqRel: the release pairs with the acquires in `take` and `purge`, so that every free
        // precedes the reuse or the purge of the room. The acquire lets the thread that frees the
        // last block see `resident`.
        match state.compare_exchange(seen, after, AcqRel, Relaxed) {
            Ok(_) => return live == 1,
            Err(other) => seen = other,
        }
    }
}

/// Returns a chunk's memory except its first page to the system, if the chunk is empty and more
/// than [`KEPT`] bytes may be resident.
fn purge(chunk: NonNull<Chunk>, pages: &impl Pages) {
    // SAFETY: chunks are never unmapped; the size does not change.
    let (header, bytes) = unsafe { (&*chunk.as_ptr(), (*chunk.as_ptr()).size) };
    let (empty, claimed) = (pack(0, FIRST), pack(0, CLAIMED));
    // Acquire: pairs with the releases in `give`, so that accesses to freed blocks precede the
    // purge. While the chunk is claimed, no other thread takes a block.
    let claim = || {
        header
            .state
            .compare_exchange(empty, claimed, Acquire, Relaxed)
    };
    if !header.resident.load(Relaxed) || claim().is_err() {
        return;
    }
    header.resident.store(false, Relaxed);
    let page = pages.page_size();
    // SAFETY: the chunk consists of whole pages, and its header lies on the first page. It has no
    // live block, and no thread takes a block until the store below.
    unsafe { pages.purge(chunk.cast::<u8>().add(page), bytes - page) };
    // Release: pairs with the acquire in `take`.
    header.state.store(empty, Release);
}

#[cfg(test)]
#[path = "fallback/tests.rs"]
mod tests;
