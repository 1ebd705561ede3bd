//! Entries that were copied out of the rings but not yet written to the trace. Their total size is
//! limited.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use heapdrome_witness::ring::ENTRIES;

use crate::entries::Raw;

/// Capacity of a large batch, in entries (64 KiB).
const LARGE: usize = 4096;

/// Number of entries below which a batch has exactly the requested capacity. Most rings are almost
/// empty, so most batches are small.
const SMALL: usize = LARGE / 8;

/// Size of all entries of one ring in bytes.
const LAP_BYTES: u64 = ENTRIES * size_of::<Raw>() as u64;

/// Minimum number of laps of every ring that fit into a backlog, whatever its limit. The worker
/// holds back up to one lap of each ring until the next pass over all rings, and that pass needs
/// room for another lap.
const LAPS: u64 = 2;

/// Memory of the batches, shared by the drainer, which fills them, and the worker, which writes
/// them to the trace.
#[derive(Clone, Debug)]
pub(crate) struct Backlog(Arc<Pool>);

#[derive(Debug)]
struct Pool {
    limit: u64,
    bytes: AtomicU64,
    /// Large batches that were written to the trace and can be reused.
    free: Mutex<Vec<Vec<Raw>>>,
}

impl Backlog {
    /// Creates an empty backlog that is full at `limit` bytes.
    pub(crate) fn new(limit: u64) -> Self {
        Self(Arc::new(Pool {
            limit,
            bytes: AtomicU64::new(0),
            free: Mutex::new(Vec::new()),
        }))
    }

    /// Returns whether the backlog is full. A limit below the minimum that `rings` rings need is
    /// replaced by that minimum.
    pub(crate) fn is_full(&self, rings: usize) -> bool {
        let limit = self.0.limit.max(rings as u64 * LAPS * LAP_BYTES);
        // Relaxed: the number publishes no other memory; a channel transfers the batches.
        self.0.bytes.load(Ordering::Relaxed) >= limit
    }

    /// Returns an empty batch. Its capacity is `entries` if that is below [`SMALL`], and otherwise
    /// [`LARGE`].
    pub(crate) fn batch(&self, entries: usize) -> Batch {
        let entries = if entries < SMALL {
            Vec::with_capacity(entries)
        } else {
            self.0.large()
        };
        let bytes = (entries.capacity() * size_of::<Raw>()) as u64;
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
        Batch {
            entries,
            pool: Arc::clone(&self.0),
        }
    }
}

impl Pool {
    fn large(&self) -> Vec<Raw> {
        let free = self
            .free
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        free.unwrap_or_else(|| Vec::with_capacity(LARGE))
    }

    fn take_back(&self, mut entries: Vec<Raw>) {
        let bytes = (entries.capacity() * size_of::<Raw>()) as u64;
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        if entries.capacity() >= LARGE {
            entries.clear();
            let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
            free.push(entries);
        }
    }
}

/// Entries of one ring, in their order.
#[derive(Debug)]
pub(crate) struct Batch {
    entries: Vec<Raw>,
    pool: Arc<Pool>,
}

impl Batch {
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.entries.len() < self.entries.capacity()
    }

    #[inline]
    pub(crate) fn push(&mut self, entry: Raw) {
        self.entries.push(entry);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn entries(&self) -> &[Raw] {
        &self.entries
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.pool.take_back(std::mem::take(&mut self.entries));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backlog_is_full_until_its_batches_are_written() {
        let backlog = Backlog::new(64 << 10);
        let small = backlog.batch(100);
        assert!(!backlog.is_full(0));
        let mut large = backlog.batch(100_000);
        assert!(backlog.is_full(0));
        assert!(!backlog.is_full(1), "a ring needs more");
        while large.has_room() {
            large.push(Raw::default());
        }
        assert_eq!(large.entries().len(), LARGE);
        drop(large);
        assert!(!backlog.is_full(0));
        assert!(backlog.batch(LARGE).is_empty(), "its memory is used again");
        drop(small);
        assert_eq!(backlog.0.bytes.load(Ordering::Relaxed), 0);
    }
}
