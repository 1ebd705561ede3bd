//! How large data sets are, as their header says.

use std::path::Path;

use heapdrome_record::Bytes;
use serde::Serialize;

use crate::error::CatalogError;
use crate::manifest::{self, Manifest};

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
    /// loaded and joined, at the peak; `None` if that was not counted when they were written.
    pub peak_requested_bytes: Option<Bytes>,
}

/// How large the first `n` data sets of a folder are, and what loading `parallel` of them at a
/// time requests.
///
/// # Errors
/// When there are no data, or not as many, or they are foreign or damaged.
pub fn sizes(folder: &Path, n: u32, parallel: u32) -> Result<Sizes, CatalogError> {
    let manifest = manifest::open(folder)?;
    let sets = first(folder, &manifest, n)?;
    let sum = |of: fn(&manifest::SetHeader) -> u64| sets.iter().map(of).sum::<u64>();
    // All sets of a chunk live at the same time, and nothing of the one before: the peak is the
    // largest chunk.
    let chunks = sets.chunks(parallel.max(1) as usize);
    let requested = chunks.map(|chunk| {
        let bytes = chunk.iter().map(|set| set.requested_bytes);
        bytes.sum::<Option<u64>>()
    });
    let requested: Option<Vec<u64>> = requested.collect();
    Ok(Sizes {
        n,
        size: manifest.size,
        seed: manifest.seed,
        entries: sum(|set| set.entries),
        records: sum(|set| set.records),
        data_bytes: Bytes(sum(|set| set.data_bytes)),
        file_bytes: Bytes(sum(|set| set.file_bytes)),
        peak_requested_bytes: requested.map(|all| Bytes(all.into_iter().max().unwrap_or(0))),
    })
}

/// The first `n` data sets.
///
/// # Errors
/// When there are fewer.
pub(crate) fn first<'a>(
    folder: &Path,
    manifest: &'a Manifest,
    n: u32,
) -> Result<&'a [manifest::SetHeader], CatalogError> {
    manifest
        .sets
        .get(..n as usize)
        .ok_or_else(|| CatalogError::TooFewSets {
            asked: n,
            have: manifest.sets.len(),
            path: folder.to_owned(),
        })
}
