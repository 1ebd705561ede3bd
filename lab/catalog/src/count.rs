//! The counting binary: loads each data set on one thread, and says what it requested.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use heapdrome_record::Bytes;
use serde::{Deserialize, Serialize};
use smol::Executor;
use smol::future::block_on;

use crate::allocator::CountingAllocator;
use crate::error::CatalogError;
use crate::load::{Place, load_and_join};
use crate::manifest::{self, Manifest};
use crate::run::places;
use crate::settings::{Settings, expected_peak, with_margin};
use crate::work;

/// What one data set takes when it is loaded and joined, as a line of the counting binary's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Count {
    pub(crate) set: usize,
    pub(crate) requested_bytes: u64,
    pub(crate) records: u64,
    pub(crate) checksum: u64,
}

/// Counts all data sets of a folder, as many at a time as processors and memory allow.
///
/// # Errors
/// When a file cannot be read, is foreign or damaged, or the memory would not do for one set.
pub(crate) fn count(folder: &Path) -> Result<Vec<Count>, CatalogError> {
    let manifest = manifest::open(folder)?;
    let threads = work::threads(manifest.sets.len(), peak_of_one(&manifest), "counting")?;
    let places: Vec<_> = places(folder, &manifest).collect();
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (sender, next, places) = (sender.clone(), &next, &places);
            // Relaxed: the counter only deals out numbers, each of them once.
            let take = move || places.get(next.fetch_add(1, Ordering::Relaxed));
            scope.spawn(move || {
                while let Some(place) = take() {
                    // The receiver lives until all threads have ended.
                    let _ = sender.send(count_one(place));
                }
            });
        }
    });
    drop(sender);
    let mut counts = receiver.into_iter().collect::<Result<Vec<_>, _>>()?;
    counts.sort_unstable_by_key(|count| count.set);
    Ok(counts)
}

/// Loads and joins a data set on this thread alone, and reads what its allocations came to.
fn count_one(place: &Place) -> Result<Count, CatalogError> {
    let before = CountingAllocator::live();
    let joined = {
        let pool = Arc::new(Executor::new());
        let task = load_and_join(Arc::clone(&pool), place.clone());
        block_on(pool.run(task))?
    };
    // Taken when the executor is gone again: what is left is the data set.
    let requested = CountingAllocator::live() - before;
    let tally = joined.tally();
    Ok(Count {
        set: place.identity.set as usize,
        requested_bytes: requested.max(0) as u64,
        records: tally.records,
        checksum: tally.checksum,
    })
}

/// What one data set of a folder may take.
fn peak_of_one(manifest: &Manifest) -> Bytes {
    with_margin(expected_peak(&Settings {
        n: 1,
        size: manifest.size,
        ..Settings::default()
    }))
}

/// The arguments of the counting binary.
#[derive(clap::Parser)]
#[command(
    about = "Counts the bytes that each data set of the catalog workload requests. gen-data runs \
             this; there is no need to."
)]
struct Arguments {
    /// The folder with the data.
    folder: PathBuf,
}

/// Prints what each data set of the folder named by the arguments requests, one line each.
pub(crate) fn main() -> Result<(), CatalogError> {
    let arguments: Arguments = crate::command::parse();
    for count in count(&arguments.folder)? {
        crate::command::print_json(&count)?;
    }
    Ok(())
}
