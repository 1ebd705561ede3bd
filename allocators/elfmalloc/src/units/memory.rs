//! Memory of the process: the pool of units, the class map, and memory for the allocator's
//! structures.
//!
//! Lock order: pool, then structures.

use core::ptr::NonNull;
use heapdrome_pages::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

use heapdrome_pages::{Lock, Pages};

use crate::settings::Settings;
use crate::size_class::{SizeClass, UNIT};
use crate::units::amount::Units;
use crate::units::class_map::ClassMap;
use crate::units::descriptor::DescriptorRef;
use crate::units::directory::Directory;
use crate::units::metadata::Metadata;
use crate::units::pool::{Pool, Run};

/// Memory of the process, with the structures that describe it.
#[derive(Debug)]
#[repr(C)]
pub struct Memory<P> {
    /// Class map: the class of the blocks at every address.
    pub map: ClassMap,
    /// Interface to the system.
    pub pages: P,
    /// Memory for the allocator's own structures.
    pub structures: Lock<Metadata>,
    /// Number of live units, as of the last call of [`with_pool`](Self::with_pool).
    live: AtomicUsize,
    purges: AtomicU64,
    purged: AtomicU64,
    started: AtomicBool,
    directory: Directory,
    /// Pool of units.
    pub pool: Lock<Pool>,
}

impl<P: Pages> Memory<P> {
    /// Creates an empty memory.
    pub const fn new(pages: P) -> Self {
        Self {
            map: ClassMap::new(),
            pages,
            directory: Directory::new(),
            pool: Lock::new(Pool::new()),
            structures: Lock::new(Metadata::new()),
            live: AtomicUsize::new(0),
            purges: AtomicU64::new(0),
            purged: AtomicU64::new(0),
            started: AtomicBool::new(false),
        }
    }

    /// Applies the settings and finds room for the arena. Only the first call has an effect; later
    /// calls do not call `settings`. Without any call, everything works, but more slowly.
    pub fn start(&self, settings: impl FnOnce() -> Settings) {
        let mut pool = self.pool.lock();
        // Relaxed: read and written under the pool's lock.
        if self.started.swap(true, Relaxed) {
            return;
        }
        let arena = pool.start(&self.pages, &self.directory, &settings());
        if let Some((base, size)) = arena {
            pool.single = self.map.start(&self.pages, base, size);
        }
    }

    /// Returns the descriptor for `address`, as [`Directory::run_of`] defines it.
    #[inline]
    pub fn run_of(&self, address: usize) -> Option<DescriptorRef> {
        self.directory.run_of(address)
    }

    /// Returns the directory, which finds arenas without a lock.
    #[inline]
    pub const fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Takes a run of units from the pool.
    pub fn allocate_run(&self, units: Units, alignment: usize) -> Option<Run> {
        self.with_pool(|pool| pool.allocate(&self.pages, &self.directory, units, alignment))
    }

    /// Runs `action` on the pool, then publishes the number of live units for threads without the
    /// pool's lock.
    pub fn with_pool<R>(&self, action: impl FnOnce(&mut Pool) -> R) -> R {
        let mut pool = self.pool.lock();
        let result = action(&mut pool);
        // Relaxed: no other memory depends on this number.
        self.live.store(pool.live.count(), Relaxed);
        result
    }

    /// Returns the number of live units, as of the last call of [`with_pool`](Self::with_pool).
    #[inline]
    pub fn live_units(&self) -> Units {
        // Relaxed: no other memory depends on this number.
        Units::new(self.live.load(Relaxed))
    }

    /// Returns the bytes of live units, as of the last call of [`with_pool`](Self::with_pool).
    #[inline]
    pub fn live_bytes(&self) -> usize {
        self.live_units().bytes()
    }

    /// Returns the number of purges, and of purged bytes.
    pub fn purges(&self) -> (u64, u64) {
        // Relaxed: no other memory depends on these numbers.
        (self.purges.load(Relaxed), self.purged.load(Relaxed))
    }

    pub(super) fn count_purge(&self, bytes: usize) {
        // Relaxed: no other memory depends on these numbers.
        self.purges.fetch_add(1, Relaxed);
        self.purged.fetch_add(bytes as u64, Relaxed);
    }

    /// Returns zeroed memory for a structure that allocation requires. If the system refuses more
    /// memory, permanently converts free units into such memory.
    pub fn structure(&self, bytes: usize) -> Option<NonNull<u8>> {
        let found = self.chunked_structure(bytes);
        if found.is_some() {
            return found;
        }
        // The arena can never shrink below a converted unit, and the first free unit may be the
        // last unit of the arena. So first release the end of the arena, which may make room for a
        // chunk elsewhere.
        self.purge_any_units(Units::holding(bytes));
        if self.release_addresses(Units::NONE) {
            let found = self.chunked_structure(bytes);
            if found.is_some() {
                return found;
            }
        }
        let run = self.allocate_run(Units::holding(bytes), UNIT)?;
        let lent = run.units.bytes();
        // SAFETY: the run was just taken from the pool, so it belongs to this function. It begins
        // at a unit, and reads as zero: clean runs do, and all others are zeroed here. Its
        // descriptor and its byte in the class map stay those of a free unit.
        unsafe {
            if !run.clean {
                run.base.as_ptr().write_bytes(0, lent);
            }
            let mut structures = self.structures.lock();
            // If two threads do this at the same time, the rest of the first thread's unit remains
            // unused.
            structures.add(run.base, lent);
            structures.allocate(&self.pages, bytes)
        }
    }

    /// Returns zeroed memory for a structure from the structures' own chunks.
    fn chunked_structure(&self, bytes: usize) -> Option<NonNull<u8>> {
        self.structures.lock().allocate(&self.pages, bytes)
    }

    /// Asserts that the pool's counts match its maps, and that the class map matches the descriptor
    /// of each unit. No thread may be creating or freeing a run.
    ///
    /// # Panics
    ///
    /// If an invariant does not hold.
    pub fn check(&self) {
        let pool = self.pool.lock();
        pool.check();
        for (address, is_free) in pool.units() {
            let class = self
                .run_of(address)
                .map_or(SizeClass::NONE, |run| run.class());
            assert!(
                !is_free || class == SizeClass::NONE,
                "a free unit has a class"
            );
            let mapped = self.map.window().find(address);
            assert!(mapped.is_none_or(|mapped| mapped == class), "the class map");
        }
    }

    /// Releases the addresses of clean, free units at the ends of arenas, except for `kept` units
    /// of each arena. Returns whether addresses were released.
    #[cold]
    pub fn release_addresses(&self, kept: Units) -> bool {
        let mut pool = self.pool.lock();
        pool.shrink(&self.pages, &self.directory, kept)
    }

    /// Unlocks every lock in the child of a fork.
    ///
    /// # Safety
    ///
    /// The calling thread is the only one and holds no guard of these locks. No thread of the
    /// parent was changing the data that they guard.
    #[cold]
    pub unsafe fn free_locks(&self) {
        // SAFETY: this function's contract is that of `free_in_child`.
        unsafe {
            self.structures.free_in_child();
            self.pool.free_in_child();
        }
    }
}
