//! Assignment of shards to processors.
//!
//! While there are more threads than shards, two threads of one shard may run at the same time, on
//! two processors. Each would wait for the other at the locks of its bins, and get blocks that lie
//! in the other's cache. So threads then use the bins of their processor's shard instead of the one
//! that they are attached to.

use core::ptr::null_mut;
use heapdrome_pages::atomic::{AtomicPtr, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

use crate::slabs::shard::{AllShards, Shard, ShardRef};

/// Number of processors that are distinguished; beyond it, several share a shard. Small in models,
/// where every access to an entry is a step, and under Miri, which visits each entry at every use
/// of the heaps.
const PROCESSORS: usize = if cfg!(any(modelled, miri)) { 4 } else { 256 };

/// Shard that serves each processor; null for a processor that no thread was seen on.
#[derive(Debug)]
pub(super) struct Processors([AtomicPtr<Shard>; PROCESSORS]);

impl Processors {
    /// Creates a table in which no processor has been seen.
    pub(super) const fn new() -> Self {
        Self([const { AtomicPtr::new(null_mut()) }; PROCESSORS])
    }

    /// Returns the shard that serves a processor.
    pub(super) fn shard_of(&self, processor: usize) -> Option<ShardRef> {
        // Acquire: pairs with the release in `serve`, since the shard may be younger than the
        // caller's heap.
        ShardRef::of_pointer(self.0[processor % PROCESSORS].load(Acquire))
    }

    /// Assigns the shard that serves the fewest processors. The caller holds the lock of the list
    /// of shards.
    pub(super) fn serve(&self, processor: usize, shards: AllShards) {
        let fewest = shards.min_by_key(|shard| self.served_by(*shard));
        if let Some(shard) = fewest {
            // Release: pairs with the acquire in `shard_of`.
            self.0[processor % PROCESSORS].store(shard.as_ptr(), Release);
        }
    }

    /// Forgets all assignments because a shard was added. The caller holds the lock of the list of
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
        // Relaxed: the lock of the list of shards, which the caller holds, orders it.
        let serves = |entry: &&AtomicPtr<_>| entry.load(Relaxed) == shard.as_ptr();
        self.0.iter().filter(serves).count()
    }
}
