//! What all threads share: free regions that still have contents, and below them the buddies.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use heapdrome_pages::{Linux, Lock, Pages, Purge};

use crate::buddy::Buddy;
use crate::cap::Cap;
use crate::class::{CLASSES, SizeClass};
use crate::region::Region;
use crate::registry::{SLOT_TABLE, steal_from_any};
use crate::{config, os};

/// Dirty regions in the pool; more are purged.
const ENTRIES: usize = 1024;

/// Bytes of free regions with contents: those in the pool, and what slots may hold.
pub static DIRTY: Cap = Cap {
    held: AtomicUsize::new(0),
};
static PURGED_BYTES: AtomicUsize = AtomicUsize::new(0);
static STALE_BYTES: AtomicUsize = AtomicUsize::new(0);
static PURGE_FAILURES: AtomicUsize = AtomicUsize::new(0);

/// The pool itself.
#[derive(Debug)]
pub struct Pool {
    /// Dirty regions in the order in which they came.
    dirty: [(Region, SizeClass); ENTRIES],
    count: usize,
    pub buddy: Buddy<Linux>,
}

const NOTHING: (Region, SizeClass) = (Region(0), SizeClass::SMALLEST);

/// The one pool of the process.
pub static POOL: Lock<Pool> = Lock::new(Pool {
    dirty: [NOTHING; ENTRIES],
    count: 0,
    buddy: Buddy::new(Linux),
});

impl Pool {
    fn remove(&mut self, at: usize) -> (Region, SizeClass) {
        let entry = self.dirty[at];
        self.dirty.copy_within(at + 1..self.count, at);
        self.count -= 1;
        DIRTY.unlease(entry.1.bytes());
        entry
    }

    /// Keeps a dirty region if cap and table have room.
    fn keep(&mut self, region: Region, class: SizeClass) -> bool {
        let kept = self.count < ENTRIES && DIRTY.lease(class.bytes(), config::dirty_cap());
        if kept {
            self.dirty[self.count] = (region, class);
            self.count += 1;
        }
        kept
    }

    fn oldest(&mut self) -> Option<(Region, SizeClass)> {
        (self.count > 0).then(|| self.remove(0))
    }

    /// Where the most recent region of the class is.
    fn last_of(&self, class: SizeClass) -> Option<usize> {
        (0..self.count).rev().find(|at| self.dirty[*at].1 == class)
    }

    /// The most recent region of the class, or the front of the smallest larger one, whose rest stays
    /// here.
    fn take_dirty(&mut self, class: SizeClass) -> Option<Region> {
        if let Some(at) = self.last_of(class) {
            return Some(self.remove(at).0);
        }
        let larger = (0..self.count).rev().filter(|at| self.dirty[*at].1 > class);
        let at = larger.min_by_key(|at| self.dirty[*at].1)?;
        let pieces = self.dirty[at].1.index() - class.index();
        if self.count + pieces > ENTRIES {
            return None;
        }
        let (region, whole) = self.remove(at);
        for piece in (class.index()..whole.index()).filter_map(SizeClass::of_index) {
            let rest = Region(region.0 + piece.bytes());
            if !self.keep(rest, piece) {
                // The cap was lowered meanwhile: what may not be kept goes back at once.
                purge(rest.start(), piece.bytes());
                self.buddy.put(rest.start(), piece);
            }
        }
        Some(region)
    }

    /// A clean region, from new address space if need be.
    fn take_clean(&mut self, class: SizeClass) -> Option<usize> {
        self.buddy.huge_pages = config::huge_pages();
        self.buddy.take(class).or_else(|| {
            if self.buddy.grow(class) {
                self.buddy.take(class)
            } else {
                None
            }
        })
    }

    /// Dirty regions of a class.
    pub fn dirty_regions(&self, class: SizeClass) -> usize {
        self.dirty[..self.count]
            .iter()
            .filter(|entry| entry.1 == class)
            .count()
    }
}

/// Drops the contents of a region.
pub fn purge(start: usize, size: usize) {
    let Some(place) = NonNull::new(start as *mut u8) else {
        return;
    };
    // SAFETY: the caller holds the region, which is free or about to be written by its next user.
    if unsafe { Linux.purge(place, size, Purge::Now) } {
        PURGED_BYTES.fetch_add(size, Relaxed);
    } else {
        PURGE_FAILURES.fetch_add(1, Relaxed);
    }
}

/// Exchanges a region that has been free for long for one of the same class that was freed later, if
/// the pool has one.
#[must_use]
pub fn exchange_for_younger(region: Region, class: SizeClass, now: u64) -> Region {
    let mut pool = POOL.lock();
    let Some(at) = pool.last_of(class) else {
        return region;
    };
    let found = pool.dirty[at].0;
    if found.age(now) >= region.age(now) {
        return region;
    }
    // The older one goes to the front, where it is the next to be purged.
    pool.dirty.copy_within(..at, 1);
    pool.dirty[0] = (region, class);
    found
}

/// Drops those contents of a region that would have to be read from swap.
pub fn freshen(start: usize, class: SizeClass) {
    let dropped = os::swapped_stretches(start, class.bytes(), drop_swapped);
    STALE_BYTES.fetch_add(dropped, Relaxed);
}

/// Drops contents, and the page tables behind them.
///
/// Without a page table, 2 MiB become one huge page at the first write, and the system makes room for all
/// of it at once; with one, each of 512 pages waits for room by itself. Linux 6.14 and later free the
/// table together with the contents, but not where something interrupts them: then there is nothing
/// left to drop, and asking again frees the table.
fn drop_swapped(start: usize, size: usize) {
    purge(start, size);
    if let Some(place) = NonNull::new(start as *mut u8).filter(|_| config::huge_pages()) {
        // SAFETY: as in `purge`. Where it fails, the table stays.
        unsafe { Linux.purge(place, size, Purge::Now) };
    }
}

/// Drops contents without the lock, then joins the region to its buddies.
fn purge_and_put(region: Region, class: SizeClass) {
    purge(region.start(), class.bytes());
    put_clean(region.start(), class);
}

/// Joins a region without contents to its buddies.
pub fn put_clean(start: usize, class: SizeClass) {
    POOL.lock().buddy.put(start, class);
}

/// Takes a dirty region in; older ones make room where there is none.
pub fn put(region: Region, class: SizeClass) {
    loop {
        let mut pool = POOL.lock();
        if pool.keep(region, class) {
            return;
        }
        let oldest = pool.oldest();
        drop(pool);
        match oldest {
            Some((old, old_class)) => purge_and_put(old, old_class),
            None => return purge_and_put(region, class),
        }
    }
}

/// A region for a thread whose own cache has none. The flag says that it is dirty.
pub fn take(class: SizeClass) -> Option<(Region, bool)> {
    crate::fork::install();
    let found = POOL.lock().take_dirty(class);
    if let Some(found) = found.or_else(|| steal_from_any(class)) {
        return Some((found, true));
    }
    let clean = POOL.lock().take_clean(class);
    let clean = clean.or_else(|| {
        // Free memory of other classes may join to what is wanted.
        empty_everything();
        POOL.lock().take_clean(class)
    });
    clean.map(|start| (Region::new(start, 0), false))
}

/// Empties caches and the pool, the coldest first, until no more is held than the cap allows.
pub fn trim_to_cap() {
    let over = || DIRTY.held() > config::dirty_cap();
    while over() {
        let Some((region, class)) = POOL.lock().oldest() else {
            break;
        };
        purge_and_put(region, class);
    }
    if over() {
        empty_caches(|_| true);
    }
}

/// Purges regions that have been in the pool or in a cache for `age` milliseconds.
pub fn purge_older(age: u64) {
    let now = os::now();
    empty_caches(|region| region.age(now) >= age);
    loop {
        let mut pool = POOL.lock();
        if pool.count == 0 || pool.dirty[0].0.age(now) < age {
            return;
        }
        let oldest = pool.oldest();
        drop(pool);
        if let Some((region, class)) = oldest {
            purge_and_put(region, class);
        }
    }
}

/// Purges those regions in caches that are `wanted`, and takes back what leases do not use.
fn empty_caches(wanted: impl Fn(Region) -> bool) {
    for slot in &SLOT_TABLE {
        let mut taken = false;
        for class in (0..CLASSES).filter_map(SizeClass::of_index) {
            while let Some(region) = slot.steal_if(class, &wanted) {
                purge_and_put(region, class);
                taken = true;
            }
        }
        if taken || (slot.lease() != 0 && slot.held() == 0) {
            slot.revoke(&DIRTY);
        }
    }
}

/// Returns the memory of every free region, in the pool and in all caches, to the system.
pub fn empty_everything() {
    empty_caches(|_| true);
    loop {
        let oldest = POOL.lock().oldest();
        let Some((region, class)) = oldest else {
            return;
        };
        purge_and_put(region, class);
    }
}

/// What was dropped, in all.
#[derive(Clone, Copy, Debug)]
pub struct Dropped {
    /// Bytes whose memory went back to the system.
    pub purged_bytes: usize,
    /// Bytes of those that were in swap and wanted again.
    pub stale_bytes: usize,
    /// Times the system would not take memory back.
    pub failures: usize,
}

/// What was dropped until now.
pub fn dropped() -> Dropped {
    Dropped {
        purged_bytes: PURGED_BYTES.load(Relaxed),
        stale_bytes: STALE_BYTES.load(Relaxed),
        failures: PURGE_FAILURES.load(Relaxed),
    }
}

/// Makes a region grow into free neighbours.
pub fn extend(start: usize, class: SizeClass, wanted: SizeClass) -> bool {
    POOL.lock().buddy.extend(start, class, wanted)
}
