//! The catalog workload: data sets loaded in parallel on an async executor, joined, formatted and
//! dropped across threads.
//!
//! It is the load of the alloc-perf-test document, written from its description. `gen-data` writes
//! data sets, `test` runs the workload on them and prints one [`heapdrome_schema::WorkloadReport`],
//! `size` says how large they are. The document's published figures are for 8 sets (and 4), 8 at a
//! time, on 16 threads, which are the defaults.
//!
//! # A data set
//!
//! An index of 40 categories and some 2,100 entries, and for each entry details: chapters of items
//! with strings, options, nested records and small maps; some 415,000 items in all at the default
//! size. Entries, and items of an entry, both grow with the size, so bytes grow with its square.
//! Sets vary by a twentieth in their number of entries. Every set is drawn from the seed, the size
//! and its number alone.
//!
//! It is serialised with postcard in blocks of 16 entries, each compressed with LZ4; the index is a
//! block too. A folder has one file per set, with checksums (XXH3), so that a change of any byte is
//! seen before anything is made of it.
//!
//! # A run
//!
//! Sets go through the executor (smol) in chunks of `--parallel`:
//!
//! 1. One task of each set reads blocks ahead; another decompresses them and deserialises them into
//!    ordered maps; then a third joins entries and details under their categories, in the order of
//!    names, and formats a name and a URL for every item, with the temporary strings that such code
//!    makes. Tasks yield after every block and entry, and whichever thread is free goes on: what
//!    one thread allocated, another reads, frees or grows.
//! 2. When all sets of the chunk are joined, memory is at its peak. Their categories are dealt out
//!    to as many tasks as there are sets, each getting some of every set, and each reads the names
//!    and URLs a last time for the checksum and drops everything.
//!
//! The next chunk begins when nothing is left of the one before. The measured part is all of this,
//! from the first task to the last drop; threads run already, and reports are not part of it.
//!
//! The checksum is a sum over all names and URLs, read just before they are dropped. gen-data keeps
//! the one that must come out, computed from what it drew; another one, or a block that was whole
//! when it was read and cannot be unpacked, is the fault of the allocator: exit status 1.
//!
//! # What is requested
//!
//! The peak of the bytes requested cannot be computed by hand, since the nodes of maps cannot be
//! seen. gen-data loads and joins each set on one thread and takes the bytes that are live then,
//! which is exact and the same in every run: the program's allocator counts for each thread what it
//! requests and gives back. All sets of a chunk live at the same time, so the peak of a run is the
//! largest sum over a chunk, whatever the number of sets, sets at a time and threads. What is left
//! out is what the executor and the blocks being unpacked take beside it; in builds with the
//! feature `stats`, which count over all threads, the counted peak is reported beside the sum.
//! docs/workloads/catalog.md has the difference.
//!
//! # What gen-data leaves
//!
//! A whole folder or nothing. Errors and the first Ctrl-C remove what was written. A killed run
//! leaves a folder that says that it is unfinished, and that no run uses.

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

/// What is requested is counted in tests too.
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
