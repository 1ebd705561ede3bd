//! The back-end: blocks in batches, from bins of slabs, over the pool.
//!
//! Order of locks: purging, list of heaps, depot, bin of a thread's heap, common bin, blocks with their own mapping,
//! pool, metadata. No thread holds the bins of two heaps.

use core::ptr::{NonNull, null_mut};
use heapdrome_pages::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

use heapdrome_pages::{EventCount, Lock, Pages};

use crate::heap::heaps::{AllHeaps, Heaps, Hosts};
use crate::settings::Settings;
use crate::size_class::{CLASSES, SizeClass, UNIT};
use crate::slabs::bin::{Bin, Slabs};
use crate::slabs::processors::Processors;
use crate::slabs::slab::{Misuse, Slab};
use crate::slabs::states::forget_all;
use crate::units::class_map::ClassMap;
use crate::units::directory::Directory;
use crate::units::mapped::MappedTable;
use crate::units::metadata::Metadata;
use crate::units::pool::{Pool, Run};

/// Everything that threads share.
#[derive(Debug)]
pub struct Backend<P> {
    /// The class of every address.
    pub map: ClassMap,
    /// The door to the system.
    pub pages: P,
    /// Where descriptors are.
    pub directory: Directory,
    /// Free units.
    pub pool: Lock<Pool>,
    /// Memory for structures.
    pub metadata: Lock<Metadata>,
    /// Blocks with their own mapping.
    pub mapped: Lock<MappedTable>,
    /// Thread heaps.
    pub heaps: Lock<Heaps>,
    /// Which of them serve processors.
    pub(crate) processors: Processors,
    /// By class: for larger blocks the bins that all threads share; for small ones those of threads
    /// without a heap, and of partial slabs that ended threads left.
    pub bins: [Bin; CLASSES + 1],
    /// How long idle memory is kept, in milliseconds.
    pub decay: AtomicU64,
    /// The most bytes in a magazine.
    pub magazine: AtomicUsize,
    /// The most bytes in the magazines of a thread.
    pub budget: AtomicUsize,
    /// How many thread heaps are hosts ([`ThreadHeap::host`](crate::heap::front::ThreadHeap::host)).
    pub hosts: AtomicUsize,
    /// Units in use, as of the last change.
    pub live: AtomicUsize,
    /// Threads that have a heap.
    pub threads: AtomicUsize,
    /// How often the last of them ended.
    pub(crate) silences: EventCount,
    /// How many units were in use when depots were last emptied to avoid growth.
    pub emptied_at: AtomicUsize,
    /// When the last epoch of purging began, in milliseconds.
    pub epoch: AtomicU64,
    /// Whether a thread is in the midst of purging by epochs.
    pub(crate) ticking: AtomicBool,
    /// Held while slabs are out of their bins to be purged.
    pub(crate) purging: Lock<()>,
    /// How often memory was given back to the system.
    pub purges: AtomicU64,
    /// How many bytes that were.
    pub purged: AtomicU64,
    started: AtomicBool,
}

impl<P: Pages> Backend<P> {
    /// A back-end that holds nothing yet.
    pub const fn new(pages: P) -> Self {
        Self {
            map: ClassMap::new(),
            pages,
            directory: Directory::new(),
            pool: Lock::new(Pool::new()),
            metadata: Lock::new(Metadata::new()),
            mapped: Lock::new(MappedTable::new()),
            heaps: Lock::new(Heaps::new()),
            processors: Processors::new(),
            bins: [const { Lock::new(Slabs::new()) }; CLASSES + 1],
            decay: AtomicU64::new(Settings::DEFAULT.decay),
            magazine: AtomicUsize::new(Settings::DEFAULT.magazine),
            budget: AtomicUsize::new(Settings::DEFAULT.budget),
            hosts: AtomicUsize::new(Settings::DEFAULT.hosts),
            live: AtomicUsize::new(0),
            threads: AtomicUsize::new(0),
            silences: EventCount::new(),
            emptied_at: AtomicUsize::new(0),
            epoch: AtomicU64::new(0),
            ticking: AtomicBool::new(false),
            purging: Lock::new(()),
            purges: AtomicU64::new(0),
            purged: AtomicU64::new(0),
            started: AtomicBool::new(false),
        }
    }

    /// Reserves address space, once; later calls do nothing, and ask for no settings. Everything works
    /// without, but slower.
    pub fn start(&self, settings: impl FnOnce() -> Settings) {
        let mut pool = self.pool.lock();
        // Relaxed: read and written under the pool's lock.
        if self.started.swap(true, Relaxed) {
            return;
        }
        let settings = settings();
        // Relaxed: numbers that stand alone, and any of their values will do.
        self.decay.store(settings.decay, Relaxed);
        self.magazine.store(settings.magazine, Relaxed);
        self.budget.store(settings.budget, Relaxed);
        self.hosts.store(settings.hosts, Relaxed);
        let arena = pool.start(&self.pages, &self.directory, &settings);
        if let Some((base, size)) = arena {
            pool.single = self.map.start(&self.pages, base, size);
        }
    }

    /// The descriptor of the slab or run that `address` lies in; see [`Directory::slab_of`].
    #[inline]
    pub fn slab_of(&self, address: usize) -> *mut Slab {
        self.directory.slab_of(address)
    }

    /// Takes up to `want` blocks of `class` from `bin`; zero only where there is no memory.
    ///
    /// # Safety
    ///
    /// `bin` is one for `class`, and `slots` has room for `want` pointers.
    pub unsafe fn take(
        &self,
        bin: &Bin,
        class: SizeClass,
        slots: *mut *mut u8,
        want: usize,
    ) -> usize {
        // SAFETY: the caller's promise.
        unsafe { self.take_by(bin, class, |slabs| slabs.take(slots, want)) }
    }

    /// The same from one slab.
    ///
    /// # Safety
    ///
    /// As for [`take`](Self::take).
    pub unsafe fn take_from_one(
        &self,
        bin: &Bin,
        class: SizeClass,
        slots: *mut *mut u8,
        want: usize,
    ) -> usize {
        // SAFETY: the caller's promise.
        unsafe { self.take_by(bin, class, |slabs| slabs.take_from_one(slots, want)) }
    }

    /// # Safety
    ///
    /// `bin` is one for `class`.
    #[inline]
    unsafe fn take_by(
        &self,
        bin: &Bin,
        class: SizeClass,
        take: impl Fn(&mut Slabs) -> usize,
    ) -> usize {
        let mut slabs = bin.lock();
        slabs.refills += 1;
        // SAFETY: the caller's promise.
        let taken = unsafe { self.take_present(&mut slabs, bin, class, &take) };
        if taken != 0 {
            return taken;
        }
        drop(slabs);
        self.before_growth(usize::from(class.geometry().units));
        let mut slabs = bin.lock();
        // SAFETY: as above.
        let taken = unsafe { self.take_present(&mut slabs, bin, class, &take) };
        if taken != 0 {
            return taken;
        }
        let Some(run) = self.new_slab(class) else {
            return 0;
        };
        // SAFETY: nothing was left in the bin, and the slab is new.
        unsafe { slabs.add(bin, run.slab) };
        let taken = take(&mut slabs);
        let idle = slabs.idle;
        drop(slabs);
        if idle {
            // The host's last guest left when the bin had been chosen: others are to find the slab.
            // SAFETY: the caller's promise.
            unsafe { self.evacuate(bin, class) };
        }
        self.purge_for(run.fresh, Some(run));
        taken
    }

    /// Takes from what is in the bin, else from a slab that an ended thread left.
    ///
    /// # Safety
    ///
    /// `slabs` is the content of `bin`, one for `class`.
    #[inline]
    unsafe fn take_present(
        &self,
        slabs: &mut Slabs,
        bin: &Bin,
        class: SizeClass,
        take: &impl Fn(&mut Slabs) -> usize,
    ) -> usize {
        let taken = take(slabs);
        // SAFETY: where nothing was taken, nothing was left in the bin.
        if taken == 0 && unsafe { self.inherit(slabs, bin, class) } {
            return take(slabs);
        }
        taken
    }

    /// Moves a partial slab that an ended thread left into `bin`, if there is one at hand.
    ///
    /// # Safety
    ///
    /// `slabs` is the content of `bin`, a bin for `class` without an active slab.
    unsafe fn inherit(&self, slabs: &mut Slabs, bin: &Bin, class: SizeClass) -> bool {
        let common = &self.bins[class.number()];
        if core::ptr::eq(common, bin) || slabs.idle {
            return false;
        }
        let Some(mut source) = common.try_lock() else {
            return false;
        };
        let slab = source.surrender();
        if slab.is_null() {
            return false;
        }
        // SAFETY: the slab belongs to no bin, and both locks are held until it belongs to this one:
        // whoever frees one of its blocks meanwhile waits for one of them.
        unsafe { slabs.add(bin, slab) };
        true
    }

    /// A run of units that is an empty slab.
    fn new_slab(&self, class: SizeClass) -> Option<Run> {
        let shape = class.geometry();
        let external = if Slab::needs_external(shape) {
            self.structure(shape.words() * 8)?.as_ptr().cast()
        } else {
            null_mut()
        };
        let Some(run) = self.allocate_run(usize::from(shape.units), UNIT) else {
            self.free_bitmap(external, class);
            return None;
        };
        // SAFETY: the run is new, so that its descriptors are this function's alone.
        unsafe {
            for unit in 1..usize::from(shape.units) {
                (*run.slab.add(unit)).head_distance = unit as u32;
            }
            Slab::start(run.slab, run.base.as_ptr(), class, external);
        }
        let states = self.directory.state_of(run.base.addr().get());
        if let Some(states) = NonNull::new(states.cast_mut()) {
            // SAFETY: the run's states are committed with it, and nobody has a block there yet.
            unsafe { forget_all(states.cast(), run.base.addr().get(), class) };
        }
        // SAFETY: the pool's runs lie in the arena that the map was started for, if it was.
        unsafe { self.map.set(run.base, usize::from(shape.units), class) };
        Some(run)
    }

    /// A run of units from the pool.
    pub fn allocate_run(&self, units: usize, alignment: usize) -> Option<Run> {
        self.with_pool(|pool| pool.allocate(&self.pages, &self.directory, units, alignment))
    }

    /// Does something with the pool, and notes for those without its lock how much lives.
    pub fn with_pool<R>(&self, action: impl FnOnce(&mut Pool) -> R) -> R {
        let mut pool = self.pool.lock();
        let result = action(&mut pool);
        // Relaxed: a number that stands alone.
        self.live.store(pool.live, Relaxed);
        result
    }

    /// All heaps.
    pub fn all_heaps(&self) -> AllHeaps {
        self.heaps.lock().all()
    }

    /// The heaps that have slabs. Only with processors that no thread was seen to use before do they become more.
    pub fn all_hosts(&self) -> Hosts {
        self.heaps.lock().hosts()
    }

    /// Gives blocks back to their slabs, whosever they are; `home` is the bin of the calling thread.
    /// The order of `blocks` changes.
    ///
    /// # Errors
    ///
    /// A pointer that is no block in use; those after it may not have been taken back.
    ///
    /// # Safety
    ///
    /// The blocks come from slabs of `class`, and nobody uses them any more.
    pub unsafe fn give(
        &self,
        home: *const Bin,
        class: SizeClass,
        blocks: &mut [*mut u8],
    ) -> Result<(), Misuse> {
        let mut rest = blocks.len();
        while rest != 0 {
            // SAFETY: a block's slab has a descriptor, and one that belongs to a bin; bins are never
            // freed. Another thread may move the slab meanwhile: then this round moves nothing.
            let bin = unsafe { Slab::bin_of(self.slab_of(blocks[0].addr())) };
            // SAFETY: as above.
            let (left, empties, idle) =
                unsafe { self.give_to(&*bin, home, class.size(), &mut blocks[..rest])? };
            // SAFETY: the empty slabs left their bin, and are this thread's.
            unsafe { self.retire(empties) };
            if idle {
                // SAFETY: as above; the bin of a slab of the class is one for it.
                unsafe { self.evacuate(&*bin, class) };
            }
            rest = left;
        }
        Ok(())
    }

    /// Gives those blocks back that belong to `bin`, and moves the others to the front. Returns how
    /// many those are, the slabs that are empty now, and whether the bin is nobody's.
    ///
    /// # Safety
    ///
    /// As for [`give`](Self::give).
    unsafe fn give_to(
        &self,
        bin: &Bin,
        home: *const Bin,
        size: usize,
        blocks: &mut [*mut u8],
    ) -> Result<(usize, *mut Slab, bool), Misuse> {
        let mut kept = 0;
        let mut index = 0;
        let mut empties: *mut Slab = null_mut();
        let own = core::ptr::eq(bin, home);
        let mut slabs = bin.lock();
        while index < blocks.len() {
            // SAFETY: the block's slab has a descriptor. Under the bin's lock a slab of this bin
            // stays so, and one of another bin does not become one of this.
            unsafe {
                let slab = self.slab_of(blocks[index].addr());
                if !core::ptr::eq(Slab::bin_of(slab), bin) {
                    blocks[kept] = blocks[index];
                    kept += 1;
                    index += 1;
                    continue;
                }
                if !follows(blocks, index, size) && Slab::give_one(slab, blocks[index]) {
                    index += 1;
                    continue;
                }
                let given = slabs.give(slab, &blocks[index..], own)?;
                index += given.count;
                if !given.empty.is_null() {
                    (*slab).next = empties;
                    empties = slab;
                }
            }
        }
        if !own {
            slabs.remote_frees += (blocks.len() - kept) as u64;
        }
        Ok((kept, empties, slabs.idle))
    }
}

/// True where the next block is a neighbour of this one in memory: then there may be a whole run of
/// them, worth giving back together.
#[inline(always)]
fn follows(blocks: &[*mut u8], index: usize, size: usize) -> bool {
    let Some(next) = blocks.get(index + 1) else {
        return false;
    };
    let here = blocks[index].addr();
    next.addr().abs_diff(here) == size
}
