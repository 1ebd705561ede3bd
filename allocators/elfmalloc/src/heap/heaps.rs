//! Back-end of the allocator: the heaps of all threads, the shards of slabs, and memory.
//!
//! Lock order: list of heaps, depot, then the locks of shards ([`shards`](crate::slabs::shards));
//! the lock of blocks with their own mapping precedes the pool's.

mod epochs;
mod growth;
#[cfg(test)]
mod tests;

use core::num::NonZero;
use core::ptr::{NonNull, null_mut};
use heapdrome_pages::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

use heapdrome_pages::{EventCount, Lock, Pages};

use crate::heap::heap_list::{AllHeaps, HeapList};
use crate::heap::thread_heap::{HeapRef, ThreadHeap};
use crate::misuse::report;
use crate::settings::Settings;
use crate::size_class::SizeClass;
use crate::slabs::bin::ClassBin;
use crate::slabs::free_blocks::{FreeBlock, FreeBlocks};
use crate::slabs::partial::Slabs;
use crate::slabs::shards::Shards;
use crate::units::amount::Units;
use crate::units::mapped_blocks::MappedBlocks;
use crate::units::memory::Memory;

/// Divisor of the budget. If a thread's magazines may hold at most the budget divided by this
/// number, they keep their blocks while the thread is idle, and after it has ended.
const KEPT_PART: usize = 8;

/// State that all threads share.
///
/// Fields that every process writes come first, so that they lie on as few pages as possible. Large
/// arrays, of which a small process uses little, come last. The same order applies to [`Shards`],
/// [`Memory`] and [`Pool`](crate::units::pool::Pool).
#[derive(Debug)]
#[repr(C)]
pub struct Heaps<P> {
    /// Blocks with their own mapping.
    pub mapped: MappedBlocks,
    list: Lock<HeapList>,
    /// Milliseconds for which idle memory is kept.
    decay: AtomicU64,
    /// Maximum number of bytes in a magazine of small blocks.
    magazine: AtomicUsize,
    /// Maximum number of bytes to which a thread's magazines grow, apart from their first slots.
    budget: AtomicUsize,
    /// Event that occurs when the last thread with a heap ends.
    silences: EventCount,
    /// Number of live units when [`before_growth`](Self::before_growth) last emptied caches.
    emptied_at: AtomicUsize,
    /// Time when the current epoch of purging began, in milliseconds.
    epoch: AtomicU64,
    /// Whether a thread is running the purge at the end of an epoch.
    ticking: AtomicBool,
    /// Slabs of all threads.
    pub shards: Shards<P>,
}

impl<P: Pages> Heaps<P> {
    /// Creates the state without heaps. All its bytes are zero, so that unused pages of a static do
    /// not become resident.
    pub const fn new(pages: P) -> Self {
        Self {
            shards: Shards::new(pages),
            mapped: MappedBlocks::new(),
            list: Lock::new(HeapList::new()),
            decay: AtomicU64::new(0),
            magazine: AtomicUsize::new(0),
            budget: AtomicUsize::new(0),
            silences: EventCount::new(),
            emptied_at: AtomicUsize::new(0),
            epoch: AtomicU64::new(0),
            ticking: AtomicBool::new(false),
        }
    }

    /// Applies the settings and reserves address space. Only the first call has an effect; later
    /// calls do not call `settings`. Without any call, everything works, but more slowly.
    pub fn start(&self, settings: impl FnOnce() -> Settings) {
        self.memory().start(|| {
            let settings = settings();
            // Relaxed: no other memory depends on these numbers, and old values are harmless.
            self.decay.store(settings.decay, Relaxed);
            self.magazine.store(settings.magazine, Relaxed);
            self.budget.store(settings.budget, Relaxed);
            self.shards.configure(&settings);
            settings
        });
    }

    /// Returns the memory of the process, with the structures that describe it.
    #[inline]
    pub const fn memory(&self) -> &Memory<P> {
        &self.shards.memory
    }

    /// Returns the number of milliseconds for which idle memory is kept.
    pub fn decay(&self) -> u64 {
        // Relaxed, here and below: no other memory depends on these numbers.
        self.decay.load(Relaxed)
    }

    /// Sets the number of milliseconds for which idle memory is kept.
    pub fn set_decay(&self, milliseconds: u64) {
        self.decay.store(milliseconds, Relaxed);
    }

    /// Returns the maximum number of bytes in a magazine of small blocks.
    pub fn magazine_limit(&self) -> usize {
        self.magazine.load(Relaxed)
    }

    /// Returns the maximum number of bytes to which a thread's magazines grow, apart from their
    /// first slots.
    pub fn budget(&self) -> usize {
        self.budget.load(Relaxed)
    }

    /// Returns all heaps.
    pub fn all(&self) -> AllHeaps {
        self.list.lock().all()
    }

    /// Returns the bin that supplies blocks of `class` to the thread of `heap`, assuming that the
    /// thread of `heap` runs on the caller's processor.
    #[inline]
    pub fn bin(&self, heap: HeapRef, class: SizeClass) -> ClassBin<'_> {
        self.shards.bin(heap.attachment(), class)
    }

    /// Returns a heap for the calling thread: one without a thread if there is any, otherwise a new
    /// one; `None` if out of memory.
    pub fn attach(&self) -> Option<HeapRef> {
        let mut list = self.list.lock();
        let heap = match list.take() {
            Some(heap) => heap,
            None => self.new_heap(&mut list)?,
        };
        drop(list);
        heap.outflow.forget();
        heap.front.set_map(&self.memory().map);
        self.shards.attach(heap.attachment());
        Some(heap)
    }

    fn new_heap(&self, list: &mut HeapList) -> Option<HeapRef> {
        let memory = self.memory().structure(size_of::<ThreadHeap>())?;
        // SAFETY: the memory is new, zero, large enough, sufficiently aligned, and never freed.
        let heap = unsafe { ThreadHeap::write(memory, self.budget()) };
        list.add(heap.as_any());
        Some(heap)
    }

    /// Returns whether a thread's magazines may hold so few bytes that they keep their blocks while
    /// the thread is idle.
    pub(super) fn has_small_magazines(&self, heap: HeapRef) -> bool {
        let whole = self.budget();
        whole.saturating_sub(heap.budget.get()) <= whole / KEPT_PART
    }

    /// Takes back the heap of an ending thread. Small magazines keep their blocks for the next
    /// thread, but only those of as many threads as can run in parallel. If the thread's shard has
    /// no other thread, other threads can adopt the shard's slabs.
    pub(super) fn leave(&self, heap: HeapRef) {
        let may_keep =
            self.has_small_magazines(heap) && self.list.lock().kept() < self.shards.most();
        if may_keep {
            heap.note_lengths();
        } else {
            self.empty(heap);
        }
        let (was_last, _) = self.shards.detach(heap.attachment());
        self.list.lock().put(heap, may_keep);
        if was_last {
            self.silences.advance();
        }
        self.tick();
    }

    /// Sleeps for at most `milliseconds`, or until no thread has a heap. Returns whether any thread
    /// has a heap. Only one thread may be in this call at a time.
    pub fn rest(&self, milliseconds: u64) -> bool {
        let seen = self.silences.read();
        // If this thread sees the event, it also sees that the number of threads became zero, or a
        // later number.
        let any = || self.shards.threads() != 0;
        if any() {
            self.silences.sleep(seen, milliseconds);
        }
        any()
    }

    /// Takes blocks of the bin's class into the first slots. Returns their number, which is 0 only
    /// if out of memory.
    pub fn take(&self, bin: ClassBin<'_>, slots: &mut [*mut u8]) -> usize {
        let taken = self.take_by(bin, |slabs| NonZero::new(slabs.take(slots)));
        taken.map_or(0, NonZero::get)
    }

    /// Takes blocks of the bin's class from one slab into the first slots. Returns their number,
    /// which is 0 only if out of memory.
    pub fn take_from_one(&self, bin: ClassBin<'_>, slots: &mut [*mut u8]) -> usize {
        let taken = self.take_by(bin, |slabs| NonZero::new(slabs.take_from_one(slots)));
        taken.map_or(0, NonZero::get)
    }

    #[inline]
    fn take_by<T>(
        &self,
        bin: ClassBin<'_>,
        mut take: impl FnMut(&mut Slabs) -> Option<T>,
    ) -> Option<T> {
        let taken = self.shards.take_present(bin, &mut take);
        if taken.is_some() {
            return taken;
        }
        self.before_growth(Units::of_slab(bin.class()));
        let (taken, run) = self.shards.take_or_add(bin, take);
        if let Some(run) = run {
            self.after_growth(run);
        }
        taken
    }

    /// Takes a block for a thread without a heap, or without slots for its class. Returns null if
    /// out of memory.
    pub fn take_one(&self, bin: ClassBin<'_>) -> *mut u8 {
        let block = self.take_by(bin, Slabs::take_one);
        block.map_or(null_mut(), NonNull::as_ptr)
    }

    /// Takes a block for a thread without a heap. Returns null if out of memory.
    pub fn take_without_heap(&self, class: SizeClass) -> *mut u8 {
        self.take_one(self.shards.bin_without_heap(class))
    }

    /// Gives blocks back to their slabs, which may belong to any bins. Aborts the process if a
    /// pointer is not an allocated block. `home` is the bin of the calling thread, if it has one.
    #[inline(never)]
    pub fn give(&self, home: Option<ClassBin<'_>>, blocks: FreeBlocks<'_>) {
        match self.shards.give(home, blocks) {
            Ok(true) => self.tick(),
            Ok(false) => {}
            Err(misuse) => report(misuse),
        }
    }

    /// Gives blocks back to their slabs for a thread with a heap.
    pub fn give_from(&self, heap: HeapRef, blocks: FreeBlocks<'_>) {
        self.give(Some(self.bin(heap, blocks.class())), blocks);
    }

    /// Gives a block back to its slab. `heap` is the calling thread's heap, if it has one.
    pub fn give_one(&self, heap: Option<HeapRef>, block: FreeBlock) {
        let home = heap.map(|heap| self.bin(heap, block.class()));
        self.give(home, block.listed(&mut [null_mut()]));
    }

    /// Unlocks every lock in the child of a fork. A thread of the parent may have held a lock in
    /// order to read.
    ///
    /// # Safety
    ///
    /// The calling thread is the only one and holds no guard of these locks. No thread of the
    /// parent was changing the data that they guard.
    #[cold]
    pub unsafe fn free_locks(&self) {
        // SAFETY: this function's contract is that of every function called here.
        unsafe {
            self.shards.free_locks();
            self.mapped.table.free_in_child();
            self.list.free_in_child();
            for heap in self.all() {
                heap.attachment().free_locks();
                heap.depot().free_in_child();
            }
        }
    }

    /// In the child of a fork, makes the heaps of the parent's other threads available to new
    /// threads. The blocks in their magazines and quarantines are lost: fast paths bypass the fork
    /// gate, so a thread may have been changing a magazine when the process forked.
    ///
    /// # Safety
    ///
    /// The calling thread is the only one, and its heap is `own`, if it has one. No other thread
    /// was on a slow path when the process forked.
    #[cold]
    pub unsafe fn disown(&self, own: Option<HeapRef>) {
        // The child's processor time restarts at zero, so earlier readings are void.
        self.memory().pool.lock().forget_steps();
        let budget = self.budget();
        self.list.lock().disown(own.map(HeapRef::as_any), |heap| {
            // SAFETY: by this function's contract, the calling thread is the only one, and the heap
            // is not its own. The heap's thread, which does not exist in the child, was not on a
            // slow path.
            unsafe { heap.forget_owner(budget) };
        });
        if self
            .shards
            .forget_threads(own.as_ref().map(|own| own.attachment()))
        {
            self.tick();
        }
    }

    /// Asserts the invariants of [`Shards::check`] and of all depots, and that each heap's own
    /// shard is listed if it has slabs. They hold while no thread is in the allocator.
    ///
    /// # Panics
    ///
    /// If an invariant does not hold.
    pub fn check(&self) {
        self.shards.check();
        for heap in self.all() {
            let own = heap.attachment().own();
            let is_used = own.bins.iter().any(|bin| bin.lock().slabs != 0);
            assert!(own.is_listed() || !is_used, "slabs of no shard");
            heap.depot().lock().check();
        }
    }
}
