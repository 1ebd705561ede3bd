//! Shared pool: dirty regions of all threads, and clean address space.

use crate::class::SizeClass;
use crate::region::Region;
use crate::registry::{CLEAN, SHARED};
use crate::{config, os};

/// Takes a clean region, from new address space if necessary.
fn take_clean(class: SizeClass) -> Option<usize> {
    let mut clean = CLEAN.lock();
    clean.huge_pages = config::huge_pages();
    let found = clean.take(class);
    if found.is_none() && clean.grow(class) {
        return clean.take(class);
    }
    found
}

/// Takes a region of a class from the dirty table, from any thread's cache, or from clean address
/// space. The returned flag is true if the region is dirty. Returns `None` if the system refuses.
pub fn take(class: SizeClass) -> Option<(Region, bool)> {
    if let Some(found) = SHARED.take(class) {
        return Some((found, true));
    }
    let clean = take_clean(class).or_else(|| {
        // Free regions of other classes may merge into a region of this class.
        empty_everything();
        take_clean(class)
    });
    clean.map(|start| (Region::new(start, 0), false))
}

/// Purges regions that have been free for at least `age` milliseconds, in the pool or in a cache.
pub fn purge_older(age: u64) {
    let now = os::now();
    SHARED.empty_of(|region| region.age(now) >= age);
}

/// Returns the memory of every free region, in the pool and in all caches, to the system.
pub fn empty_everything() {
    SHARED.empty();
}

/// Extends a region in place. Returns false, without any change, unless it begins a buddy block of
/// class `wanted` whose rest is free and clean.
pub fn extend(start: usize, class: SizeClass, wanted: SizeClass) -> bool {
    CLEAN.lock().extend(start, class, wanted)
}
