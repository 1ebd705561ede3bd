//! The catalog workload: data sets loaded in parallel on an async executor, joined, formatted and
//! dropped across threads.
//!
//! It is the load of the alloc-perf-test document, written from its description. `gen-data` writes
//! data sets, `test` runs the workload on them and prints one [`heapdrome_schema::WorkloadReport`],
//! and `size` prints their sizes. The document publishes figures for the default parameters and for
//! four sets instead of eight.
//!
//! # A data set
//!
//! A data set has an index of 40 categories and about 2,100 entries, and details of each entry. The
//! details are chapters of items with strings, options, nested records and small maps. At the
//! default size there are about 420,000 items in all. The number of entries and the number of items
//! per entry both grow with the size, so bytes grow quadratically with it. The number of entries
//! varies by up to 5% around its mean. A set depends only on the seed, the size and its own number.
//!
//! The details are serialised with postcard in blocks of 16 entries, and each block is compressed
//! with LZ4. The index is one more block. A folder has one file per set, with checksums (XXH3), so
//! that a change of any byte is detected before the data are used.
//!
//! # A run
//!
//! Sets go through the executor (smol) in chunks of `--parallel`:
//!
//! 1. One task of each set reads blocks ahead. Another decompresses them and deserialises them into
//!    ordered maps. A third joins entries and details under their categories, in the order of
//!    names. It formats a name and a URL for every item, with temporary strings as in typical code.
//!    Tasks yield after every block and entry, and continue on any free thread. So a thread often
//!    reads, frees or grows memory that another thread allocated.
//! 2. When all sets of the chunk are joined, memory is at its peak. As many tasks as there are sets
//!    drop them: the categories of each set are dealt to these tasks in turn. A task reads the
//!    names and URLs of its categories once more for the checksum, and drops them.
//!
//! The next chunk begins when the previous one is completely dropped. The measured part lasts from
//! the first task to the last drop. It excludes the start of the threads and the report.
//!
//! The checksum is a sum over all names and URLs, read just before they are dropped. gen-data
//! stores the expected checksum, computed from the generated data. The allocator is at fault if the
//! checksum differs, or if a block that was intact when it was read cannot be unpacked. The exit
//! status is then 1.
//!
//! # The requested bytes
//!
//! The peak of the requested bytes cannot be computed by hand, because the nodes of maps are not
//! accessible. gen-data loads and joins each set on one thread and then reads the number of live
//! bytes. This number is exact and reproducible, because the program's allocator counts for each
//! thread the bytes that it requests and frees. All sets of a chunk are in memory at the same time,
//! so the peak of a run is the largest sum over a chunk. This holds for any number of sets, of
//! parallel sets and of threads. The sum omits the memory of the executor and of the blocks being
//! unpacked. Builds with the feature `stats` count over all threads, and report the counted peak
//! beside the sum. docs/workloads/catalog.md shows the difference.
//!
//! # Results of gen-data
//!
//! Unless it is killed, gen-data leaves a complete folder or nothing: errors and the first Ctrl-C
//! remove everything that was written. A killed run leaves a folder that is marked as unfinished,
//! and no run uses that folder.

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

/// Allocator of the tests, which counts requested bytes as in the workload's binary.
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
