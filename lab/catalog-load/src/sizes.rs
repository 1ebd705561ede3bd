//! Sizes of data sets, read from the headers of their files.

use std::path::Path;

use heapdrome_schema::Bytes;
use serde::Serialize;

use crate::data;
use crate::error::CatalogError;
use crate::file::Set;

/// Sizes of the first data sets of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Sizes {
    /// Number of data sets.
    pub n: u32,
    /// Size setting of the data sets, relative to 100.
    pub size: u32,
    /// Seed of the data sets.
    pub seed: u64,
    /// Number of entries in all data sets.
    pub entries: u64,
    /// Number of records, each of which has a name and a URL.
    pub records: u64,
    /// Size of the data sets in bytes, serialised and not compressed.
    pub data_bytes: Bytes,
    /// Size of the data sets on disk in bytes.
    pub file_bytes: Bytes,
    /// Peak of the bytes requested and not freed while the sets are loaded and joined, `parallel`
    /// at a time.
    pub peak_requested_bytes: Bytes,
}

/// Returns the sizes of the first `n` data sets of a folder. The peak of requested bytes is that of
/// loading `parallel` sets at a time.
///
/// # Errors
/// Returns an error if there are no data or too few sets, or if they cannot be read, or are
/// incomplete, foreign, of another version or visibly damaged.
pub fn sizes(folder: &Path, n: u32, parallel: u32) -> Result<Sizes, CatalogError> {
    let sets = data::first(folder, n)?;
    let sum = |of: fn(&Set) -> u64| sets.iter().map(of).sum::<u64>();
    let identity = sets
        .first()
        .map_or_else(Default::default, |set| set.place.identity);
    // All sets of a chunk are in memory at the same time, without those of the previous chunk. So
    // the peak is that of the largest chunk.
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
