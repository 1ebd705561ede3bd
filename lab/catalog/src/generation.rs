//! Writes a data folder: draws the data sets, counts what they request, and puts all in place at
//! once.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use heapdrome_record::Bytes;

use crate::count::Count;
use crate::error::CatalogError;
use crate::file::{Identity, Writer};
use crate::generate::Generator;
use crate::join::{Tally, tally_of_details};
use crate::manifest::{self, Manifest, SetHeader};
use crate::settings::{Settings, expected_peak, with_margin};
use crate::staging::{Staging, set_file, set_path};
use crate::{interrupt, work};

/// What became of a request to write data.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// They were there already.
    Before(Manifest),
    /// They were written. The reason says why what they request is not known, if so.
    Now(Manifest, Option<String>),
}

/// Writes a data folder, unless it is there already.
///
/// # Errors
/// When something else is in the way, the memory would not do, the files cannot be written, or the
/// person asks for an end. Nothing is left behind then.
pub(crate) fn write(
    target: &Path,
    settings: &Settings,
    stop: &AtomicBool,
) -> Result<Written, CatalogError> {
    settings.check_limits()?;
    if let Some(manifest) = existing(target, settings)? {
        return Ok(Written::Before(manifest));
    }
    let threads = work::threads(settings.n as usize, peak_of_one(settings), "gen-data")?;
    let staging = Staging::beside(target)?;
    let sets = write_sets(staging.path(), settings, threads, stop)?;
    let mut manifest = Manifest {
        size: settings.size,
        seed: settings.seed,
        sets,
    };
    write_header(staging.path(), &manifest)?;
    let unknown = match count(staging.path(), &mut manifest, stop)? {
        Ok(()) => {
            write_header(staging.path(), &manifest)?;
            None
        }
        Err(reason) => Some(reason),
    };
    match staging.put_in_place(target) {
        Ok(()) => Ok(Written::Now(manifest, unknown)),
        // Another run may have put the same data there meanwhile.
        Err(error) => match existing(target, settings) {
            Ok(Some(manifest)) => Ok(Written::Before(manifest)),
            _ => Err(error),
        },
    }
}

/// The data that are already there, if they are those asked for; `None` if there is room for them.
fn existing(target: &Path, settings: &Settings) -> Result<Option<Manifest>, CatalogError> {
    let path = target.to_owned();
    let Ok(found) = std::fs::symlink_metadata(target) else {
        return Ok(None);
    };
    let empty = || std::fs::read_dir(target).is_ok_and(|mut entries| entries.next().is_none());
    if found.is_dir() && empty() {
        return Ok(None);
    }
    let manifest = match manifest::open(target) {
        Err(CatalogError::NoData { .. }) => return Err(CatalogError::InTheWay { path }),
        other => other?,
    };
    let enough = manifest.sets.len() >= settings.n as usize;
    if enough && manifest.size == settings.size && manifest.seed == settings.seed {
        return Ok(Some(manifest));
    }
    let (n, size, seed) = (manifest.sets.len(), manifest.size, manifest.seed);
    Err(CatalogError::OtherData {
        path,
        found: format!("n={n} size={size} seed={seed}"),
    })
}

/// What drawing one data set may take: its blocks, compressed, are gathered before they are
/// written, and come to about an eighth of what they become; the buffer may be twice as large.
fn peak_of_one(settings: &Settings) -> Bytes {
    Bytes(with_margin(expected_peak(&Settings { n: 1, ..*settings })).0 / 3)
}

/// Draws and writes all data sets, some at a time.
fn write_sets(
    folder: &Path,
    settings: &Settings,
    threads: usize,
    stop: &AtomicBool,
) -> Result<Vec<SetHeader>, CatalogError> {
    let next = AtomicU32::new(0);
    // Raised by the first thread that fails, so that the others do not work for nothing.
    let failed = AtomicBool::new(false);
    // Relaxed, here and below: the counter only deals out numbers, and the flags stand for
    // themselves; results go through the channel.
    let ended = || stop.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed);
    let take = || {
        let set = next.fetch_add(1, Ordering::Relaxed);
        Some(set).filter(|set| *set < settings.n && !ended())
    };
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let sender = sender.clone();
            let (take, ended, failed) = (&take, &ended, &failed);
            scope.spawn(move || {
                while let Some(set) = take() {
                    let written = write_set(folder, settings, set, ended);
                    failed.fetch_or(written.is_err(), Ordering::Relaxed);
                    // The receiver lives until all threads have ended.
                    let _ = sender.send((set, written));
                }
            });
        }
    });
    drop(sender);
    let mut written: Vec<_> = receiver.into_iter().collect();
    written.sort_unstable_by_key(|(set, _)| *set);
    let mut sets = Vec::new();
    for (_, result) in written {
        match result {
            Ok(set) => sets.push(set),
            // Either everybody was stopped, or this one by another's error, which is told then.
            Err(CatalogError::Interrupted) => {}
            Err(error) => return Err(error),
        }
    }
    match sets.len() == settings.n as usize {
        true => Ok(sets),
        false => Err(CatalogError::Interrupted),
    }
}

/// Draws and writes one data set.
fn write_set(
    folder: &Path,
    settings: &Settings,
    set: u32,
    ended: &dyn Fn() -> bool,
) -> Result<SetHeader, CatalogError> {
    let path = set_path(folder, set);
    let identity = Identity {
        seed: settings.seed,
        size: settings.size,
        set,
    };
    let (mut generator, index) = Generator::start(settings.seed, settings.size, set);
    let unwritable = |error: postcard::Error| write_error(&path, std::io::Error::other(error));
    let mut writer = Writer::new(identity);
    writer.push(&index).map_err(unwritable)?;
    let entries = index.entries.len() as u64;
    let mut tally = Tally::default();
    while let Some(block) = generator.block() {
        if ended() {
            return Err(CatalogError::Interrupted);
        }
        writer.push(&block).map_err(unwritable)?;
        // From what was drawn, not from what was written: reading it back must come to the same.
        tally.add(tally_of_details(&index, block));
    }
    let file_bytes = writer
        .write(&path)
        .map_err(|source| write_error(&path, source))?;
    Ok(SetHeader {
        file: set_file(set),
        file_bytes,
        data_bytes: writer.data_bytes(),
        entries,
        records: tally.records,
        checksum: tally.checksum,
        requested_bytes: None,
    })
}

fn write_error(path: &Path, source: std::io::Error) -> CatalogError {
    CatalogError::Write {
        path: path.to_owned(),
        source,
    }
}

fn write_header(folder: &Path, manifest: &Manifest) -> Result<(), CatalogError> {
    let path = folder.join(manifest::FILE);
    let write = || {
        let text = manifest::text(manifest)?;
        let mut file = std::fs::File::create(&path)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    };
    write().map_err(|source| write_error(&path, source))
}

/// Fills in what each data set requests, as the counting binary says; or returns why that is not
/// known.
fn count(
    folder: &Path,
    manifest: &mut Manifest,
    stop: &AtomicBool,
) -> Result<Result<(), String>, CatalogError> {
    let text = match run_counter(folder, stop)? {
        Ok(text) => text,
        Err(reason) => return Ok(Err(reason)),
    };
    let counts: Result<Vec<Count>, _> = text.lines().map(serde_json::from_str).collect();
    let Ok(counts) = counts else {
        return Ok(Err("the counting program printed something else".to_owned()));
    };
    if counts.len() != manifest.sets.len() {
        return Ok(Err("the counting program missed data sets".to_owned()));
    }
    for (set, count) in manifest.sets.iter_mut().zip(counts) {
        if (count.records, count.checksum) != (set.records, set.checksum) {
            return Err(CatalogError::Corrupted {
                what: format!("{} is not read back as it was written", set.file),
            });
        }
        set.requested_bytes = Some(count.requested_bytes);
    }
    Ok(Ok(()))
}

/// Runs the binary beside this one whose name ends in `-count`.
fn run_counter(folder: &Path, stop: &AtomicBool) -> Result<Result<String, String>, CatalogError> {
    let machine = |what| move |source| CatalogError::Machine { what, source };
    let own = std::env::current_exe().map_err(machine("find this program's own file"))?;
    let mut name = own.file_name().unwrap_or_default().to_owned();
    name.push("-count");
    let program = own.with_file_name(name);
    let mut output = tempfile::tempfile().map_err(machine("make a temporary file"))?;
    let stdout = output
        .try_clone()
        .map_err(machine("use a temporary file"))?;
    let mut child = match Command::new(&program)
        .arg(folder)
        .stdin(Stdio::null())
        .stdout(stdout)
        .spawn()
    {
        Ok(child) => child,
        Err(error) => return Ok(Err(format!("{} does not run: {error}", program.display()))),
    };
    let status = loop {
        if let Some(status) = child.try_wait().map_err(machine("wait for a program"))? {
            break status;
        }
        if interrupt::raised(stop) {
            // It may have ended by itself; both is well.
            let _ = child.kill();
            let _ = child.wait();
            return Err(CatalogError::Interrupted);
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    if interrupt::raised(stop) {
        return Err(CatalogError::Interrupted);
    }
    if !status.success() {
        return Ok(Err(format!("{} ended with {status}", program.display())));
    }
    let mut text = String::new();
    std::io::Seek::rewind(&mut output)
        .and_then(|()| std::io::Read::read_to_string(&mut output, &mut text))
        .map_err(machine("read a temporary file"))?;
    Ok(Ok(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::data_is_complete;

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
        let Written::Now(manifest, unknown) = first else {
            panic!("there was nothing before");
        };
        // No counting binary lies beside this test.
        assert!(unknown.is_some() && manifest.sets[0].requested_bytes.is_none());
        assert!(data_is_complete(&folder, &TINY));
        let fewer = Settings { n: 1, ..TINY };
        assert_eq!(
            written(&folder, &fewer).expect("kept"),
            Written::Before(manifest)
        );
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
        let refused = written(&folder, &TINY).expect_err("damaged data");
        assert!(
            refused
                .to_string()
                .contains("set-001.bin is damaged: it is missing")
        );
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
        assert!(matches!(written(&folder, &TINY), Ok(Written::Now(..))));
        let file = root.path().join("file");
        std::fs::write(&file, "thesis").expect("written");
        let refused = written(&file, &TINY).expect_err("a file");
        assert!(matches!(refused, CatalogError::InTheWay { .. }));
        assert_eq!(std::fs::read(&file).expect("readable"), b"thesis");
    }
}
