//! Heap of a thread, and the fast path.

use core::cell::Cell;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use heapdrome_malloc_abi::{Presence, thread_slot};
use heapdrome_pages::Lock;

use crate::chunk::{self, Chunk, GRANULE, List};

/// Allocation state of one thread. Several threads share a static heap.
#[repr(C, align(64))]
pub struct Heap {
    /// Address of the next block.
    pub cursor: Cell<usize>,
    /// Address of the end of the chunk.
    pub limit: Cell<usize>,
    /// Base of the chunk's marks, as [`chunk::marks_base`] returns it.
    pub marks: Cell<*mut AtomicU64>,
    /// Number of blocks allocated in the chunk.
    pub count: Cell<usize>,
    /// Current chunk, or null.
    pub chunk: Cell<*mut Chunk>,
    /// Full chunks that may have live blocks. Only the heap's thread adds chunks. Any thread may
    /// take dead chunks.
    pub retired: Lock<List>,
    /// Whether the thread is on a slow path.
    pub presence: Presence,
    /// Next heap in the registry, which also lists heaps whose thread has ended. Written once,
    /// under the registry's lock.
    pub next: Cell<*mut Heap>,
    /// Next heap in the list of heaps without a thread. The registry's lock guards this link.
    pub next_free: Cell<*mut Heap>,
}

// SAFETY: `next` is written before the heap is listed, under the registry's lock. That lock also
// guards `next_free`. The other cells of `EMPTY` and `ENDED` are never written. Those of the heap
// of ended threads are used only under that heap's lock, and those of any other heap only by its
// thread.
unsafe impl Sync for Heap {}
// SAFETY: a heap refers to no thread-local state, and passes to another thread only when its own
// thread no longer uses it.
unsafe impl Send for Heap {}

impl Heap {
    /// Creates a heap without a chunk.
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

    /// Creates a heap that any number of threads may share, and that has no chunk.
    const fn of_many() -> Self {
        let mut heap = Self::new();
        heap.presence = Presence::of_many();
        heap
    }
}

/// Heap of threads that have not allocated yet. It never has a chunk. Only its presence is ever
/// written to.
pub static EMPTY: Heap = Heap::of_many();
/// Heap of threads that are ending. Such a thread never gets a heap of its own again.
pub static ENDED: Heap = Heap::of_many();

thread_slot!(
    /// The calling thread's heap.
    pub(crate) CURRENT: Heap = EMPTY, "heapdrome_bumpmalloc_heap"
);

/// Returns the calling thread's heap, which may be static and without a chunk.
#[inline(always)]
pub fn current() -> &'static Heap {
    // SAFETY: the pointer is never null, and heaps are never freed.
    unsafe { &*CURRENT::get() }
}

impl Heap {
    /// Allocates a block from the remaining room of the chunk (the fast path). Returns `None` if
    /// the room is too small or `size` is 0.
    #[inline(always)]
    pub fn bump(&self, size: usize) -> Option<NonNull<u8>> {
        let start = self.cursor.get();
        // Address of the last byte of the block's last granule. The room consists of whole
        // granules, so the block fits if this byte does. For size 0, the addition overflows, or the
        // sum lies beyond every limit.
        let last = start.checked_add(size.wrapping_sub(1) | (GRANULE - 1))?;
        if last >= self.limit.get() {
            return None;
        }
        self.cursor.set(last + 1);
        self.count.set(self.count.get() + 1);
        // SAFETY: the block fits below the limit, so it lies behind offset `FIRST` of the heap's
        // chunk, in which this thread allocates. `marks` is the base of the chunk's marks. No block
        // is at address zero.
        unsafe {
            chunk::mark(self.marks.get(), last);
            Some(NonNull::new_unchecked(self.at(start)))
        }
    }

    /// Allocates a block at a multiple of `alignment` from the remaining room of the chunk. Returns
    /// `None` if the room is too small.
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

    /// Returns a pointer to `address`, which lies in the heap's chunk.
    #[inline(always)]
    fn at(&self, address: usize) -> *mut u8 {
        self.marks.get().cast::<u8>().with_addr(address)
    }

    /// Runs the fast path of `free`: counts the free and returns true if the block lies in a chunk
    /// of this heap. Otherwise returns false, without any change.
    ///
    /// # Safety
    ///
    /// The heap is the one that [`current`] returns in the calling thread, and `block` is a live
    /// block that the caller no longer uses.
    #[inline(always)]
    pub unsafe fn free_own(&self, block: *mut u8) -> bool {
        // SAFETY: the block is live, by this function's contract, and every block lies behind a
        // header that begins with the owner. In a chunk of the fallback, this word is null.
        let chunk = unsafe { &*chunk::of(block) };
        // Relaxed: no other thread sets or removes this heap as an owner while the heap belongs to
        // this thread.
        let own = core::ptr::eq(chunk.owner.load(Relaxed).cast::<Self>(), self);
        if own {
            chunk.count_own_free();
        }
        own
    }

    /// Makes `chunk` the heap's current chunk.
    ///
    /// # Safety
    ///
    /// The heap belongs to the calling thread, or is the locked heap of ended threads. The chunk
    /// has been restarted for it.
    pub unsafe fn install(&self, chunk: NonNull<Chunk>) {
        let start = chunk.addr().get();
        self.chunk.set(chunk.as_ptr());
        self.marks.set(chunk::marks_base(chunk));
        self.count.set(0);
        self.cursor.set(start + chunk::FIRST);
        self.limit.set(start + chunk::SIZE);
    }

    /// Retires and removes the heap's current chunk. Returns the chunk, if any.
    ///
    /// # Safety
    ///
    /// The heap belongs to the calling thread, or is the locked heap of ended threads.
    pub unsafe fn uninstall(&self) -> Option<NonNull<Chunk>> {
        let chunk = NonNull::new(self.chunk.replace(null_mut()))?;
        // SAFETY: the current chunk of a heap stays mapped.
        let header = unsafe { chunk.as_ref() };
        header.retire(self.count.get(), self.cursor.get() - chunk.addr().get());
        self.cursor.set(0);
        self.limit.set(0);
        Some(chunk)
    }
}
