//! Thread heaps, and the handles through which threads use them.

use core::cell::{Cell, RefCell};
use core::ops::Deref;
use core::ptr::{NonNull, null_mut};
use heapdrome_pages::atomic::{AtomicU16, Ordering::Relaxed};

use heapdrome_malloc_abi::Presence;
use heapdrome_pages::Lock;

use crate::heap::coalescer::Coalescer;
use crate::heap::depot::Depot;
use crate::heap::front::{FEWEST_TICKS, Front, MOST_TICKS_GIVING};
use crate::heap::magazine::Magazine;
use crate::heap::magazine::slots::MagazineRef;
use crate::heap::outflow::Outflow;
use crate::heap::quarantine::Quarantine;
use crate::size_class::{CLASSES, SizeClass};
use crate::slabs::free_blocks::FreeBlocks;
use crate::slabs::shard::Attachment;
use crate::units::metadata::ThreadMetadata;

/// State of one thread. Heaps are never freed: a new thread takes over the heap of an ended thread.
///
/// Only the owning thread uses a heap, except for the parts that [`AnyHeap`] exposes.
#[derive(Debug)]
#[repr(C)]
pub struct ThreadHeap {
    /// Part that the fast path uses. A pointer to it is also a pointer to the heap.
    pub front: Front,
    /// Magazines, by class.
    magazines: [Magazine; CLASSES + 1],
    /// Memory for the slots of magazines.
    pub metadata: RefCell<ThreadMetadata>,
    /// Coalescer of freed blocks; `None` if it was never needed.
    pub coalescer: Cell<Option<NonNull<Coalescer>>>,
    /// Quarantine of freed blocks; null if it was never needed.
    pub quarantine: Cell<*mut Quarantine>,
    /// Bytes by which magazines may still grow.
    pub budget: Cell<usize>,
    /// Time when unused magazines were last emptied, in milliseconds.
    pub looked: Cell<u64>,
    /// Time of the last clock check, in milliseconds, and the number of frees and refilled blocks
    /// from that check to the next.
    pub clock: Cell<(u64, i32)>,
    /// Whether blocks have left the heap since the last clock check.
    pub giving: Cell<bool>,
    /// Counts that show when the thread has given back most of its blocks.
    pub outflow: Outflow,
    /// Number of blocks in each class's magazine, as a slow path last recorded it. Other threads
    /// may read it.
    cached: [AtomicU16; CLASSES + 1],
    /// Depot for blocks that do not fit into magazines. Any thread may lock it.
    depot: Lock<Depot>,
    /// The heap's own shard, and a pointer to the shard to which the thread is attached.
    attachment: Attachment,
    /// Next heap in a list of heaps without a thread. The lists' lock guards it.
    pub(super) next_idle: Cell<Option<AnyHeap>>,
    /// Next heap in the list of all heaps. Written before the heap is listed.
    pub(super) next: Cell<Option<AnyHeap>>,
}

// A heap lies in one block of the allocator's own memory, whose block sizes are powers of two.
const _: () = assert!(size_of::<ThreadHeap>() <= 16384);

impl ThreadHeap {
    /// Creates a heap of the calling thread, without blocks, in `memory`. Its magazines may hold
    /// `budget` bytes of blocks.
    ///
    /// # Safety
    ///
    /// `memory` is zero, large enough and aligned for a heap, used by no other code, and never
    /// freed.
    pub(super) unsafe fn write(memory: NonNull<u8>, budget: usize) -> HeapRef {
        let heap: NonNull<Self> = memory.cast();
        // SAFETY: by this function's contract, the memory is large enough, aligned, and used by no
        // other code. Every field is written.
        unsafe {
            let place = heap.as_ptr();
            Front::write(&raw mut (*place).front);
            for class in 0..=CLASSES {
                (&raw mut (*place).magazines[class]).write(Magazine::new());
                (&raw mut (*place).cached[class]).write(AtomicU16::new(0));
            }
            (&raw mut (*place).metadata).write(RefCell::new(ThreadMetadata::new()));
            Attachment::write(&raw mut (*place).attachment);
            (&raw mut (*place).depot).write(Lock::new(Depot::new()));
            (&raw mut (*place).coalescer).write(Cell::new(None));
            (&raw mut (*place).quarantine).write(Cell::new(null_mut()));
            (&raw mut (*place).budget).write(Cell::new(budget));
            (&raw mut (*place).outflow).write(Outflow::new());
            (&raw mut (*place).looked).write(Cell::new(0));
            (&raw mut (*place).clock).write(Cell::new((0, FEWEST_TICKS)));
            (&raw mut (*place).giving).write(Cell::new(false));
            (&raw mut (*place).next_idle).write(Cell::new(None));
            (&raw mut (*place).next).write(Cell::new(None));
        }
        HeapRef(heap)
    }

    /// Returns the magazine of a class.
    #[inline]
    pub fn magazine(&self, class: SizeClass) -> MagazineRef<'_> {
        MagazineRef::new(&self.front, &self.magazines[class.number()], class)
    }

    /// Returns the magazines of all classes.
    pub fn magazines(&self) -> impl Iterator<Item = (SizeClass, MagazineRef<'_>)> {
        let classes = (1..=CLASSES).map(|number| SizeClass::from_number(number as u8));
        classes.map(|class| (class, self.magazine(class)))
    }

    /// Returns the heap's own shard and the shard to which the thread is attached.
    #[inline]
    pub const fn attachment(&self) -> &Attachment {
        &self.attachment
    }

    /// Returns the heap's depot.
    #[inline]
    pub const fn depot(&self) -> &Lock<Depot> {
        &self.depot
    }

    /// Records the number of blocks in a magazine, for statistics.
    #[inline]
    pub fn note_length(&self, class: SizeClass) {
        let length = self.magazine(class).length();
        // Relaxed: no other memory depends on this number.
        self.cached[class.number()].store(length as u16, Relaxed);
    }

    /// Records the number of blocks in each magazine, for statistics.
    pub fn note_lengths(&self) {
        for (class, _) in self.magazines() {
            self.note_length(class);
        }
    }

    /// Passes the `count` oldest blocks of a magazine to `give`. The magazine has at least `count`
    /// blocks.
    pub(super) fn remove_oldest(
        &self,
        class: SizeClass,
        count: usize,
        give: impl FnOnce(FreeBlocks<'_>),
    ) {
        if count != 0 {
            self.gave(count);
            self.magazine(class).remove_oldest(count, give);
            self.note_length(class);
        }
    }

    /// Counts blocks that leave the heap.
    #[inline]
    pub fn gave(&self, blocks: usize) {
        self.outflow.give(blocks);
        if !self.giving.get() {
            self.begin_giving();
        }
    }

    /// Records that blocks leave the heap, and makes the next clock check due earlier.
    #[cold]
    fn begin_giving(&self) {
        self.giving.set(true);
        let (when, ticks) = self.clock.get();
        self.clock.set((when, ticks.min(MOST_TICKS_GIVING)));
        self.front.limit_ticks(MOST_TICKS_GIVING);
    }

    /// Returns the coalescer, if it exists.
    pub fn coalescer(&self) -> Option<&Coalescer> {
        // SAFETY: the coalescer was created for this heap, is never freed, and only the heap's
        // thread uses it.
        self.coalescer.get().map(|place| unsafe { place.as_ref() })
    }
}

/// Handle of any thread's heap. Exposes only the parts that all threads may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct AnyHeap(NonNull<ThreadHeap>);

impl AnyHeap {
    /// Returns the heap.
    #[inline]
    pub(super) fn heap<'a>(self) -> &'a ThreadHeap {
        // SAFETY: heaps are never freed, and all of their fields are cells, atomics and locks.
        // Callers use no cells of another thread's heap, except `next_idle` under the lock of the
        // lists, and `next`, which does not change after the heap is listed. In the child of a
        // fork, no other thread exists.
        unsafe { self.0.as_ref() }
    }

    /// Returns the handle of the heap for the thread that owns it.
    ///
    /// # Safety
    ///
    /// Only the calling thread uses the heap: it is the calling thread's heap, or an ended
    /// thread's.
    #[inline]
    #[must_use]
    pub const unsafe fn of_this_thread(self) -> HeapRef {
        HeapRef(self.0)
    }

    /// In the child of a fork, prepares the heap of a thread of the parent for a new thread.
    /// `budget` is the new budget of its magazines. The blocks in its magazines and quarantine are
    /// lost, because the thread may have been on a fast path.
    ///
    /// # Safety
    ///
    /// The calling thread is the only one, and the heap is not its own. The heap's thread was not
    /// on a slow path when the process forked.
    #[cold]
    pub(super) unsafe fn forget_owner(self, budget: usize) {
        // SAFETY: no other thread exists, by this function's contract, and this thread has no
        // reference to the heap's front.
        unsafe { Front::write(&raw mut (*self.0.as_ptr()).front) };
        let heap = self.heap();
        heap.magazines.iter().for_each(Magazine::forget);
        heap.metadata.replace(ThreadMetadata::new());
        // Relaxed: there is no other thread.
        heap.cached.iter().for_each(|count| count.store(0, Relaxed));
        if let Some(coalescer) = heap.coalescer() {
            coalescer.forget();
        }
        if let Some(mut quarantine) = NonNull::new(heap.quarantine.get()) {
            // SAFETY: the quarantine belongs to the heap, whose thread does not exist in the child.
            unsafe { quarantine.as_mut().empty(|_| ()) };
        }
        heap.budget.set(budget);
    }

    /// Returns the depot.
    #[must_use]
    pub fn depot<'a>(self) -> &'a Lock<Depot> {
        &self.heap().depot
    }

    /// Returns the heap's own shard and the shard to which its thread is attached.
    #[must_use]
    pub fn attachment<'a>(self) -> &'a Attachment {
        &self.heap().attachment
    }

    /// Returns the number of blocks in each class's magazine, as a slow path last recorded it.
    #[must_use]
    pub fn cached<'a>(self) -> &'a [AtomicU16; CLASSES + 1] {
        &self.heap().cached
    }

    /// Returns the presence, which shows whether the heap's thread is on a slow path.
    #[must_use]
    pub fn presence<'a>(self) -> &'a Presence {
        self.heap().front.presence()
    }
}

/// Handle of the calling thread's heap. An ending thread detaches the heap, and no longer uses the
/// handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct HeapRef(NonNull<ThreadHeap>);

impl HeapRef {
    /// Returns the handle of the heap for other threads.
    #[inline]
    #[must_use]
    pub const fn as_any(self) -> AnyHeap {
        AnyHeap(self.0)
    }

    /// Returns a pointer to the heap.
    #[inline]
    #[must_use]
    pub const fn as_ptr(self) -> NonNull<ThreadHeap> {
        self.0
    }

    /// Creates the handle of a heap from a pointer.
    ///
    /// # Safety
    ///
    /// The pointer came from [`as_ptr`](Self::as_ptr), and only the calling thread uses the heap:
    /// it is the calling thread's heap, or an ended thread's.
    #[inline]
    #[must_use]
    pub const unsafe fn from_ptr(heap: NonNull<ThreadHeap>) -> Self {
        Self(heap)
    }
}

impl Deref for HeapRef {
    type Target = ThreadHeap;

    #[inline]
    fn deref(&self) -> &ThreadHeap {
        // SAFETY: heaps are never freed, this heap belongs to the calling thread, and all of its
        // fields are cells, atomics and locks.
        unsafe { self.0.as_ref() }
    }
}
