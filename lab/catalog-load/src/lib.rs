//! The catalog workload: data sets loaded in parallel on an async executor, joined, formatted and
//! dropped across threads.
//!
//! It is the load of the alloc-perf-test document, written from its description. `gen-data` writes
//! data sets, `test` runs the workload on them and prints one [`heapdrome_schema::WorkloadReport`],
//! and `size` prints their sizes. The document's published figures are for 8 sets (and 4), 8 at a
//! time, on 16 threads, which are the defaults.
//!
//! # A data set
//!
//! An index of 40 categories and some 2,100 entries, and for each entry details: chapters of items
//! with strings, options, nested records and small maps; some 415,000 items in all at the default
//! size. The number of entries and the number of items per entry both grow with the size, so bytes
//! grow quadratically with it. The number of entries varies by a twentieth between sets. A set
//! depends on the seed, the size and its number only.
//!
//! It is serialised with postcard in blocks of 16 entries, each compressed with LZ4; the index is a
//! block too. A folder has one file per set, with checksums (XXH3), so that a change of any byte is
//! detected before the data are used.
//!
//! # A run
//!
//! Sets go through the executor (smol) in chunks of `--parallel`:
//!
//! 1. One task of each set reads blocks ahead. Another decompresses them and deserialises them
//!    into ordered maps. A third joins entries and details under their categories, in the order of
//!    names, and formats a name and a URL for every item, with temporary strings like those of
//!    typical code. Tasks yield after every block and entry, and continue on any free thread: one
//!    thread reads, frees or grows blocks that another allocated.
//! 2. When all sets of the chunk are joined, memory is at its peak. Their categories are divided
//!    among as many tasks as there are sets, and each task gets some of every set. It reads the
//!    names and URLs once more for the checksum and drops everything.
//!
//! The next chunk begins when the previous one is completely dropped. The measured part is all of
//! this, from the first task to the last drop. Starting the threads and reporting are not part of
//! it.
//!
//! The checksum is a sum over all names and URLs, read just before they are dropped. gen-data
//! stores the expected one, computed from the generated data. A different checksum is the fault of
//! the allocator, and so is a block that was intact when it was read and cannot be unpacked: exit
//! status 1.
//!
//! # The requested bytes
//!
//! The peak of the requested bytes cannot be computed by hand, because the nodes of maps are not
//! accessible. gen-data loads and joins each set on one thread and reads the bytes that are live
//! then, which is exact and reproducible: the program's allocator counts for each thread the bytes
//! that it requests and frees. All sets of a chunk are in memory at the same time, so the peak of a
//! run is the largest sum over a chunk, for any number of sets, sets at a time and threads. The sum
//! omits the memory of the executor and of the blocks being unpacked. Builds with the feature
//! `stats` count over all threads, and report the counted peak beside the sum.
//! docs/workloads/catalog.md shows the difference.
//!
//! # Results of gen-data
//!
//! A complete folder or nothing. Errors and the first Ctrl-C remove everything that was written. A
//! killed run leaves a folder that is marked as unfinished, and that no run uses.

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
compile_error!("heapdrome supports Linux with glibc only so far");

mod allocator;
mod command;
mod data;
mod description;
mod error;
mod file;
mod generate;
mod generation;
mod join;
mod load;
mod measure;
mod model;
mod process;
mod run;
mod settings;
mod sizes;
#[cfg(feature = "stats")]
mod stats;
mod text;
mod work;

/// Counts requested bytes in tests too.
#[cfg(test)]
#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

pub use allocator::Allocator;
pub use command::main;
pub use data::data_is_complete;
pub use description::DESCRIPTION;
pub use error::CatalogError;
pub use settings::{DEFAULT_SIZE, Settings, data_folder_name, expected_peak};
pub use sizes::{Sizes, sizes};
