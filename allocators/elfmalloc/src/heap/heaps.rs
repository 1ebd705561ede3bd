//! The heaps of all threads, over shards of slabs, over memory.
//!
//! Order of locks: list of heaps, depot, then those of shards ([`shards`](crate::slabs::shards));
//! blocks with their own mapping come before the pool.

mod epochs;
#[cfg(test)]
mod tests;

use core::num::NonZero;
use core::ptr::{NonNull, null_mut};
use heapdrome_pages::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

use heapdrome_pages::{EventCount, Lock, Pages};

use crate::heap::thread_heap::{AllHeaps, AnyHeap, HeapList, HeapRef, ThreadHeap};
use crate::misuse::report;
use crate::settings::Settings;
use crate::size_class::SizeClass;
use crate::slabs::bin::ClassBin;
use crate::slabs::free_blocks::{FreeBlock, FreeBlocks};
use crate::slabs::partial::Slabs;
use crate::slabs::shards::Shards;
use crate::units::amount::Units;
use crate::units::large::MappedBlocks;
use crate::units::memory::Memory;

/// Everything that threads share.
#[derive(Debug)]
pub struct Heaps<P> {
    /// Slabs.
    pub shards: Shards<P>,
    /// Blocks with their own mapping.
    pub mapped: MappedBlocks,
    list: Lock<HeapList>,
    /// Milliseconds for which idle memory is kept.
    decay: AtomicU64,
    /// Most bytes in a magazine.
    magazine: AtomicUsize,
    /// Most bytes in the magazines of a thread.
    budget: AtomicUsize,
    /// Number of times that the last thread with a heap ended.
    silences: EventCount,
    /// Units that were in use when depots were last emptied to avoid growth.
    emptied_at: AtomicUsize,
    /// When the last epoch of purging began, in milliseconds.
    epoch: AtomicU64,
    /// Whether a thread is in the midst of purging by epochs.
    ticking: AtomicBool,
}

impl<P: Pages> Heaps<P> {
    /// No heaps.
    pub const fn new(pages: P) -> Self {
        Self {
            shards: Shards::new(pages),
            mapped: MappedBlocks::new(),
            list: Lock::new(HeapList::new()),
            decay: AtomicU64::new(Settings::DEFAULT.decay),
            magazine: AtomicUsize::new(Settings::DEFAULT.magazine),
            budget: AtomicUsize::new(Settings::DEFAULT.budget),
            silences: EventCount::new(),
            emptied_at: AtomicUsize::new(0),
            epoch: AtomicU64::new(0),
            ticking: AtomicBool::new(false),
        }
    }

    /// Reserves address space, once; later calls do nothing, and ask for no settings. Everything
    /// works without, but slower.
    pub fn start(&self, settings: impl FnOnce() -> Settings) {
        self.memory().start(|| {
            let settings = settings();
            // Relaxed: numbers that stand alone, and any of their values will do.
            self.decay.store(settings.decay, Relaxed);
            self.magazine.store(settings.magazine, Relaxed);
            self.budget.store(settings.budget, Relaxed);
            self.shards.configure(&settings);
            settings
        });
    }

    /// What slabs are cut from.
    #[inline]
    pub const fn memory(&self) -> &Memory<P> {
        &self.shards.memory
    }

    /// Milliseconds for which idle memory is kept.
    pub fn decay(&self) -> u64 {
        // Relaxed, here and below: a number that stands alone.
        self.decay.load(Relaxed)
    }

    /// Changes that.
    pub fn set_decay(&self, milliseconds: u64) {
        self.decay.store(milliseconds, Relaxed);
    }

    /// Most bytes in a magazine.
    pub fn magazine_limit(&self) -> usize {
        self.magazine.load(Relaxed)
    }

    /// Most bytes in the magazines of a thread.
    pub fn budget(&self) -> usize {
        self.budget.load(Relaxed)
    }

    /// All heaps.
    pub fn all(&self) -> AllHeaps {
        self.list.lock().all()
    }

    /// The bin that a thread takes blocks of `class` from, if it runs where the caller does.
    #[inline]
    pub fn bin(&self, heap: HeapRef, class: SizeClass) -> ClassBin<'_> {
        self.shards.bin(heap.attachment(), class)
    }

    /// Makes a heap for the calling thread; `None` where there is no memory.
    pub fn attach(&self) -> Option<HeapRef> {
        let mut list = self.list.lock();
        let heap = match list.take_idle() {
            Some(heap) => heap,
            None => self.new_heap(&mut list)?,
        };
        drop(list);
        // SAFETY: the heap was in no other thread's hands, and is this one's now.
        let heap = unsafe { heap.of_this_thread() };
        heap.outflow.forget();
        heap.front.set_map(&self.memory().map);
        self.shards.attach(heap.attachment());
        Some(heap)
    }

    fn new_heap(&self, list: &mut HeapList) -> Option<AnyHeap> {
        let memory = self.memory().structure(size_of::<ThreadHeap>())?;
        // SAFETY: the memory is new, zero, large enough, and aligned to its size or a page.
        let heap = unsafe { ThreadHeap::write(memory, self.budget()) };
        list.add(heap);
        Some(heap)
    }

    /// Takes back a heap without blocks from a thread that ends; its slabs, if no other thread uses
    /// them, go where others find them.
    pub(super) fn leave(&self, heap: HeapRef) {
        heap.budget.set(self.budget());
        let (was_last, _) = self.shards.detach(heap.attachment());
        self.list.lock().put_idle(heap.as_any());
        if was_last {
            self.silences.advance();
        }
        self.tick();
    }

    /// Sleeps for some milliseconds, or until no thread has a heap; false where none has. One
    /// thread at a time may do so.
    pub fn rest(&self, milliseconds: u64) -> bool {
        let seen = self.silences.read();
        // Whoever reads the count of a silence sees the number that made it one, or a later one.
        let any = || self.shards.threads() != 0;
        if any() {
            self.silences.sleep(seen, milliseconds);
        }
        any()
    }

    /// Takes blocks of the bin's class into the first slots; none only where there is no memory.
    pub fn take(&self, bin: ClassBin<'_>, slots: &mut [*mut u8]) -> usize {
        let taken = self.take_by(bin, |slabs| NonZero::new(slabs.take(slots)));
        taken.map_or(0, NonZero::get)
    }

    /// Takes blocks of the bin's class from one slab into the first slots; none only where there is
    /// no memory.
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
            self.memory().purge_for(run.fresh, Some(run));
        }
        taken
    }

    /// Takes a block for a thread without a heap, or without slots; null where there is no memory.
    pub fn take_one(&self, bin: ClassBin<'_>) -> *mut u8 {
        let block = self.take_by(bin, Slabs::take_one);
        block.map_or(null_mut(), NonNull::as_ptr)
    }

    /// Takes a block for a thread without a heap; null where there is no memory.
    pub fn take_without_heap(&self, class: SizeClass) -> *mut u8 {
        self.take_one(self.shards.common_bin(class))
    }

    /// Gives blocks back to their slabs, whosever they are; ends the process if one is no block in
    /// use. `home` is the bin of the calling thread.
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

    /// Gives a block back to its slab. `heap` is the calling thread's, if it has one.
    pub fn give_one(&self, heap: Option<HeapRef>, block: FreeBlock) {
        let home = heap.map(|heap| self.bin(heap, block.class()));
        self.give(home, block.listed(&mut [null_mut()]));
    }

    /// Frees every lock in the child of a fork. A thread of the parent may have held it to read
    /// what it guards.
    ///
    /// # Safety
    ///
    /// There is only the calling thread, it has no guard of a lock, and no thread of the parent was
    /// changing what one guards.
    pub unsafe fn free_locks(&self) {
        // SAFETY: the conditions are those of `Memory::free_locks`.
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

    /// In the child of a fork: makes the heaps of threads that do not exist here available to
    /// others. The blocks in their magazines and quarantines are lost: fast paths pass by the gate,
    /// and a thread may have been on one when the process forked.
    ///
    /// # Safety
    ///
    /// There is only the calling thread, whose heap is `own`, if it has one.
    pub unsafe fn disown(&self, own: Option<HeapRef>) {
        // The child's processor time begins anew.
        self.memory().pool.lock().forget_steps();
        let budget = self.budget();
        self.list.lock().disown(own.map(HeapRef::as_any), |heap| {
            // SAFETY: the heap's thread does not exist, and there is no other than this one.
            unsafe { heap.forget_owner(budget) };
        });
        if self
            .shards
            .forget_threads(own.as_ref().map(|own| own.attachment()))
        {
            self.tick();
        }
    }

    /// Asserts what must hold whenever no thread is in the allocator: what [`Shards::check`] says,
    /// and that depots are as they should be.
    ///
    /// # Panics
    ///
    /// Where something does not hold.
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
