//! The way of a region: out of what is shared or out of clean address space, and back.

use heapdrome_pages::Linux;

use crate::buddy::Buddy;
use crate::class::SizeClass;
use crate::purge::purge;
use crate::region::Region;
use crate::registry::SHARED;
use crate::shared::Policy;
use crate::sync::Lock;
use crate::{config, os};

/// Free regions without contents. Nobody who holds this lock takes that of the dirty ones, nor the other way
/// round.
pub static CLEAN: Lock<Buddy<Linux>> = Lock::new(Buddy::new(Linux));

/// The settings of the process, and its address space.
#[derive(Debug)]
pub struct Process;

impl Policy for Process {
    fn budget(&self) -> usize {
        config::thread_budget()
    }

    fn most(&self) -> usize {
        config::dirty_cap()
    }

    fn clean(&self, region: Region, class: SizeClass) {
        purge(region.start(), class.bytes());
        put_clean(region.start(), class);
    }
}

/// Joins a region without contents to its buddies.
pub fn put_clean(start: usize, class: SizeClass) {
    CLEAN.lock().put(start, class);
}

/// A clean region, from new address space if need be.
fn take_clean(class: SizeClass) -> Option<usize> {
    let mut clean = CLEAN.lock();
    clean.huge_pages = config::huge_pages();
    let found = clean.take(class);
    if found.is_none() && clean.grow(class) {
        return clean.take(class);
    }
    found
}

/// A region for a thread whose own cache has none. The flag says that it is dirty.
pub fn take(class: SizeClass) -> Option<(Region, bool)> {
    crate::fork::install();
    if let Some(found) = SHARED.take(class) {
        return Some((found, true));
    }
    let clean = take_clean(class).or_else(|| {
        // Free memory of other classes may join to what is wanted.
        empty_everything();
        take_clean(class)
    });
    clean.map(|start| (Region::new(start, 0), false))
}

/// Purges regions that have been in the pool or in a cache for `age` milliseconds.
pub fn purge_older(age: u64) {
    let now = os::now();
    SHARED.empty_of(|region| region.age(now) >= age);
}

/// Returns the memory of every free region, in the pool and in all caches, to the system.
pub fn empty_everything() {
    SHARED.empty();
}

/// Makes a region grow into free neighbours.
pub fn extend(start: usize, class: SizeClass, wanted: SizeClass) -> bool {
    CLEAN.lock().extend(start, class, wanted)
}
