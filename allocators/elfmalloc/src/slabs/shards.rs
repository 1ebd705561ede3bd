//! All slabs: bins of shards, shared bins, and the choice of a bin for a thread.
//!
//! Lock order: purging, list of shards, bin, then the locks of memory. A thread that holds a bin's
//! lock only tries to lock the list or another bin.

mod give;
mod purge;
#[cfg(test)]
mod tests;

use core::ptr::null_mut;
use heapdrome_pages::atomic::{AtomicUsize, Ordering::Relaxed};
use heapdrome_pages::{Lock, Pages};

use crate::settings::Settings;
use crate::size_class::{CLASSES, FIRST_SHARED, SizeClass, UNIT};
use crate::slabs::bin::{Bin, ClassBin, LockedBin};
use crate::slabs::partial::Slabs;
use crate::slabs::partial::held::Detached;
use crate::slabs::processors::Processors;
use crate::slabs::shard::{AllShards, Attachment, ShardList, ShardRef};
use crate::slabs::slab::{Slab, SlabRef};
use crate::slabs::states::forget_all;
use crate::units::amount::Units;
use crate::units::memory::Memory;
use crate::units::pool::Run;

/// All slabs, and the memory for them.
#[derive(Debug)]
#[repr(C)]
pub struct Shards<P> {
    list: Lock<ShardList>,
    /// Maximum number of shards.
    most: AtomicUsize,
    /// Number of attached threads.
    threads: AtomicUsize,
    /// Held during a purge, while the purged slabs are out of their bins' lists.
    purging: Lock<()>,
    /// Memory of the process.
    pub memory: Memory<P>,
    /// Bins by class that belong to no shard. All threads share those of larger classes; those of
    /// small classes serve threads without a heap.
    shared: [Bin; CLASSES + 1],
    processors: Processors,
}

impl<P: Pages> Shards<P> {
    /// Creates a set of shards without slabs.
    pub const fn new(pages: P) -> Self {
        Self {
            memory: Memory::new(pages),
            shared: [const { Bin::new() }; CLASSES + 1],
            list: Lock::new(ShardList::new()),
            processors: Processors::new(),
            most: AtomicUsize::new(0),
            threads: AtomicUsize::new(0),
            purging: Lock::new(()),
        }
    }

    /// Applies the settings, before the first thread is attached.
    pub(crate) fn configure(&self, settings: &Settings) {
        // Relaxed: no other memory depends on this number, and an old value is harmless.
        self.most.store(settings.shards, Relaxed);
    }

    /// Returns the slab that contains an address. For another address in an arena, returns the
    /// descriptor of the unit there, which may never have been a slab; `None` outside the committed
    /// units of all arenas.
    pub fn slab_of(&self, address: usize) -> Option<SlabRef> {
        self.memory.run_of(address).map(SlabRef::from)
    }

    /// Returns the bin that supplies blocks of `class` to threads without a heap. All threads use
    /// it if the class is not small.
    #[inline]
    pub fn bin_without_heap(&self, class: SizeClass) -> ClassBin<'_> {
        let bin = &self.shared[class.number()];
        ClassBin { bin, class }
    }

    /// Returns the bin that supplies blocks of `class` to the thread of `attachment`, assuming that
    /// the thread of `attachment` runs on the caller's processor.
    #[inline]
    pub fn bin(&self, attachment: &Attachment, class: SizeClass) -> ClassBin<'_> {
        if class.number() >= FIRST_SHARED {
            return self.bin_without_heap(class);
        }
        bin_of(self.shard_in_use(attachment), class)
    }

    /// Returns the shard whose bins the thread of `attachment` uses now. If threads outnumber
    /// shards, this is the result of [`shard_of_processor`](Self::shard_of_processor) for the
    /// current processor, if any; otherwise the shard to which the thread is attached.
    #[inline]
    fn shard_in_use(&self, attachment: &Attachment) -> ShardRef {
        let own = attachment.shard();
        if !self.threads_outnumber_shards() {
            return own;
        }
        let processor = self.memory.pages.processor();
        processor
            .and_then(|processor| self.shard_of_processor(processor))
            .unwrap_or(own)
    }

    /// Returns the shard that serves a processor. Assigns one if necessary. Returns `None` if
    /// another thread holds the lock that an assignment needs, or if there are no shards.
    fn shard_of_processor(&self, processor: usize) -> Option<ShardRef> {
        if let Some(shard) = self.processors.shard_of(processor) {
            return Some(shard);
        }
        let list = self.list.try_lock()?;
        // Another thread may have assigned a shard in the meantime. A second assignment would
        // replace that shard, which might then serve no processor.
        if self.processors.shard_of(processor).is_none() {
            self.processors.serve(processor, list.all());
        }
        drop(list);
        self.processors.shard_of(processor)
    }

    /// Raises the maximum number of shards to `processors`. Never lowers it.
    pub fn widen(&self, processors: usize) {
        // Relaxed: no other memory depends on this number. The load usually avoids a write to a
        // cache line that all threads read.
        if self.most.load(Relaxed) < processors {
            self.most.fetch_max(processors, Relaxed);
        }
    }

    /// Returns the maximum number of shards, at least 1.
    pub fn most(&self) -> usize {
        // Relaxed: no other memory depends on this number.
        self.most.load(Relaxed).max(1)
    }

    /// Returns the number of attached threads.
    #[inline]
    pub fn threads(&self) -> usize {
        // Relaxed: no other memory depends on this number.
        self.threads.load(Relaxed)
    }

    #[inline]
    fn threads_outnumber_shards(&self) -> bool {
        self.threads() > self.most()
    }

    /// Returns the shards to which threads may be attached. Shards are only ever added.
    pub fn all(&self) -> AllShards {
        self.list.lock().all()
    }

    /// Attaches a new thread.
    pub fn attach(&self, attachment: &Attachment) {
        let mut list = self.list.lock();
        self.attach_by(&mut list, attachment);
        drop(list);
        // Relaxed: no other memory depends on this number.
        self.threads.fetch_add(1, Relaxed);
    }

    fn attach_by(&self, list: &mut ShardList, attachment: &Attachment) {
        let shards = list.count();
        list.attach(attachment, self.most());
        if list.count() != shards {
            self.processors.forget();
        }
    }

    /// Moves a thread that shares its shard to a shard with fewer threads, if there is one. Does
    /// nothing while another thread holds the lock of the list.
    pub fn spread(&self, attachment: &Attachment) {
        if attachment.shard().attached() < 2 {
            return;
        }
        if let Some(mut list) = self.list.try_lock()
            && list.has_emptier(attachment)
        {
            list.detach(attachment);
            self.attach_by(&mut list, attachment);
        }
    }

    /// Detaches an ending thread. If its shard has no other threads, gives the shard's empty slabs
    /// back to the pool. Returns whether this was the last thread of all, and whether units went
    /// back to the pool.
    pub fn detach(&self, attachment: &Attachment) -> (bool, bool) {
        let alone = self.list.lock().detach(attachment);
        let retired = alone && self.retire_empties(&attachment.shard());
        // Relaxed: a thread that waits for the last thread to end reads an event count, which the
        // caller advances after this change.
        (self.threads.fetch_sub(1, Relaxed) == 1, retired)
    }

    /// In the child of a fork, detaches all threads except that of `own`. Returns whether units
    /// went back to the pool.
    pub(crate) fn forget_threads(&self, own: Option<&Attachment>) -> bool {
        let mut list = self.list.lock();
        list.forget_attached(own);
        let all = list.all();
        drop(list);
        // Relaxed: no other memory depends on this number.
        self.threads.store(usize::from(own.is_some()), Relaxed);
        let mut retired = false;
        for shard in all.filter(|shard| shard.attached() == 0) {
            retired |= self.retire_empties(&shard);
        }
        retired
    }

    /// Calls `take` to take blocks of the bin's class from existing slabs. Returns `None` if no
    /// block is available; the caller must then call [`take_or_add`](Self::take_or_add).
    #[inline(always)]
    pub fn take_present<T>(
        &self,
        bin: ClassBin<'_>,
        take: impl FnMut(&mut Slabs) -> Option<T>,
    ) -> Option<T> {
        let mut slabs = bin.lock();
        slabs.refills += 1;
        self.take_from(&mut slabs, bin.class, take)
    }

    /// Calls `take` to take blocks of the bin's class, if necessary from a new slab. Returns `None`
    /// only if out of memory. Also returns the run of the new slab, if any. Continues a refill for
    /// which [`take_present`](Self::take_present) found no block.
    pub fn take_or_add<T>(
        &self,
        bin: ClassBin<'_>,
        mut take: impl FnMut(&mut Slabs) -> Option<T>,
    ) -> (Option<T>, Option<Run>) {
        let mut slabs = bin.lock();
        let taken = self.take_from(&mut slabs, bin.class, &mut take);
        if taken.is_some() {
            return (taken, None);
        }
        let Some((slab, run)) = self.new_slab(bin.class) else {
            // `take_present` has counted a refill.
            slabs.refills -= 1;
            return (None, None);
        };
        slabs.add(slab);
        (take(&mut slabs), Some(run))
    }

    /// Takes blocks from the bin. If the bin has none, first moves a slab with free blocks to it
    /// from a shard without threads, or from the bin of threads without a heap.
    #[inline(always)]
    fn take_from<T>(
        &self,
        slabs: &mut LockedBin<'_>,
        class: SizeClass,
        mut take: impl FnMut(&mut Slabs) -> Option<T>,
    ) -> Option<T> {
        let taken = take(slabs);
        if taken.is_none() && self.adopt(slabs, class) {
            return take(slabs);
        }
        taken
    }

    /// Moves a slab with free blocks to a bin that has none: from a shard without threads, or from
    /// the bin of threads without a heap. Returns whether it moved one.
    #[inline(never)]
    fn adopt(&self, slabs: &mut LockedBin<'_>, class: SizeClass) -> bool {
        if class.number() >= FIRST_SHARED {
            return false;
        }
        let Some(listed) = self.list.try_lock().map(|list| list.all()) else {
            return false;
        };
        let number = class.number();
        let unused = listed.filter(|shard| shard.attached() == 0);
        let bins = unused.map(|shard| &shard.get().bins[number]);
        bins.chain([&self.shared[number]]).any(|bin| {
            if slabs.is(bin) {
                return false;
            }
            // While the slab changes bins, both locks are held, so a thread that frees one of its
            // blocks waits.
            let slab = bin.try_lock().and_then(|mut source| {
                let slab = source.detach()?;
                slabs.add(slab);
                Some(())
            });
            slab.is_some()
        })
    }

    /// Creates an empty slab from a run of units.
    fn new_slab(&self, class: SizeClass) -> Option<(Detached, Run)> {
        let shape = class.geometry();
        let bitmap = if Slab::needs_external(shape) {
            Some(self.memory.structure(shape.words() * 8)?)
        } else {
            None
        };
        let units = Units::of_slab(class);
        let Some(run) = self.memory.allocate_run(units, UNIT) else {
            if let Some(bitmap) = bitmap {
                // SAFETY: the bitmap was allocated above for this class, and no slab uses it.
                unsafe { self.free_bitmap(bitmap.cast(), class) };
            }
            return None;
        };
        for (distance, unit) in run.descriptor.each(units).enumerate().skip(1) {
            unit.distance.set(distance as u16);
        }
        run.descriptor.set(run.base, units, class);
        let words = bitmap.map_or(null_mut(), |words| words.as_ptr().cast());
        // SAFETY: the run was just taken from the pool and the bitmap was just allocated, so no
        // other code uses them. The bitmap has as many words as the class needs; without one, the
        // descriptor's own words suffice.
        let slab = unsafe { Detached::start(SlabRef::from(run.descriptor), class, words) };
        forget_all(self.memory.directory(), run.base, class);
        self.memory.map.set(run.base, units, class);
        Some((slab, run))
    }

    /// Calls `visit` for every bin that may have slabs.
    pub fn each_bin(&self, mut visit: impl FnMut(ClassBin<'_>)) {
        let mut each = |(number, bin)| {
            let class = SizeClass::from_number(number as u8);
            visit(ClassBin { bin, class });
        };
        (0..).zip(&self.shared).skip(1).for_each(&mut each);
        for shard in self.all() {
            (0..).zip(&shard.get().bins).skip(1).for_each(&mut each);
        }
    }

    /// Returns the number of slabs in all bins.
    #[must_use]
    pub fn slabs(&self) -> usize {
        let mut count = 0;
        self.each_bin(|bin| count += bin.lock().slabs as usize);
        count
    }

    /// Asserts the invariants of each bin and of [`Memory::check`].
    ///
    /// # Panics
    ///
    /// If an invariant does not hold.
    pub fn check(&self) {
        self.each_bin(|bin| bin.lock().check());
        self.memory.check();
    }

    /// Unlocks every lock in the child of a fork, except those of shards.
    ///
    /// # Safety
    ///
    /// The conditions of [`Memory::free_locks`] hold.
    pub unsafe fn free_locks(&self) {
        // SAFETY: this function's contract is that of `Memory::free_locks` and
        // `Lock::free_in_child`.
        unsafe {
            self.memory.free_locks();
            self.purging.free_in_child();
            self.shared.iter().for_each(|bin| bin.0.free_in_child());
            self.list.free_in_child();
        }
    }
}

/// Returns the bin of a shard for a small class.
#[inline]
pub fn bin_of<'a>(shard: ShardRef, class: SizeClass) -> ClassBin<'a> {
    let bin = &shard.get().bins[class.number()];
    ClassBin { bin, class }
}
