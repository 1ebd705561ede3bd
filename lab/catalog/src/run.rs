//! The measured part: all data sets through the executor, chunk by chunk.

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use smol::Executor;
use smol::channel::{self, Receiver};
use smol::future::{block_on, yield_now};

use crate::error::CatalogError;
use crate::file::Identity;
use crate::join::{Joined, Shelf, Tally};
use crate::load::{Place, Pool, load_and_join};
use crate::manifest::Manifest;

/// What came out of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The records formatted, and their checksum as they were read back before they were dropped.
    pub(crate) tally: Tally,
    /// Categories dropped.
    pub(crate) dropped: u64,
    /// Those of them that another thread dropped than had made them.
    pub(crate) dropped_elsewhere: u64,
    /// What did not belong together when it was dropped.
    pub(crate) strays: u64,
}

/// An executor with its threads.
pub(crate) struct Workers {
    pool: Pool,
    threads: Vec<JoinHandle<()>>,
    /// Held open while the threads shall run; its end is what they wait for.
    stop: Option<channel::Sender<()>>,
}

impl Workers {
    /// Starts the threads.
    ///
    /// # Errors
    /// When the machine does not let them start.
    pub(crate) fn start(threads: u32) -> Result<Self, CatalogError> {
        let (stop, stopped) = channel::bounded(1);
        let mut workers = Self {
            pool: Arc::new(Executor::new()),
            threads: Vec::new(),
            stop: Some(stop),
        };
        for number in 0..threads {
            let (pool, stopped) = (Arc::clone(&workers.pool), stopped.clone());
            let thread = std::thread::Builder::new()
                .name(format!("worker-{number}"))
                .spawn(move || serve(&pool, &stopped))
                .map_err(|source| CatalogError::Machine {
                    what: "start the threads of the executor; lower --threads",
                    source,
                })?;
            workers.threads.push(thread);
        }
        Ok(workers)
    }

    /// Runs the first `n` data sets, `parallel` at a time.
    ///
    /// # Errors
    /// When a file cannot be read, is foreign or damaged, or memory does not hold what was put
    /// into it.
    pub(crate) fn run(
        &self,
        folder: &Path,
        manifest: &Manifest,
        n: u32,
        parallel: u32,
    ) -> Result<Outcome, CatalogError> {
        let places: Vec<_> = places(folder, manifest).take(n as usize).collect();
        let mut outcome = Outcome::default();
        for chunk in places.chunks(parallel as usize) {
            block_on(self.chunk(chunk, &mut outcome))?;
        }
        Ok(outcome)
    }

    /// Loads and joins the sets of a chunk at the same time, and drops them when all are there:
    /// that is when memory peaks, so the peak depends on the data alone.
    async fn chunk(&self, places: &[Place], outcome: &mut Outcome) -> Result<(), CatalogError> {
        let spawn = |place: &Place| {
            let task = load_and_join(Arc::clone(&self.pool), place.clone());
            self.pool.spawn(task)
        };
        let tasks: Vec<_> = places.iter().map(spawn).collect();
        let mut sets = Vec::with_capacity(tasks.len());
        for task in tasks {
            sets.push(task.await?);
        }
        let hands = deal(sets)?;
        let tasks: Vec<_> = hands
            .into_iter()
            .map(|hand| self.pool.spawn(retire(hand)))
            .collect();
        for task in tasks {
            let part = task.await;
            outcome.tally.add(part.tally);
            outcome.dropped += part.dropped;
            outcome.dropped_elsewhere += part.dropped_elsewhere;
            outcome.strays += part.strays;
        }
        Ok(())
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.stop = None;
        for thread in self.threads.drain(..) {
            // A worker that panicked has said so on standard error.
            let _ = thread.join();
        }
    }
}

/// What a worker does until it is told to stop.
fn serve(pool: &Pool, stopped: &Receiver<()>) {
    // An error is the message: the other end was dropped.
    let _ = block_on(pool.run(stopped.recv()));
}

/// Where the data sets of a folder are.
pub(crate) fn places<'a>(
    folder: &'a Path,
    manifest: &'a Manifest,
) -> impl Iterator<Item = Place> + 'a {
    let place = |(set, header): (usize, &crate::manifest::SetHeader)| Place {
        path: folder.join(&header.file),
        identity: Identity {
            seed: manifest.seed,
            size: manifest.size,
            set: set as u32,
        },
    };
    manifest.sets.iter().enumerate().map(place)
}

/// Deals the categories of all sets out to as many hands, so that each hand has some of each set.
fn deal(sets: Vec<Joined>) -> Result<Vec<Vec<Shelf>>, CatalogError> {
    let count = sets.len();
    let mut hands: Vec<Vec<Shelf>> = (0..count).map(|_| Vec::new()).collect();
    for (set, joined) in sets.into_iter().enumerate() {
        if joined.unmatched > 0 {
            return Err(CatalogError::Corrupted {
                what: format!("{} entries lost their details", joined.unmatched),
            });
        }
        for (place, shelf) in joined.shelves.into_values().enumerate() {
            hands[(set + place + 1) % count].push(shelf);
        }
    }
    Ok(hands)
}

/// Reads categories a last time and drops them.
async fn retire(shelves: Vec<Shelf>) -> Outcome {
    let mut outcome = Outcome::default();
    for shelf in shelves {
        outcome.tally.add(shelf.tally());
        outcome.strays += shelf.strays();
        outcome.dropped += 1;
        outcome.dropped_elsewhere += u64::from(shelf.maker != std::thread::current().id());
        drop(shelf);
        yield_now().await;
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generation::{Written, write};
    use crate::settings::Settings;
    use std::sync::atomic::AtomicBool;

    const SETTINGS: Settings = Settings {
        n: 5,
        size: 4,
        parallel: 1,
        threads: 1,
        seed: 11,
    };

    fn data(seed: u64) -> (tempfile::TempDir, Manifest) {
        let root = tempfile::tempdir().expect("a temporary folder");
        let settings = Settings { seed, ..SETTINGS };
        let stop = AtomicBool::new(false);
        match write(&root.path().join("data"), &settings, &stop).expect("written") {
            Written::Now(manifest, _) => (root, manifest),
            Written::Before(_) => panic!("there was nothing before"),
        }
    }

    fn run(data: &(tempfile::TempDir, Manifest), threads: u32, n: u32, parallel: u32) -> Outcome {
        let workers = Workers::start(threads).expect("started");
        let folder = data.0.path().join("data");
        workers.run(&folder, &data.1, n, parallel).expect("run")
    }

    fn expected(manifest: &Manifest, n: usize) -> Tally {
        let mut sum = Tally::default();
        for set in &manifest.sets[..n] {
            sum.add(Tally {
                records: set.records,
                checksum: set.checksum,
            });
        }
        sum
    }

    #[test]
    fn the_outcome_is_that_of_the_data_however_they_are_loaded() {
        let data = data(11);
        for (threads, n, parallel) in [(1, 5, 1), (1, 5, 8), (4, 5, 2), (16, 5, 8), (3, 2, 8)] {
            let outcome = run(&data, threads, n, parallel);
            assert_eq!(outcome.tally, expected(&data.1, n as usize));
            assert_eq!(outcome.strays, 0);
            assert!(outcome.dropped >= u64::from(n));
        }
    }

    #[test]
    fn another_seed_has_another_checksum() {
        let (one, other) = (data(11), data(12));
        let checksum = |data| run(data, 2, 1, 1).tally.checksum;
        assert_ne!(checksum(&one), checksum(&other));
    }

    #[test]
    fn what_one_thread_made_others_drop() {
        let data = data(11);
        assert_eq!(run(&data, 1, 5, 5).dropped_elsewhere, 0);
        // Which thread takes a task is chance, and that all tasks go to one is rare.
        let crossed = (0..20).any(|_| run(&data, 4, 5, 5).dropped_elsewhere > 0);
        assert!(crossed, "nothing was dropped by another thread in 20 runs");
    }

    #[test]
    fn all_sets_of_a_chunk_are_dealt_to_all_hands() {
        let data = data(11);
        let folder = data.0.path().join("data");
        let pool = Arc::new(Executor::new());
        let sets: Vec<_> = places(&folder, &data.1)
            .map(|place| {
                let task = load_and_join(Arc::clone(&pool), place);
                block_on(pool.run(task)).expect("loaded")
            })
            .collect();
        let shelves: usize = sets.iter().map(|set| set.shelves.len()).sum();
        let hands = deal(sets).expect("whole");
        assert_eq!(hands.iter().map(Vec::len).sum::<usize>(), shelves);
        assert!(hands.iter().all(|hand| hand.len() >= shelves / 5 - 5));
    }

    #[test]
    fn a_missing_file_ends_the_run() {
        let data = data(11);
        let folder = data.0.path().join("data");
        std::fs::remove_file(folder.join("set-002.bin")).expect("removed");
        let workers = Workers::start(2).expect("started");
        let error = workers.run(&folder, &data.1, 5, 5).expect_err("missing");
        assert!(matches!(error, CatalogError::Read { .. }));
    }
}
