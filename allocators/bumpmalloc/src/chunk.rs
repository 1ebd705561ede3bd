//! Chunks: mebibytes of address space, each with a header, marks and blocks.
//!
//! ```text
//! chunk, at a multiple of 1 MiB
//! | header | marks: a bit for every 16 bytes | nothing | block | block | gap | block | ... room |
//!                                          8 KiB     FIRST                        cursor      SIZE
//! ```
//!
//! The header occupies the place of the marks for the first 16 KiB. So header and marks take 8 KiB
//! in total. The other bytes of the first 16 KiB have no marks and are never touched.
//!
//! The mark of a block's last 16 bytes is set and shows where the block ends. So a block needs no
//! word for its size, and its pages stay untouched until the program writes to them. While the
//! chunk has live blocks, only the thread that allocates in it writes marks. A block's mark is set
//! before the block is handed out, and stays set until the block is resized, so every thread that
//! receives the block sees it.
//!
//! The owner counts its allocations in its heap and its frees in `freed`, with loads and stores
//! instead of read-modify-writes, because it is the only writer. All other threads count their
//! frees in `remote`. A chunk is dead when both counts together equal the number of blocks
//! allocated in it. The owner checks this when it needs a chunk. Other threads check it when the
//! pool has no chunk, and before they purge or release memory. When the owner leaves, it sets
//! `remote` in one atomic step to `MERGED` minus the number of live blocks. From then on, the
//! thread whose free raises `remote` to `MERGED` takes the chunk. Counting a free is a thread's
//! last access to a header, so a thread that finds a chunk dead may unmap it.

use core::mem::offset_of;
use core::ptr::{NonNull, null_mut};
use heapdrome_pages::atomic::{
    AtomicPtr, AtomicU64, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

use heapdrome_malloc_abi::MIN_ALIGNMENT;

/// Size and alignment of a chunk.
pub const SIZE: usize = 1 << 20;
/// Number of bytes that one mark covers.
pub const GRANULE: usize = MIN_ALIGNMENT;
/// Binary logarithm of the number of bytes that one word of marks covers.
pub const WORD_SHIFT: u32 = 10;
/// Number of words of marks for a whole chunk.
const WORDS: usize = SIZE >> WORD_SHIFT;
/// Number of leading words of marks whose place the header takes.
const HEADER_WORDS: usize = 128 / size_of::<AtomicU64>();

/// Offset of the first block, and of the first marked granule.
pub const FIRST: usize = HEADER_WORDS << WORD_SHIFT;

/// Value of `remote` when the owner has left and all blocks have been freed. Each live block lowers
/// it by one. Until [`Chunk::disown`], `remote` is at most the number of allocated blocks, and so
/// far below this value.
const MERGED: usize = 1 << (usize::BITS - 1);

const _: () = {
    assert!(FIRST.is_multiple_of(GRANULE) && 1 << WORD_SHIFT == 64 * GRANULE);
    assert!(offset_of!(Chunk, marks) == HEADER_WORDS * size_of::<AtomicU64>());
    assert!(size_of::<Chunk>() == WORDS * size_of::<AtomicU64>() && size_of::<Chunk>() <= FIRST);
};

/// Owner of a chunk: a thread's heap, of which only the address matters.
#[derive(Debug)]
pub struct Owner(());

/// Owner of a block with its own mapping. Differs from every heap's address.
pub const MAPPED: *mut Owner = core::ptr::without_provenance_mut(1);

/// Header of a chunk, or of a block with its own mapping.
#[repr(C, align(64))]
pub struct Chunk {
    /// Heap whose thread allocates in the chunk and counts in `freed`. Null if the chunk has no
    /// owner; `MAPPED` for a block with its own mapping.
    pub owner: AtomicPtr<Owner>,
    /// Number of blocks that the owner has freed.
    pub freed: AtomicUsize,
    /// Number of blocks that were allocated in the chunk, set when the chunk is retired.
    pub allocated: AtomicUsize,
    /// Offset of the end of the last block, set when the chunk is retired. For a block with its own
    /// mapping, the block's size.
    pub end: AtomicUsize,
    /// Offset from which all bytes are zero, except in blocks that were allocated since the last
    /// restart. For a block with its own mapping, the size of the mapping.
    pub touched: AtomicUsize,
    /// Next chunk in a list. Only the thread that has access to the list uses this link.
    pub next: AtomicPtr<Chunk>,
    remote: Remote,
    marks: [AtomicU64; WORDS - HEADER_WORDS],
}

/// Count of frees by other threads, on a separate cache line.
#[repr(align(64))]
struct Remote(AtomicUsize);

/// Returns the header of a block's chunk or mapping. A block with its own mapping may begin exactly
/// one chunk size behind its header, so the address is lowered by one before it is rounded down.
/// This is right for every block, because no block begins at the start of a chunk.
#[inline(always)]
pub fn of(block: *mut u8) -> *mut Chunk {
    block
        .map_addr(|address| address.wrapping_sub(1) & !(SIZE - 1))
        .cast()
}

/// Returns the base of a chunk's marks. An address, shifted right by `WORD_SHIFT`, is the index
/// from this base of the word that holds the address's mark.
pub fn marks_base(chunk: NonNull<Chunk>) -> *mut AtomicU64 {
    // The header is as long as the marks that it replaces, so the words of marks count from the
    // start of the chunk.
    let marks = chunk.as_ptr().cast::<AtomicU64>();
    marks.wrapping_sub(chunk.addr().get() >> WORD_SHIFT)
}

/// Sets the mark of the granule at address `last`.
///
/// # Safety
///
/// `last` lies at or behind offset [`FIRST`] of a chunk in which the calling thread allocates, and
/// `base` is the chunk's `marks_base`.
#[inline(always)]
pub unsafe fn mark(base: *mut AtomicU64, last: usize) {
    // SAFETY: the word lies in the chunk's marks, by this function's contract.
    let word = unsafe { &*base.wrapping_add(last >> WORD_SHIFT) };
    // Relaxed: only one thread at a time allocates in the chunk and writes marks, and a thread
    // reads a block's mark only after it has received the block.
    word.store(word.load(Relaxed) | (1 << ((last / GRANULE) % 64)), Relaxed);
}

/// Clears the mark of the granule at address `last`.
///
/// # Safety
///
/// The conditions of [`mark`] hold.
pub unsafe fn unmark(base: *mut AtomicU64, last: usize) {
    // SAFETY: the word lies in the chunk's marks, by this function's contract.
    let word = unsafe { &*base.wrapping_add(last >> WORD_SHIFT) };
    // Relaxed: only one thread at a time allocates in the chunk and writes marks.
    word.store(
        word.load(Relaxed) & !(1 << ((last / GRANULE) % 64)),
        Relaxed,
    );
}

impl Chunk {
    /// Returns the offset of the end of the block that begins at offset `start`.
    pub fn block_end(&self, start: usize) -> usize {
        let mut index = (start - FIRST) >> WORD_SHIFT;
        // Relaxed: the thread received the block after its mark was set.
        let mut bits = self.marks[index].load(Relaxed) & (!0 << ((start / GRANULE) % 64));
        while bits == 0 && index + 1 < self.marks.len() {
            index += 1;
            bits = self.marks[index].load(Relaxed);
        }
        // Every live block has a mark. For an invalid `start`, the result may be the end of the
        // chunk.
        let end = (index * 64 + bits.trailing_zeros() as usize + 1) * GRANULE;
        (FIRST + end).min(SIZE)
    }

    /// Empties the chunk for a new owner.
    ///
    /// # Safety
    ///
    /// The chunk belongs to the calling thread, and no block in it is live.
    pub unsafe fn restart(&self, owner: *mut Owner) {
        // Relaxed throughout: other threads access the chunk only after they have received a block
        // in it.
        let end = self.end.load(Relaxed);
        if end > self.touched.load(Relaxed) {
            self.touched.store(end, Relaxed);
        }
        // SAFETY: the chunk belongs to the calling thread, and no block in it is live, by this
        // function's contract.
        unsafe { self.clear_marks() };
        self.end.store(FIRST, Relaxed);
        self.freed.store(0, Relaxed);
        self.remote.0.store(0, Relaxed);
        self.next.store(null_mut(), Relaxed);
        self.owner.store(owner, Relaxed);
    }

    /// Clears the marks of all blocks before `end`.
    ///
    /// # Safety
    ///
    /// The conditions of [`restart`](Self::restart) hold.
    pub unsafe fn clear_marks(&self) {
        // Relaxed: the chunk belongs to the calling thread.
        let words = (self.end.load(Relaxed) - FIRST).div_ceil(1 << WORD_SHIFT);
        let marks = self.marks[..words].as_ptr().cast_mut();
        // SAFETY: the words are atomics, which may change behind a shared reference. By this
        // function's contract, the chunk belongs to this thread and has no live block, so no other
        // thread uses its marks. Atomic stores would be slower, because the compiler would emit a
        // loop.
        unsafe { marks.write_bytes(0, words) };
    }

    /// Records that no further blocks are allocated in the chunk: it has `allocated` blocks, up to
    /// offset `end`.
    pub fn retire(&self, allocated: usize, end: usize) {
        // Relaxed: other threads read both words only under the lock of the list that receives the
        // chunk, or after an acquire that pairs with the release in `disown`.
        self.allocated.store(allocated, Relaxed);
        self.end.store(end, Relaxed);
    }

    /// Counts a free by the owner.
    #[inline(always)]
    pub fn count_own_free(&self) {
        // Release: pairs with the acquire in `is_dead`, so that the owner's accesses to its blocks
        // precede the reuse of the chunk. The owner is the only writer, so no free is lost between
        // the load and the store.
        self.freed.store(self.freed.load(Relaxed) + 1, Release);
    }

    /// Counts a free by a thread other than the owner. Returns true if this was the last live block
    /// of a [disowned](Self::disown) chunk; the chunk then belongs to the caller.
    pub fn count_remote_free(&self) -> bool {
        // AcqRel: releases this thread's accesses to the block. If this was the last live block,
        // acquires the other threads' accesses to their blocks.
        self.remote.0.fetch_add(1, AcqRel) + 1 == MERGED
    }

    /// Returns whether all `allocated` blocks were freed. Once true for a retired chunk, this stays
    /// true until the chunk is restarted or disowned.
    pub fn is_dead(&self, allocated: usize) -> bool {
        // Acquire: pairs with the releases in `count_own_free` and `count_remote_free`.
        self.freed.load(Acquire) + self.remote.0.load(Acquire) == allocated
    }

    /// Returns whether all blocks of a retired chunk were freed.
    pub fn is_retired_dead(&self) -> bool {
        self.is_dead(self.allocated.load(Relaxed))
    }

    /// Removes the owner of a retired chunk. Returns true if all blocks were freed: the chunk then
    /// belongs to the caller. Otherwise the chunk goes to the thread that frees the last block.
    pub fn disown(&self) -> bool {
        // Relaxed: every other thread counts a remote free, whether it reads the old owner or null.
        self.owner.store(null_mut(), Relaxed);
        let freed = self.freed.load(Relaxed);
        let live = self.allocated.load(Relaxed) - freed;
        // AcqRel: releases the owner's accesses to the blocks. If other threads freed the last
        // blocks, acquires their accesses.
        self.remote.0.fetch_add(MERGED - live, AcqRel) == live
    }
}

/// Queue of chunks, linked through their headers.
#[derive(Debug)]
pub struct List {
    first: *mut Chunk,
    last: *mut Chunk,
    length: usize,
}

// SAFETY: only the thread that has access to a list uses the links of its chunks, and chunks in a
// list are mapped.
unsafe impl Send for List {}

impl List {
    /// Creates an empty list.
    pub const fn new() -> Self {
        Self {
            first: null_mut(),
            last: null_mut(),
            length: 0,
        }
    }

    /// Returns the number of chunks.
    pub const fn length(&self) -> usize {
        self.length
    }

    /// Appends a chunk that is in no list.
    pub fn push(&mut self, chunk: NonNull<Chunk>) {
        // SAFETY: the pushed chunk and the chunks in the list are mapped, and the list's owner may
        // use their links.
        unsafe {
            chunk.as_ref().next.store(null_mut(), Relaxed);
            match NonNull::new(self.last) {
                Some(last) => last.as_ref().next.store(chunk.as_ptr(), Relaxed),
                None => self.first = chunk.as_ptr(),
            }
        }
        self.last = chunk.as_ptr();
        self.length += 1;
    }

    /// Removes and returns the oldest chunk in the list.
    pub fn pop(&mut self) -> Option<NonNull<Chunk>> {
        let chunk = NonNull::new(self.first)?;
        // SAFETY: chunks in a list are mapped, and the list's owner may use their links.
        self.first = unsafe { chunk.as_ref() }.next.load(Relaxed);
        if self.first.is_null() {
            self.last = null_mut();
        }
        self.length -= 1;
        Some(chunk)
    }

    /// Removes and returns the first dead chunk among the `count` oldest in the list. Moves the
    /// chunks with live blocks that it checks before that one to the end of the list.
    pub fn pop_dead(&mut self, count: usize) -> Option<NonNull<Chunk>> {
        for _ in 0..count.min(self.length) {
            let chunk = self.pop()?;
            // SAFETY: chunks in a list are mapped.
            if unsafe { chunk.as_ref() }.is_retired_dead() {
                return Some(chunk);
            }
            self.push(chunk);
        }
        None
    }
}
