//! The measured part of a run: it sends all data sets through the executor, chunk by chunk.

use std::sync::Arc;
use std::thread::JoinHandle;

use smol::Executor;
use smol::channel::{self, Receiver};
use smol::future::{block_on, yield_now};

use crate::error::CatalogError;
use crate::file::{Place, Set};
use crate::join::{Joined, Shelf, Tally};
use crate::load::{Pool, load_and_join};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Tally of the records, computed just before they are dropped.
    pub(crate) tally: Tally,
    /// Number of categories dropped.
    pub(crate) dropped: u64,
    /// Number of categories dropped by a thread other than the one that completed them.
    pub(crate) dropped_elsewhere: u64,
    /// Number of mismatches found when the data were dropped.
    pub(crate) strays: u64,
}

pub(crate) struct Workers {
    pool: Pool,
    threads: Vec<JoinHandle<()>>,
    /// Sender that exists while the threads run. Dropping the sender stops the threads.
    stop: Option<channel::Sender<()>>,
}

impl Workers {
    /// Starts the threads.
    ///
    /// # Errors
    /// Returns an error if the machine cannot start them.
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

    /// Runs the workload on data sets, `parallel` at a time.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read, is foreign, damaged or of another version, or
    /// memory has changed.
    pub(crate) fn run(&self, sets: &[Set], parallel: u32) -> Result<Outcome, CatalogError> {
        let places: Vec<Place> = sets.iter().map(|set| set.place.clone()).collect();
        let mut outcome = Outcome::default();
        for chunk in places.chunks(parallel as usize) {
            block_on(self.chunk(chunk, &mut outcome))?;
        }
        Ok(outcome)
    }

    /// Loads and joins the sets of a chunk in parallel. Drops them only when all are complete, so
    /// that the memory of all sets together does not depend on the scheduling.
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
            // A worker that panicked has already printed to standard error.
            let _ = thread.join();
        }
    }
}

/// Runs a worker until it is stopped.
fn serve(pool: &Pool, stopped: &Receiver<()>) {
    // An error is the signal to stop, because the sender was dropped.
    let _ = block_on(pool.run(stopped.recv()));
}

/// Divides the categories of all sets into as many shares as there are sets. Deals the categories
/// of each set to the shares in turn. Returns an error if entries and details do not match.
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

/// Reads the records of categories once more and drops the categories.
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
    use crate::data;
    use crate::generation::write;
    use crate::settings::Settings;
    use std::sync::atomic::AtomicBool;

    const SETTINGS: Settings = Settings {
        n: 5,
        size: 4,
        parallel: 1,
        threads: 1,
        seed: 11,
    };

    fn data(seed: u64) -> (tempfile::TempDir, Vec<Set>) {
        let root = tempfile::tempdir().expect("a temporary folder");
        let settings = Settings { seed, ..SETTINGS };
        let folder = root.path().join("data");
        write(&folder, &settings, &AtomicBool::new(false)).expect("written");
        (root, data::open(&folder).expect("whole"))
    }

    fn run(sets: &[Set], threads: u32, parallel: u32) -> Outcome {
        let workers = Workers::start(threads).expect("started");
        workers.run(sets, parallel).expect("run")
    }

    #[test]
    fn the_outcome_is_that_of_the_data_however_they_are_loaded() {
        let (_root, sets) = data(11);
        for (threads, n, parallel) in [(1, 5, 1), (1, 5, 8), (4, 5, 2), (16, 5, 8), (3, 2, 8)] {
            let outcome = run(&sets[..n], threads, parallel);
            let mut expected = Tally::default();
            sets[..n]
                .iter()
                .for_each(|set| expected.add(set.facts.tally));
            assert_eq!(outcome.tally, expected);
            assert_eq!(outcome.strays, 0);
            assert!(outcome.dropped >= n as u64);
        }
    }

    #[test]
    fn another_seed_has_another_checksum() {
        let (one, other) = (data(11), data(12));
        let checksum = |sets: &[Set]| run(&sets[..1], 2, 1).tally.checksum;
        assert_ne!(checksum(&one.1), checksum(&other.1));
    }

    #[test]
    fn what_one_thread_made_others_drop() {
        let (_root, sets) = data(11);
        assert_eq!(run(&sets, 1, 5).dropped_elsewhere, 0);
        // Chance decides which thread takes a task. One thread rarely takes all tasks.
        let crossed = (0..20).any(|_| run(&sets, 4, 5).dropped_elsewhere > 0);
        assert!(crossed, "nothing was dropped by another thread in 20 runs");
    }

    #[test]
    fn all_sets_of_a_chunk_are_dealt_to_all_hands() {
        let (_root, sets) = data(11);
        let pool = Arc::new(Executor::new());
        let sets: Vec<_> = sets
            .into_iter()
            .map(|set| {
                let task = load_and_join(Arc::clone(&pool), set.place);
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
        let (_root, sets) = data(11);
        std::fs::remove_file(&sets[2].place.path).expect("removed");
        let workers = Workers::start(2).expect("started");
        let error = workers.run(&sets, 5).expect_err("missing");
        assert!(matches!(error, CatalogError::Read { .. }));
    }
}
