//! Which shard serves a processor.
//!
//! Where threads are more than shards, two threads of one shard may run at once, on two processors.
//! Each would wait for the other at the locks of its bins, and be handed blocks that lie in the
//! other's cache. So threads then use the bins of their processor's shard, whatever shard they are
//! attached to.

use core::ptr::null_mut;
use heapdrome_pages::atomic::{AtomicPtr, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

use crate::slabs::shard::{AllShards, Shard, ShardRef};

/// Processors that are told apart. Where there are more, several share a shard. In models and under
/// Miri few: every look at one is a step there, or every use of the heaps a look at each.
const PROCESSORS: usize = if cfg!(any(modelled, miri)) { 4 } else { 256 };

/// By processor: the shard that serves it; null for one that no thread was seen on.
#[derive(Debug)]
pub(super) struct Processors([AtomicPtr<Shard>; PROCESSORS]);

impl Processors {
    /// No processor has been seen.
    pub(super) const fn new() -> Self {
        Self([const { AtomicPtr::new(null_mut()) }; PROCESSORS])
    }

    /// The shard that serves a processor.
    pub(super) fn shard_of(&self, processor: usize) -> Option<ShardRef> {
        // Acquire: pairs with the release in `serve`, since the shard may be younger than the
        // caller's heap.
        ShardRef::of_pointer(self.0[processor % PROCESSORS].load(Acquire))
    }

    /// Gives a processor the shard that serves the fewest. The caller holds the lock of the list of
    /// shards.
    pub(super) fn serve(&self, processor: usize, shards: AllShards) {
        let fewest = shards.min_by_key(|shard| self.served_by(*shard));
        if let Some(shard) = fewest {
            // Release: pairs with the acquire in `shard_of`.
            self.0[processor % PROCESSORS].store(shard.as_ptr(), Release);
        }
    }

    /// Notes that there is one shard more: processors get theirs anew. The caller holds the lock of
    /// the list of shards.
    pub(super) fn forget(&self) {
        for entry in &self.0 {
            // Relaxed: no shard is named. Pages that nobody wrote to are not to become resident by
            // it.
            if !entry.load(Relaxed).is_null() {
                entry.store(null_mut(), Relaxed);
            }
        }
    }

    fn served_by(&self, shard: ShardRef) -> usize {
        // Relaxed: the lock orders it.
        let serves = |entry: &&AtomicPtr<_>| entry.load(Relaxed) == shard.as_ptr();
        self.0.iter().filter(serves).count()
    }
}
