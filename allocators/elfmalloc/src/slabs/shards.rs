//! All slabs: the bins of shards, the bins that all threads share, and who uses which.
//!
//! Order of locks: purging, list of shards, bin of a shard, common bin, then those of memory. No
//! thread holds the bins of two shards.

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
use crate::slabs::shard::{AllShards, Attachment, Shard, ShardList, ShardRef};
use crate::slabs::slab::{Slab, SlabRef};
use crate::slabs::states::forget_all;
use crate::units::amount::Units;
use crate::units::memory::Memory;
use crate::units::pool::Run;

/// Slabs over memory.
#[derive(Debug)]
pub struct Shards<P> {
    /// What slabs are cut from.
    pub memory: Memory<P>,
    /// By class: for larger blocks the bins that all threads share; for small ones those of threads
    /// without a heap, and of partial slabs that ended threads left.
    common: [Bin; CLASSES + 1],
    list: Lock<ShardList>,
    processors: Processors,
    /// Number of shards that there may be.
    most: AtomicUsize,
    /// Threads that are attached.
    threads: AtomicUsize,
    /// Held while slabs are out of their bins' lists to be purged.
    purging: Lock<()>,
}

impl<P: Pages> Shards<P> {
    /// No slabs.
    pub const fn new(pages: P) -> Self {
        Self {
            memory: Memory::new(pages),
            common: [const { Bin::new() }; CLASSES + 1],
            list: Lock::new(ShardList::new()),
            processors: Processors::new(),
            most: AtomicUsize::new(Settings::DEFAULT.shards),
            threads: AtomicUsize::new(0),
            purging: Lock::new(()),
        }
    }

    /// Follows the settings, before the first thread is attached.
    pub(crate) fn configure(&self, settings: &Settings) {
        // Relaxed: a number that stands alone, and any of its values will do.
        self.most.store(settings.shards, Relaxed);
    }

    /// The slab that an address lies in, if it lies in one or did.
    pub fn slab_of(&self, address: usize) -> Option<SlabRef> {
        self.memory.run_of(address).map(SlabRef::from)
    }

    /// The bin for a class that threads without a heap use, and all threads if its blocks are not
    /// small.
    #[inline]
    pub fn common_bin(&self, class: SizeClass) -> ClassBin<'_> {
        let bin = &self.common[class.number()];
        ClassBin { bin, class }
    }

    /// The bin that a thread takes blocks of `class` from, if it runs where the caller does.
    #[inline]
    pub fn bin(&self, attachment: &Attachment, class: SizeClass) -> ClassBin<'_> {
        if class.number() >= FIRST_SHARED {
            return self.common_bin(class);
        }
        bin_of(self.shard_in_use(attachment), class)
    }

    /// The shard whose bins a thread uses now: where threads are more than shards, that of the
    /// processor that it runs on, if it has threads; else the one that it is attached to.
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

    /// The shard that serves a processor; `None` where no thread is attached to it, or another
    /// thread is at the list.
    fn shard_of_processor(&self, processor: usize) -> Option<ShardRef> {
        let shard = match self.processors.shard_of(processor) {
            Some(shard) => shard,
            None => {
                let list = self.list.try_lock()?;
                // Another thread may have done so in the meantime: served twice, a processor would
                // count for both shards, and might leave one of them without any for good.
                if self.processors.shard_of(processor).is_none() {
                    self.processors.serve(processor, list.all());
                }
                drop(list);
                self.processors.shard_of(processor)?
            }
        };
        // The bins of a shard without threads are left by all: what it has goes where others find
        // it.
        (shard.attached() != 0).then_some(shard)
    }

    /// Says that so many threads may run at once. What was said before stays true: the caller may
    /// be a thread that was bound to a processor.
    pub fn widen(&self, processors: usize) {
        // Relaxed: a number that stands alone. Most find it as large, and leave its line to all who
        // read it.
        if self.most.load(Relaxed) < processors {
            self.most.fetch_max(processors, Relaxed);
        }
    }

    /// Number of shards that there may be, at least one.
    pub fn most(&self) -> usize {
        // Relaxed: as above.
        self.most.load(Relaxed).max(1)
    }

    /// Number of threads that are attached.
    #[inline]
    pub fn threads(&self) -> usize {
        // Relaxed: a number that stands alone.
        self.threads.load(Relaxed)
    }

    #[inline]
    fn threads_outnumber_shards(&self) -> bool {
        self.threads() > self.most()
    }

    /// Shards that threads may be attached to. Only with processors that no thread was seen to use
    /// before do they become more.
    pub fn all(&self) -> AllShards {
        self.list.lock().all()
    }

    /// Attaches a thread that begins.
    pub fn attach(&self, attachment: &Attachment) {
        let mut list = self.list.lock();
        self.attach_by(&mut list, attachment);
        drop(list);
        // Relaxed: a number that stands alone.
        self.threads.fetch_add(1, Relaxed);
    }

    fn attach_by(&self, list: &mut ShardList, attachment: &Attachment) {
        let shards = list.count();
        // Under the lock of the list: a last thread that leaves in the meantime would say the
        // opposite later.
        if list.attach(attachment, self.most()) {
            set_idle(attachment.shard(), false);
        }
        if list.count() != shards {
            self.processors.forget();
        }
    }

    /// Moves a thread to a shard with fewer threads, if there is one: some have ended since it
    /// began.
    pub fn spread(&self, attachment: &Attachment) {
        if attachment.shard().attached() < 2 {
            return;
        }
        if let Some(mut list) = self.list.try_lock()
            && list.has_emptier(attachment)
        {
            // It is not the last there.
            list.detach(attachment);
            self.attach_by(&mut list, attachment);
        }
    }

    /// Detaches a thread that ends; slabs that no other thread uses go where others find them.
    /// Returns whether it was the last of all threads, and whether units went back to the pool.
    pub fn detach(&self, attachment: &Attachment) -> (bool, bool) {
        let mut list = self.list.lock();
        let alone = list.detach(attachment);
        let shard = attachment.shard();
        if alone {
            set_idle(shard, true);
        }
        drop(list);
        let retired = alone && self.move_all_to_common(shard.get());
        // Relaxed: who waits for the last one to end reads the count of that.
        (self.threads.fetch_sub(1, Relaxed) == 1, retired)
    }

    /// In the child of a fork: only the thread of `own` is attached, if that is given. True if
    /// units went back to the pool.
    pub(crate) fn forget_threads(&self, own: Option<&Attachment>) -> bool {
        let mut list = self.list.lock();
        list.forget_attached(own);
        let all = list.all();
        drop(list);
        // Relaxed: a number that stands alone.
        self.threads.store(usize::from(own.is_some()), Relaxed);
        let mut retired = false;
        for shard in all.filter(|shard| shard.attached() == 0) {
            set_idle(shard, true);
            retired |= self.move_all_to_common(shard.get());
        }
        retired
    }

    /// Takes blocks of the bin's class by `take`; `None` where none is there.
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

    /// Takes blocks of the bin's class by `take`, from a new slab if none is there; `None` only
    /// where there is no memory. Returns the units of the slab, too.
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
            return (None, None);
        };
        slabs.add(slab);
        let taken = take(&mut slabs);
        let idle = slabs.idle;
        drop(slabs);
        if idle {
            // The shard's last thread left when the bin had been chosen: others are to find the
            // slab, which is not empty.
            self.move_to_common(bin);
        }
        (taken, Some(run))
    }

    /// Takes from what is in the bin, else from a slab that an ended thread left.
    #[inline(always)]
    fn take_from<T>(
        &self,
        slabs: &mut LockedBin<'_>,
        class: SizeClass,
        mut take: impl FnMut(&mut Slabs) -> Option<T>,
    ) -> Option<T> {
        let taken = take(slabs);
        if taken.is_none() && self.adopt_from_common(slabs, class) {
            return take(slabs);
        }
        taken
    }

    /// Moves a partial slab that an ended thread left into a bin without slabs to take from, if
    /// there is one at hand.
    #[inline(never)]
    fn adopt_from_common(&self, slabs: &mut LockedBin<'_>, class: SizeClass) -> bool {
        let common = &self.common[class.number()];
        if slabs.is(common) || slabs.idle {
            return false;
        }
        let Some(mut source) = common.try_lock() else {
            return false;
        };
        // Both locks are held until the slab belongs to this bin: threads that free one of its
        // blocks in the meantime wait for one of them.
        let Some(slab) = source.detach() else {
            return false;
        };
        slabs.add(slab);
        true
    }

    /// A run of units that is an empty slab.
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
                self.free_bitmap(bitmap.cast(), class);
            }
            return None;
        };
        for (distance, unit) in run.descriptor.each(units).enumerate().skip(1) {
            unit.distance.set(distance as u16);
        }
        run.descriptor.set(run.base, units, class);
        let words = bitmap.map_or(null_mut(), |words| words.as_ptr().cast());
        // SAFETY: the run was just taken from the pool, and the bitmap has the words of the class.
        let slab = unsafe { Detached::start(SlabRef::from(run.descriptor), class, words) };
        forget_all(self.memory.directory(), run.base, class);
        self.memory.map.set(run.base, units, class);
        Some((slab, run))
    }

    /// Calls `visit` for every bin that may have slabs.
    pub fn each_bin(&self, mut visit: impl FnMut(ClassBin<'_>)) {
        self.common
            .iter()
            .enumerate()
            .skip(1)
            .for_each(|(number, bin)| visit(class_bin(bin, number)));
        for shard in self.all() {
            each_bin_of(shard.get(), &mut visit);
        }
    }

    /// Number of slabs, of all bins.
    #[must_use]
    pub fn slabs(&self) -> usize {
        let mut count = 0;
        self.each_bin(|bin| count += bin.lock().slabs as usize);
        count
    }

    /// Asserts that each bin's slabs are where and as they should be, and what [`Memory::check`]
    /// does.
    ///
    /// # Panics
    ///
    /// Where something does not hold.
    pub fn check(&self) {
        self.each_bin(|bin| bin.lock().check());
        self.memory.check();
    }

    /// Frees every lock in the child of a fork, but those of shards.
    ///
    /// # Safety
    ///
    /// As for [`Memory::free_locks`].
    pub unsafe fn free_locks(&self) {
        // SAFETY: the conditions are the same.
        unsafe {
            self.memory.free_locks();
            self.purging.free_in_child();
            self.common.iter().for_each(|bin| bin.0.free_in_child());
            self.list.free_in_child();
        }
    }
}

/// The bin of a shard for a small class.
#[inline]
pub fn bin_of<'a>(shard: ShardRef, class: SizeClass) -> ClassBin<'a> {
    let bin = &shard.get().bins[class.number()];
    ClassBin { bin, class }
}

const fn class_bin(bin: &Bin, number: usize) -> ClassBin<'_> {
    let class = SizeClass::from_number(number as u8);
    ClassBin { bin, class }
}

fn each_bin_of<'a>(shard: &'a Shard, visit: &mut impl FnMut(ClassBin<'a>)) {
    let bins = shard.bins.iter().enumerate().skip(1);
    bins.for_each(|(number, bin)| visit(class_bin(bin, number)));
}

/// Says whether no thread is attached to a shard. The list of shards is locked, or there is only
/// one thread.
fn set_idle(shard: ShardRef, idle: bool) {
    for bin in &shard.get().bins {
        bin.lock().set_idle(idle);
    }
}
