//! Counts of reserved address space, for statistics.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Bytes of address space in chunks.
pub static CHUNKS: AtomicUsize = AtomicUsize::new(0);
/// Bytes of address space of blocks with their own mapping.
pub static MAPPINGS: AtomicUsize = AtomicUsize::new(0);
/// Number of blocks with their own mapping.
pub static BLOCKS: AtomicUsize = AtomicUsize::new(0);
/// Maximum number of bytes of address space in chunks and mappings so far.
pub static PEAK: AtomicUsize = AtomicUsize::new(0);

/// Updates the peak after address space has grown.
pub fn note_peak() {
    // Relaxed: statistics, on which no other memory depends.
    PEAK.fetch_max(CHUNKS.load(Relaxed) + MAPPINGS.load(Relaxed), Relaxed);
}
