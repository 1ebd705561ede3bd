//! A thread's heap, and the fast path.

use core::cell::Cell;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use heapdrome_malloc_abi::{Presence, thread_slot};
use heapdrome_pages::Lock;

use crate::chunk::{self, Chunk, GRANULE, List};

/// Where a thread allocates.
#[repr(C, align(64))]
pub struct Heap {
    /// Where the next block begins.
    pub cursor: Cell<usize>,
    /// Where the chunk ends.
    pub limit: Cell<usize>,
    /// The `marks_base` of the chunk.
    pub marks: Cell<*mut AtomicU64>,
    /// How many blocks were allocated in the chunk.
    pub count: Cell<usize>,
    /// The chunk, or null.
    pub chunk: Cell<*mut Chunk>,
    /// Chunks that are full and may have live blocks. Its thread alone adds to it; any thread that
    /// finds no other memory takes dead ones.
    pub retired: Lock<List>,
    /// Whether the thread is on a slow path.
    pub presence: Presence,
    /// The next heap of all, dead ones included: written once, under the registry's lock.
    pub next: Cell<*mut Heap>,
    /// The next heap without a thread: the registry's.
    pub next_free: Cell<*mut Heap>,
}

// SAFETY: the cells are the owning thread's; the two links are used under the registry's lock.
unsafe impl Sync for Heap {}
// SAFETY: as above.
unsafe impl Send for Heap {}

impl Heap {
    /// A heap without room.
    pub const fn new() -> Self {
        Self {
            cursor: Cell::new(0),
            limit: Cell::new(0),
            marks: Cell::new(null_mut()),
            count: Cell::new(0),
            chunk: Cell::new(null_mut()),
            retired: Lock::new(List::new()),
            presence: Presence::of_one(),
            next: Cell::new(null_mut()),
            next_free: Cell::new(null_mut()),
        }
    }

    /// A heap without room that any number of threads have.
    const fn of_many() -> Self {
        let mut heap = Self::new();
        heap.presence = Presence::of_many();
        heap
    }
}

/// The heap of a thread that has not allocated yet: no room, and owner of nothing. Only its
/// presence is ever written to.
pub static EMPTY: Heap = Heap::of_many();
/// The heap of a thread that has ended. It never gets another.
pub static ENDED: Heap = Heap::of_many();

thread_slot!(
    /// The calling thread's heap.
    pub(crate) CURRENT: Heap = EMPTY, "heapdrome_bumpmalloc_heap"
);

/// The calling thread's heap, its room possibly none.
#[inline(always)]
pub fn current() -> &'static Heap {
    // SAFETY: the pointer is never null, and heaps are never freed.
    unsafe { &*CURRENT::get() }
}

impl Heap {
    /// The fast path: a block in the room that is left. A size of 0 is left to the slow path.
    #[inline(always)]
    pub fn bump(&self, size: usize) -> Option<NonNull<u8>> {
        let start = self.cursor.get();
        // The last byte of the block's last granule. A size of 0 counts as the greatest there is,
        // which overflows or lies beyond any limit. Room is whole granules.
        let last = start.checked_add(size.wrapping_sub(1) | (GRANULE - 1))?;
        if last >= self.limit.get() {
            return None;
        }
        self.cursor.set(last + 1);
        self.count.set(self.count.get() + 1);
        // SAFETY: there was room, so the heap has a chunk, its thread's own, that the block lies
        // in.
        unsafe {
            chunk::mark(self.marks.get(), last);
            Some(NonNull::new_unchecked(self.at(start)))
        }
    }

    /// A block in the room that is left, at a multiple of `alignment`.
    pub fn bump_aligned(&self, size: usize, alignment: usize) -> Option<NonNull<u8>> {
        let start = self.cursor.get();
        let aligned = start.checked_next_multiple_of(alignment)?;
        if aligned >= self.limit.get() {
            return None;
        }
        self.cursor.set(aligned);
        let block = self.bump(size.max(1));
        if block.is_none() {
            self.cursor.set(start);
        }
        block
    }

    /// The byte of the chunk at this address.
    #[inline(always)]
    fn at(&self, address: usize) -> *mut u8 {
        self.marks.get().cast::<u8>().with_addr(address)
    }

    /// The fast path of free: true if the block is in a chunk of this heap, and has been counted.
    ///
    /// # Safety
    ///
    /// The heap is the calling thread's, and `block` a live block that the caller gives up.
    #[inline(always)]
    pub unsafe fn free_own(&self, block: *mut u8) -> bool {
        // SAFETY: every block lies behind a header.
        let chunk = unsafe { &*chunk::of(block) };
        // Relaxed: only the owner itself sets the owner to its own heap, and only it takes it away.
        let own = core::ptr::eq(chunk.owner.load(Relaxed).cast::<Self>(), self);
        if own {
            chunk.count_own_free();
        }
        own
    }

    /// Makes a chunk the one that this heap allocates in.
    ///
    /// # Safety
    ///
    /// The heap is the calling thread's, or locked; the chunk has been restarted for it.
    pub unsafe fn install(&self, chunk: NonNull<Chunk>) {
        let start = chunk.addr().get();
        self.chunk.set(chunk.as_ptr());
        self.marks.set(chunk::marks_base(chunk));
        self.count.set(0);
        self.cursor.set(start + chunk::FIRST);
        self.limit.set(start + chunk::SIZE);
    }

    /// Takes the chunk away that this heap allocates in, retired, if there is one.
    ///
    /// # Safety
    ///
    /// The heap is the calling thread's, or locked.
    pub unsafe fn uninstall(&self) -> Option<NonNull<Chunk>> {
        let chunk = NonNull::new(self.chunk.replace(null_mut()))?;
        // SAFETY: a heap's chunk is mapped.
        let header = unsafe { chunk.as_ref() };
        header.retire(self.count.get(), self.cursor.get() - chunk.addr().get());
        self.cursor.set(0);
        self.limit.set(0);
        Some(chunk)
    }
}
