//! Assignment of shards to processors.
//!
//! While there are more threads than shards, two threads of one shard may run at the same time, on
//! two processors. They would contend for the locks of the bins, and get blocks that lie in the
//! other processor's cache. So threads then use the bins of their processor's shard, not of the
//! shard to which they are attached.

use core::ptr::null_mut;
use heapdrome_pages::atomic::{AtomicPtr, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

use crate::slabs::shard::{AllShards, Shard, ShardRef};

/// Number of entries of the table. Processors whose numbers are equal modulo this number share an
/// entry. Smaller in models and under Miri, because there each entry makes a run longer.
const PROCESSORS: usize = if cfg!(any(modelled, miri)) { 4 } else { 256 };

/// Table of the shard that serves each processor; null for a processor without an assigned shard.
#[derive(Debug)]
pub(super) struct Processors([AtomicPtr<Shard>; PROCESSORS]);

impl Processors {
    pub(super) const fn new() -> Self {
        Self([const { AtomicPtr::new(null_mut()) }; PROCESSORS])
    }

    /// Returns the shard that serves a processor; `None` if none is assigned.
    pub(super) fn shard_of(&self, processor: usize) -> Option<ShardRef> {
        // Acquire: pairs with the release in `serve`, because the shard may have been created after
        // the caller's heap.
        ShardRef::of_pointer(self.0[processor % PROCESSORS].load(Acquire))
    }

    /// Assigns to a processor the shard that serves the fewest processors. The caller holds the
    /// lock of the list of shards.
    pub(super) fn serve(&self, processor: usize, shards: AllShards) {
        let fewest = shards.min_by_key(|shard| self.served_by(*shard));
        if let Some(shard) = fewest {
            // Release: pairs with the acquire in `shard_of`.
            self.0[processor % PROCESSORS].store(shard.as_ptr(), Release);
        }
    }

    /// Clears all assignments, because a shard was added. The caller holds the lock of the list of
    /// shards.
    pub(super) fn forget(&self) {
        for entry in &self.0 {
            // Relaxed: null publishes no shard. Null entries are not written, so that untouched
            // pages do not become resident.
            if !entry.load(Relaxed).is_null() {
                entry.store(null_mut(), Relaxed);
            }
        }
    }

    fn served_by(&self, shard: ShardRef) -> usize {
        // Relaxed: the caller holds the lock of the list of shards, which orders all writes.
        let serves = |entry: &&AtomicPtr<_>| entry.load(Relaxed) == shard.as_ptr();
        self.0.iter().filter(serves).count()
    }
}
