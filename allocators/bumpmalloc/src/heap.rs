//! The heap of a thread, and the fast path.

use core::cell::Cell;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use heapdrome_malloc_abi::{Presence, thread_slot};
use heapdrome_pages::Lock;

use crate::chunk::{self, Chunk, GRANULE, List};

/// State in which one thread allocates.
#[repr(C, align(64))]
pub struct Heap {
    /// Address of the next block.
    pub cursor: Cell<usize>,
    /// End of the chunk.
    pub limit: Cell<usize>,
    /// The `marks_base` of the chunk.
    pub marks: Cell<*mut AtomicU64>,
    /// Number of blocks allocated in the chunk.
    pub count: Cell<usize>,
    /// Current chunk, or null.
    pub chunk: Cell<*mut Chunk>,
    /// Full chunks that may have live blocks. Only the heap's thread adds chunks; any thread that
    /// finds no other memory takes dead ones.
    pub retired: Lock<List>,
    /// Whether the thread is on a slow path.
    pub presence: Presence,
    /// Next of all heaps, also of ended threads. Written once, under the registry's lock.
    pub next: Cell<*mut Heap>,
    /// Next heap without a thread. It belongs to the registry.
    pub next_free: Cell<*mut Heap>,
}

// SAFETY: only the owning thread uses the cells; the two links are used under the registry's lock.
unsafe impl Sync for Heap {}
// SAFETY: only the owning thread uses the cells; the two links are used under the registry's lock.
unsafe impl Send for Heap {}

impl Heap {
    /// Creates a heap without room.
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

    /// Creates a heap without room for any number of threads.
    const fn of_many() -> Self {
        let mut heap = Self::new();
        heap.presence = Presence::of_many();
        heap
    }
}

/// Heap of threads that have not allocated yet. It has no room, and owns nothing. Only its presence
/// is ever written to.
pub static EMPTY: Heap = Heap::of_many();
/// Heap of threads that have ended. Such a thread never gets another.
pub static ENDED: Heap = Heap::of_many();

thread_slot!(
    /// The calling thread's heap.
    pub(crate) CURRENT: Heap = EMPTY, "heapdrome_bumpmalloc_heap"
);

/// Returns the calling thread's heap, which may have no room.
#[inline(always)]
pub fn current() -> &'static Heap {
    // SAFETY: the pointer is never null, and heaps are never freed.
    unsafe { &*CURRENT::get() }
}

impl Heap {
    /// Runs the fast path: returns a block in the remaining room. Size 0 is left to the slow path.
    #[inline(always)]
    pub fn bump(&self, size: usize) -> Option<NonNull<u8>> {
        let start = self.cursor.get();
        // Address of the last byte of the block's last granule. Size 0 counts as the largest size,
        // which overflows or lies beyond any limit. Room consists of whole granules.
        let last = start.checked_add(size.wrapping_sub(1) | (GRANULE - 1))?;
        if last >= self.limit.get() {
            return None;
        }
        self.cursor.set(last + 1);
        self.count.set(self.count.get() + 1);
        // SAFETY: there was room, so the heap has a chunk that belongs to its thread, and the block
        // lies in it.
        unsafe {
            chunk::mark(self.marks.get(), last);
            Some(NonNull::new_unchecked(self.at(start)))
        }
    }

    /// Returns a block in the remaining room, at a multiple of `alignment`.
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

    /// Returns the pointer to the byte of the chunk at this address.
    #[inline(always)]
    fn at(&self, address: usize) -> *mut u8 {
        self.marks.get().cast::<u8>().with_addr(address)
    }

    /// Runs the fast path of free. Returns true if the block lies in a chunk of this heap and was
    /// counted.
    ///
    /// # Safety
    ///
    /// The heap is the calling thread's, and `block` is a live block that the caller gives up.
    #[inline(always)]
    pub unsafe fn free_own(&self, block: *mut u8) -> bool {
        // SAFETY: every block lies behind a header.
        let chunk = unsafe { &*chunk::of(block) };
        // Relaxed: only a thread itself sets the owner to its own heap, and only it removes that.
        let own = core::ptr::eq(chunk.owner.load(Relaxed).cast::<Self>(), self);
        if own {
            chunk.count_own_free();
        }
        own
    }

    /// Makes a chunk the one in which this heap allocates.
    ///
    /// # Safety
    ///
    /// The heap is the calling thread's, or locked. The chunk has been restarted for it.
    pub unsafe fn install(&self, chunk: NonNull<Chunk>) {
        let start = chunk.addr().get();
        self.chunk.set(chunk.as_ptr());
        self.marks.set(chunk::marks_base(chunk));
        self.count.set(0);
        self.cursor.set(start + chunk::FIRST);
        self.limit.set(start + chunk::SIZE);
    }

    /// Removes and retires the chunk in which this heap allocates. Returns it, if there is one.
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
