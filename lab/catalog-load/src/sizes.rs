//! How large data sets are, as the heads of their files say.

use std::path::Path;

use heapdrome_schema::Bytes;
use serde::Serialize;

use crate::data;
use crate::error::CatalogError;
use crate::file::Set;

/// The size of the first data sets of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Sizes {
    /// How many data sets.
    pub n: u32,
    /// The size with which they were written, relative to 100.
    pub size: u32,
    /// The seed from which they were drawn.
    pub seed: u64,
    /// Entries.
    pub entries: u64,
    /// Records, each of them a name and a URL.
    pub records: u64,
    /// Bytes, serialised and not compressed.
    pub data_bytes: Bytes,
    /// Bytes on the disk.
    pub file_bytes: Bytes,
    /// Bytes requested of the allocator and not given back when `parallel` sets at a time are
    /// loaded and joined, at the peak.
    pub peak_requested_bytes: Bytes,
}

/// How large the first `n` data sets of a folder are, and what loading `parallel` of them at a
/// time requests.
///
/// # Errors
/// When there are no data, or not as many, or they are foreign or damaged.
pub fn sizes(folder: &Path, n: u32, parallel: u32) -> Result<Sizes, CatalogError> {
    let sets = data::first(folder, n)?;
    let sum = |of: fn(&Set) -> u64| sets.iter().map(of).sum::<u64>();
    let identity = sets
        .first()
        .map_or_else(Default::default, |set| set.place.identity);
    // All sets of a chunk live at the same time, and nothing of the one before: the peak is the
    // largest chunk.
    let chunks = sets.chunks(parallel.max(1) as usize);
    let requested = chunks.map(|chunk| chunk.iter().map(|set| set.facts.requested_bytes).sum());
    Ok(Sizes {
        n,
        size: identity.size,
        seed: identity.seed,
        entries: sum(|set| set.facts.entries),
        records: sum(|set| set.facts.tally.records),
        data_bytes: Bytes(sum(|set| set.data_bytes)),
        file_bytes: Bytes(sum(|set| set.file_bytes)),
        peak_requested_bytes: Bytes(requested.max().unwrap_or(0)),
    })
}
