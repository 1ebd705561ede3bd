//! Writes a data folder: generates the data sets, and counts the bytes that each set requests.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use heapdrome_schema::Bytes;
use heapdrome_system::interrupt;
use smol::Executor;
use smol::future::{block_on, or, yield_now};

use crate::allocator::Allocator;
use crate::data::{self, UNFINISHED, set_path};
use crate::error::CatalogError;
use crate::file::{Facts, Identity, Place, Set, Writer};
use crate::generate::Generator;
use crate::join::{Tally, tally_of_details};
use crate::load::load_and_join;
use crate::settings::{Settings, expected_peak, with_margin};
use crate::work;

/// Outcome of a request to write data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// The data already existed, with this number of data sets.
    Before(usize),
    /// The data were written.
    Now,
}

/// Writes a data folder, unless it already holds the requested data.
///
/// # Errors
/// Returns an error if a value is out of range, the folder holds anything else, there is too little
/// memory, the files cannot be written or do not read back as written, or the user interrupts. On
/// an error, removes everything that it wrote.
pub(crate) fn write(
    target: &Path,
    settings: &Settings,
    stop: &AtomicBool,
) -> Result<Written, CatalogError> {
    settings.check_limits()?;
    if let Some(sets) = existing(target, settings)? {
        return Ok(Written::Before(sets.len()));
    }
    let threads = work::threads(settings.n as usize, peak_of_one(settings), "gen-data")?;
    claim(target)?;
    let unfinished = target.join(UNFINISHED);
    let written = write_sets(target, settings, threads, stop).and_then(|()| {
        std::fs::remove_file(&unfinished).map_err(|source| write_error(&unfinished, source))
    });
    if written.is_err() {
        // The error of the write is returned. An error of the removal is ignored.
        let _ = std::fs::remove_dir_all(target);
    }
    written.map(|()| Written::Now)
}

/// Claims the folder for this process: creates the folder if it does not exist, and in it the file
/// [`UNFINISHED`]. Only one process can create that file.
fn claim(target: &Path) -> Result<(), CatalogError> {
    match std::fs::create_dir(target) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            return Err(write_error(target, error));
        }
        _ => {}
    }
    let unfinished = target.join(UNFINISHED);
    let made = std::fs::File::create_new(&unfinished);
    let alone = made.is_ok() && std::fs::read_dir(target).is_ok_and(|all| all.count() == 1);
    if alone {
        return Ok(());
    }
    if made.is_ok() {
        // Another process has written files since `existing` looked at the folder, or the folder
        // cannot be read. So this process withdraws its claim.
        let _ = std::fs::remove_file(&unfinished);
    }
    Err(CatalogError::InTheWay {
        path: target.to_owned(),
    })
}

/// Returns the data that the folder already holds, if they are the requested data. Returns `None`
/// if the folder does not exist or is empty, and an error if it holds anything else.
fn existing(target: &Path, settings: &Settings) -> Result<Option<Vec<Set>>, CatalogError> {
    let path = target.to_owned();
    let Ok(found) = std::fs::symlink_metadata(target) else {
        return Ok(None);
    };
    let empty = || std::fs::read_dir(target).is_ok_and(|mut entries| entries.next().is_none());
    if found.is_dir() && empty() {
        return Ok(None);
    }
    let sets = match data::open(target) {
        Err(CatalogError::NoData { .. }) => return Err(CatalogError::InTheWay { path }),
        other => other?,
    };
    if data::serve(&sets, settings) {
        return Ok(Some(sets));
    }
    let Identity { seed, size, .. } = sets[0].place.identity;
    Err(CatalogError::OtherData {
        path,
        found: format!("n={} size={size} seed={seed}", sets.len()),
    })
}

/// Estimates the peak memory of generating one data set, with the margin for other allocators. The
/// set is loaded and joined after it is written.
fn peak_of_one(settings: &Settings) -> Bytes {
    with_margin(expected_peak(&Settings { n: 1, ..*settings }))
}

/// Generates and writes all data sets, and counts their bytes, in parallel threads.
fn write_sets(
    folder: &Path,
    settings: &Settings,
    threads: usize,
    stop: &AtomicBool,
) -> Result<(), CatalogError> {
    let next = AtomicU32::new(0);
    // The first thread that fails sets this flag, so that the others stop early.
    let failed = AtomicBool::new(false);
    // Relaxed: the counter only assigns numbers, and no data depend on the flags.
    let ended = || interrupt::raised(stop) || failed.load(Ordering::Relaxed);
    let work = || {
        loop {
            let set = next.fetch_add(1, Ordering::Relaxed);
            if set >= settings.n {
                return Ok(());
            }
            let written = write_set(folder, settings, set, &ended);
            if written.is_err() {
                failed.store(true, Ordering::Relaxed);
                return written;
            }
        }
    };
    let results: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, _>| {
            let ended = worker.join();
            ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        workers.into_iter().map(join).collect()
    });
    // A thread that stops because another one failed reports an interruption, so other errors come
    // first.
    let (stopped, errors): (Vec<_>, Vec<_>) = results
        .into_iter()
        .filter_map(Result::err)
        .partition(|error| matches!(error, CatalogError::Interrupted));
    errors.into_iter().chain(stopped).next().map_or(Ok(()), Err)
}

/// Generates and writes one data set, and counts the bytes that it requests.
fn write_set(
    folder: &Path,
    settings: &Settings,
    set: u32,
    ended: &dyn Fn() -> bool,
) -> Result<(), CatalogError> {
    let place = Place {
        path: set_path(folder, set as usize),
        identity: Identity {
            seed: settings.seed,
            size: settings.size,
            set,
        },
    };
    let path = &place.path;
    let failed = |source| write_error(path, source);
    let (writer, mut facts) = draw(&place, ended)?;
    writer.write(path, &facts).map_err(failed)?;
    let (requested, found) = requested(&place, ended)?;
    if found != facts.tally {
        return Err(CatalogError::Corrupted {
            what: format!(
                "{} reads back different from what was written",
                path.display()
            ),
        });
    }
    facts.requested_bytes = requested;
    writer.correct(path, &facts).map_err(failed)
}

/// Generates the blocks of a data set.
fn draw(place: &Place, ended: &dyn Fn() -> bool) -> Result<(Writer, Facts), CatalogError> {
    let Identity { seed, size, set } = place.identity;
    let (mut generator, index) = Generator::start(seed, size, set);
    let unwritable =
        |error: postcard::Error| write_error(&place.path, std::io::Error::other(error));
    let mut writer = Writer::new(place.identity);
    writer.push(&index).map_err(unwritable)?;
    let mut tally = Tally::default();
    while let Some(block) = generator.block() {
        if ended() {
            return Err(CatalogError::Interrupted);
        }
        writer.push(&block).map_err(unwritable)?;
        // The tally comes from the generated data, not from the file. `write_set` compares it with
        // the file.
        tally.add(tally_of_details(&index, block));
    }
    let facts = Facts {
        entries: index.entries.len() as u64,
        tally,
        requested_bytes: 0,
    };
    Ok((writer, facts))
}

/// Loads and joins a data set on this thread alone. Returns the bytes that the set has requested
/// and not freed, and its tally.
fn requested(place: &Place, ended: &dyn Fn() -> bool) -> Result<(u64, Tally), CatalogError> {
    let stopped = async {
        while !ended() {
            yield_now().await;
        }
        Err(CatalogError::Interrupted)
    };
    let before = Allocator::live();
    let joined = {
        let pool = Arc::new(Executor::new());
        let task = load_and_join(Arc::clone(&pool), place.clone());
        block_on(pool.run(or(task, stopped)))?
    };
    // Read the count after the executor is dropped, when only the data set is left.
    let live = Allocator::live() - before;
    Ok((live.max(0) as u64, joined.tally()))
}

fn write_error(path: &Path, source: std::io::Error) -> CatalogError {
    CatalogError::Write {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::data_is_complete;

    const TINY: Settings = Settings {
        n: 2,
        size: 2,
        parallel: 2,
        threads: 2,
        seed: 7,
    };

    fn written(folder: &Path, settings: &Settings) -> Result<Written, CatalogError> {
        write(folder, settings, &AtomicBool::new(false))
    }

    #[test]
    fn the_same_data_are_kept_and_other_data_are_not_overwritten() {
        let root = tempfile::tempdir().expect("a temporary folder");
        let folder = root.path().join("data");
        assert!(!data_is_complete(&folder, &TINY));
        let first = written(&folder, &TINY).expect("written");
        assert_eq!(first, Written::Now);
        let sets = data::open(&folder).expect("whole");
        assert!(sets.iter().all(|set| set.facts.requested_bytes > 0));
        assert!(data_is_complete(&folder, &TINY));
        let fewer = Settings { n: 1, ..TINY };
        assert_eq!(written(&folder, &fewer).expect("kept"), Written::Before(2));
        for other in [
            Settings { n: 3, ..TINY },
            Settings { size: 3, ..TINY },
            Settings { seed: 8, ..TINY },
        ] {
            assert!(!data_is_complete(&folder, &other));
            let refused = written(&folder, &other).expect_err("other data");
            assert!(matches!(refused, CatalogError::OtherData { .. }));
        }
        std::fs::remove_file(folder.join("set-001.bin")).expect("removed");
        assert!(!data_is_complete(&folder, &TINY));
        let refused = written(&folder, &TINY).expect_err("a set is missing");
        assert!(matches!(refused, CatalogError::OtherData { .. }));
        assert!(data_is_complete(&folder, &fewer));
        std::fs::write(folder.join(UNFINISHED), "").expect("written");
        assert!(!data_is_complete(&folder, &fewer));
        let refused = written(&folder, &TINY).expect_err("what a killed run left");
        assert!(refused.to_string().contains("its data are incomplete"));
    }

    #[test]
    fn an_interrupted_run_leaves_nothing() {
        let root = tempfile::tempdir().expect("a temporary folder");
        let stopped = write(&root.path().join("data"), &TINY, &AtomicBool::new(true));
        assert!(matches!(stopped, Err(CatalogError::Interrupted)));
        let left = std::fs::read_dir(root.path()).expect("readable").count();
        assert_eq!(left, 0);
    }

    #[test]
    fn an_empty_folder_is_room_and_anything_else_is_in_the_way() {
        let root = tempfile::tempdir().expect("a temporary folder");
        let folder = root.path().join("empty one");
        std::fs::create_dir(&folder).expect("made");
        assert!(matches!(written(&folder, &TINY), Ok(Written::Now)));
        let file = root.path().join("file");
        std::fs::write(&file, "thesis").expect("written");
        let refused = written(&file, &TINY).expect_err("a file");
        assert!(matches!(refused, CatalogError::InTheWay { .. }));
        assert_eq!(std::fs::read(&file).expect("readable"), b"thesis");
    }
}
