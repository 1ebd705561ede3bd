//! What all threads share: free regions that still have contents, and below them the buddies.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use heapdrome_pages::{Linux, Lock, Pages, Purge};

use crate::buddy::Buddy;
use crate::class::{CLASSES, SizeClass};
use crate::region::Region;
use crate::{config, os, slot};

/// Dirty regions in the pool; more are purged.
const ENTRIES: usize = 1024;

/// Bytes of free regions with contents: those in the pool, and what slots may hold.
static DIRTY: AtomicUsize = AtomicUsize::new(0);
static PURGED_BYTES: AtomicUsize = AtomicUsize::new(0);
static DROPPED_STALE: AtomicUsize = AtomicUsize::new(0);
static PURGE_FAILURES: AtomicUsize = AtomicUsize::new(0);

/// The pool itself.
#[derive(Debug)]
pub struct Pool {
    /// Dirty regions in the order in which they were freed.
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

/// Adds to the count of dirty bytes, unless that would exceed the cap.
pub fn lease_dirty(bytes: usize) -> bool {
    let cap = config::dirty_cap();
    // Relaxed: a count; the regions themselves pass through the lock or the slots.
    DIRTY
        .fetch_update(Relaxed, Relaxed, |held| {
            held.checked_add(bytes).filter(|sum| *sum <= cap)
        })
        .is_ok()
}

/// Takes back what `lease_dirty` added.
pub fn unlease_dirty(bytes: usize) {
    DIRTY.fetch_sub(bytes, Relaxed);
}

impl Pool {
    fn remove(&mut self, at: usize) -> (Region, SizeClass) {
        let entry = self.dirty[at];
        self.dirty.copy_within(at + 1..self.count, at);
        self.count -= 1;
        unlease_dirty(entry.1.bytes());
        entry
    }

    /// Keeps a dirty region if cap and table have room.
    fn keep(&mut self, region: Region, class: SizeClass) -> bool {
        let kept = self.count < ENTRIES && lease_dirty(class.bytes());
        if kept {
            self.dirty[self.count] = (region, class);
            self.count += 1;
        }
        kept
    }

    fn oldest(&mut self) -> Option<(Region, SizeClass)> {
        (self.count > 0).then(|| self.remove(0))
    }

    /// The most recently freed region of the class, or the front of the smallest larger one, whose
    /// rest stays here.
    fn take_dirty(&mut self, class: SizeClass) -> Option<Region> {
        let same = (0..self.count).rev().find(|at| self.dirty[*at].1 == class);
        if let Some(at) = same {
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

/// Drops the contents of a region that has been free for long, if parts of it would have to be read
/// from swap.
#[cold]
#[inline(never)]
pub fn freshen(start: usize, class: SizeClass) {
    if os::has_absent_pages(start, class.bytes()) {
        DROPPED_STALE.fetch_add(1, Relaxed);
        purge(start, class.bytes());
    }
}

/// Drops contents without the lock, then joins the region to its buddies.
fn purge_and_put(region: Region, class: SizeClass) {
    purge(region.start(), class.bytes());
    POOL.lock().buddy.put(region.start(), class);
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
    crate::worker::start_if_wanted();
    if let Some(found) = POOL.lock().take_dirty(class) {
        return Some((found, true));
    }
    if let Some(found) = slot::steal_from_any(class) {
        return Some((found, true));
    }
    let clean = |start| (Region::new(start, 0), false);
    {
        let mut pool = POOL.lock();
        pool.buddy.huge_pages = config::huge_pages();
        if let Some(start) = pool.buddy.take(class) {
            return Some(clean(start));
        }
        if pool.buddy.grow(class) {
            return pool.buddy.take(class).map(clean);
        }
    }
    // Free memory of other classes may join to what is wanted.
    empty_everything();
    let mut pool = POOL.lock();
    if let Some(start) = pool.buddy.take(class) {
        return Some(clean(start));
    }
    if pool.buddy.grow(class) {
        pool.buddy.take(class).map(clean)
    } else {
        None
    }
}

/// Purges what exceeds a cap that was lowered. What slots hold stays until they run over.
pub fn trim_to_cap() {
    while DIRTY.load(Relaxed) > config::dirty_cap() {
        let oldest = POOL.lock().oldest();
        let Some((region, class)) = oldest else {
            return;
        };
        purge_and_put(region, class);
    }
}

/// Purges regions that have been in the pool for `age` milliseconds.
pub fn purge_older(age: u64) {
    loop {
        let now = os::now();
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

/// Returns the memory of every free region, in the pool and in all caches, to the system.
pub fn empty_everything() {
    for class in (0..CLASSES).filter_map(SizeClass::of_index) {
        while let Some(region) = slot::steal_from_any(class) {
            purge_and_put(region, class);
        }
    }
    loop {
        let oldest = POOL.lock().oldest();
        let Some((region, class)) = oldest else {
            return;
        };
        purge_and_put(region, class);
    }
}

/// Dirty bytes, bytes purged, stale regions dropped, purges that the system refused.
pub fn totals() -> (usize, usize, usize, usize) {
    (
        DIRTY.load(Relaxed),
        PURGED_BYTES.load(Relaxed),
        DROPPED_STALE.load(Relaxed),
        PURGE_FAILURES.load(Relaxed),
    )
}

/// Makes a region grow into free neighbours.
pub fn extend(start: usize, class: SizeClass, wanted: SizeClass) -> bool {
    POOL.lock().buddy.extend(start, class, wanted)
}
