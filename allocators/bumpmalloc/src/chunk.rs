//! A mebibyte of address space: header, marks, blocks.
//!
//! ```text
//! chunk, at a multiple of 1 MiB
//! | header | marks: a bit for every 16 bytes | nothing | block | block | gap | block | ... room |
//!                                          8 KiB     FIRST                        cursor      SIZE
//! ```
//!
//! The header stands where the marks of the first 16 KiB would be. So header and marks have two
//! pages, and what that leaves without marks is never touched.
//!
//! A mark stands at the last 16 bytes of every block; so a block's size is found without a word in
//! the block or beside it, and a block that is never touched costs no memory. Only the owner writes
//! marks. A block's mark is set before the block is handed out and stays; a thread that was handed
//! the block therefore sees it.
//!
//! Who counts what: the owner counts its allocations in its heap and its frees in `freed`, with
//! plain loads and stores, being the only writer; all other threads count theirs in `remote`. A
//! chunk is dead when both sum up to the number of blocks allocated in it. The owner looks when it
//! needs a chunk. When it goes, it sets `remote`, in one step, to `MERGED` less the number of live
//! blocks, and from then on the thread whose free makes it `MERGED` takes the chunk. A count is a
//! thread's last access to a header: whoever finds a chunk dead may unmap it.

use core::mem::offset_of;
use core::ptr::{NonNull, null_mut};
use heapdrome_pages::atomic::{
    AtomicPtr, AtomicU64, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

use heapdrome_malloc_abi::MIN_ALIGNMENT;

/// The size of a chunk, and what it is aligned to.
pub const SIZE: usize = 1 << 20;
/// Bytes per mark.
pub const GRANULE: usize = MIN_ALIGNMENT;
/// Bytes per word of marks, as a shift.
pub const WORD_SHIFT: u32 = 10;
/// Words that there would be if all of the chunk had marks.
const WORDS: usize = SIZE >> WORD_SHIFT;
/// How many of them, the first, have the header in their place.
const HEADER_WORDS: usize = 128 / size_of::<AtomicU64>();

/// Offset of the first block: that of the first mark.
pub const FIRST: usize = HEADER_WORDS << WORD_SHIFT;

/// What `remote` is when the owner is gone and all blocks have been freed; below it, by one for
/// each, as long as there are live ones. While there is an owner, `remote` is a small number.
const MERGED: usize = 1 << (usize::BITS - 1);

const _: () = {
    assert!(FIRST.is_multiple_of(GRANULE) && 1 << WORD_SHIFT == 64 * GRANULE);
    assert!(offset_of!(Chunk, marks) == HEADER_WORDS * size_of::<AtomicU64>());
    assert!(size_of::<Chunk>() == WORDS * size_of::<AtomicU64>() && size_of::<Chunk>() <= FIRST);
};

/// Owner of a chunk, known by its address only: a thread's heap.
#[derive(Debug)]
pub struct Owner(());

/// Owner of a block that has its own mapping. Never a thread's heap.
pub const MAPPED: *mut Owner = core::ptr::without_provenance_mut(1);

/// The header of a chunk, and of a block that has its own mapping.
#[repr(C, align(64))]
pub struct Chunk {
    /// The heap whose thread allocates here and counts in `freed`; null if none does; `MAPPED`.
    pub owner: AtomicPtr<Owner>,
    /// How many blocks the owner has freed.
    pub freed: AtomicUsize,
    /// How many blocks were allocated: set when the chunk is retired.
    pub allocated: AtomicUsize,
    /// Offset of the end of the last block: set when the chunk is retired. For a block with its own
    /// mapping, the block's size.
    pub end: AtomicUsize,
    /// Offset from which on all bytes are zero, because they were never handed out. For a block
    /// with its own mapping, the size of the mapping.
    pub touched: AtomicUsize,
    /// The next chunk in the list that this one is in, which is its list's owner's to use.
    pub next: AtomicPtr<Chunk>,
    remote: Remote,
    marks: [AtomicU64; WORDS - HEADER_WORDS],
}

/// What other threads write stands on a cache line of its own.
#[repr(align(64))]
struct Remote(AtomicUsize);

/// The chunk or mapping that a block lies in. A block never begins where a chunk does, but a
/// mapping's block may begin exactly one chunk size after its header.
#[inline(always)]
pub fn of(block: *mut u8) -> *mut Chunk {
    block
        .map_addr(|address| address.wrapping_sub(1) & !(SIZE - 1))
        .cast()
}

/// What must be added to the address of a word of marks' first byte of blocks, shifted by
/// `WORD_SHIFT` and counted in words, to get the word's own address.
pub fn marks_base(chunk: NonNull<Chunk>) -> *mut AtomicU64 {
    // The header is as long as the marks in whose place it stands.
    let marks = chunk.as_ptr().cast::<AtomicU64>();
    marks.wrapping_sub(chunk.addr().get() >> WORD_SHIFT)
}

/// Sets the mark at the granule that `last` lies in.
///
/// # Safety
///
/// `base` is the `marks_base` of the chunk that `last` lies in, which the calling thread owns.
#[inline(always)]
pub unsafe fn mark(base: *mut AtomicU64, last: usize) {
    // SAFETY: the word lies in the chunk's marks.
    let word = unsafe { &*base.wrapping_add(last >> WORD_SHIFT) };
    // Relaxed: the owner is the only writer; whoever reads a block's mark was handed the block.
    word.store(word.load(Relaxed) | (1 << ((last / GRANULE) % 64)), Relaxed);
}

/// Clears the mark at the granule that `last` lies in.
///
/// # Safety
///
/// As for [`mark`].
pub unsafe fn unmark(base: *mut AtomicU64, last: usize) {
    // SAFETY: the word lies in the chunk's marks.
    let word = unsafe { &*base.wrapping_add(last >> WORD_SHIFT) };
    // Relaxed: as in `mark`.
    word.store(
        word.load(Relaxed) & !(1 << ((last / GRANULE) % 64)),
        Relaxed,
    );
}

impl Chunk {
    /// Offset of the end of the block that begins at offset `start`.
    pub fn block_end(&self, start: usize) -> usize {
        let mut index = (start - FIRST) >> WORD_SHIFT;
        // Relaxed: as in `mark`.
        let mut bits = self.marks[index].load(Relaxed) & (!0 << ((start / GRANULE) % 64));
        while bits == 0 && index + 1 < self.marks.len() {
            index += 1;
            bits = self.marks[index].load(Relaxed);
        }
        // A block always has its mark; the end of the chunk stands for a broken program.
        let end = (index * 64 + bits.trailing_zeros() as usize + 1) * GRANULE;
        (FIRST + end).min(SIZE)
    }

    /// Makes the chunk `owner`'s, as empty as if it were new.
    ///
    /// # Safety
    ///
    /// The calling thread has taken the chunk, and nobody holds a block in it.
    pub unsafe fn restart(&self, owner: *mut Owner) {
        // Relaxed throughout: other threads learn of the chunk only with a block in it.
        let end = self.end.load(Relaxed);
        if end > self.touched.load(Relaxed) {
            self.touched.store(end, Relaxed);
        }
        // SAFETY: the caller's promise.
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
    /// As for [`restart`](Self::restart).
    pub unsafe fn clear_marks(&self) {
        // Relaxed: as in `mark`.
        let words = (self.end.load(Relaxed) - FIRST).div_ceil(1 << WORD_SHIFT);
        let marks = self.marks[..words].as_ptr().cast_mut();
        // SAFETY: the words may change behind a shared reference, and nobody else uses them now; so
        // they need no atomic stores, of which the compiler would make a loop.
        unsafe { marks.write_bytes(0, words) };
    }

    /// Says that nothing more will be allocated here: `allocated` blocks were, up to offset `end`.
    pub fn retire(&self, allocated: usize, end: usize) {
        // Relaxed: read under the lock of the list that the chunk goes into, or after a merge.
        self.allocated.store(allocated, Relaxed);
        self.end.store(end, Relaxed);
    }

    /// Counts a free by the owner.
    #[inline(always)]
    pub fn count_own_free(&self) {
        // Release: pairs with the acquire in `is_dead`, so that whoever takes the chunk comes after
        // what its former owner did in the blocks. The owner is the only writer.
        self.freed.store(self.freed.load(Relaxed) + 1, Release);
    }

    /// Counts a free by another thread. True if that was the last block of a chunk without owner,
    /// which is then the caller's.
    pub fn count_remote_free(&self) -> bool {
        // AcqRel: releases what this thread did in the block, and acquires what all the others did
        // in theirs, in case it was the last.
        self.remote.0.fetch_add(1, AcqRel) + 1 == MERGED
    }

    /// Whether `allocated` blocks were freed. Once true it stays so until the chunk is restarted.
    pub fn is_dead(&self, allocated: usize) -> bool {
        // Acquire: pairs with the releases of the two counts.
        self.freed.load(Acquire) + self.remote.0.load(Acquire) == allocated
    }

    /// Whether all blocks of a retired chunk were freed.
    pub fn is_retired_dead(&self) -> bool {
        self.is_dead(self.allocated.load(Relaxed))
    }

    /// Leaves a retired chunk without an owner. True if all its blocks were freed: it is then the
    /// caller's; otherwise it belongs to whoever frees the last.
    pub fn disown(&self) -> bool {
        // Relaxed: a thread that reads the old owner is not the owner, and counts as remote either
        // way.
        self.owner.store(null_mut(), Relaxed);
        let freed = self.freed.load(Relaxed);
        let live = self.allocated.load(Relaxed) - freed;
        // AcqRel: publishes what the owner did; acquires what the others did, in case theirs were
        // the last frees.
        self.remote.0.fetch_add(MERGED - live, AcqRel) == live
    }
}

/// Chunks in order of arrival, linked through themselves.
#[derive(Debug)]
pub struct List {
    first: *mut Chunk,
    last: *mut Chunk,
    length: usize,
}

// SAFETY: chunks belong to whoever holds the list.
unsafe impl Send for List {}

impl List {
    /// No chunks.
    pub const fn new() -> Self {
        Self {
            first: null_mut(),
            last: null_mut(),
            length: 0,
        }
    }

    /// How many there are.
    pub const fn length(&self) -> usize {
        self.length
    }

    /// Appends a chunk that is in no list.
    pub fn push(&mut self, chunk: NonNull<Chunk>) {
        // SAFETY: chunks in a list are mapped; the list's owner may use their links.
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

    /// Takes the chunk that has been here longest.
    pub fn pop(&mut self) -> Option<NonNull<Chunk>> {
        let chunk = NonNull::new(self.first)?;
        // SAFETY: as in `push`.
        self.first = unsafe { chunk.as_ref() }.next.load(Relaxed);
        if self.first.is_null() {
            self.last = null_mut();
        }
        self.length -= 1;
        Some(chunk)
    }

    /// Takes the first dead chunk of the `count` that have been here longest, and puts those before
    /// it at the end.
    pub fn pop_dead(&mut self, count: usize) -> Option<NonNull<Chunk>> {
        for _ in 0..count.min(self.length) {
            let chunk = self.pop()?;
            // SAFETY: as in `push`.
            if unsafe { chunk.as_ref() }.is_retired_dead() {
                return Some(chunk);
            }
            self.push(chunk);
        }
        None
    }
}
