//! The ledger of the lab: the items that the lab makes outside its own files, such as swap areas
//! and control groups. The lab records each item on disk before it makes the item. If the lab is
//! killed, the ledger stays, and the next lab removes the items in it.
//!
//! Each process has its own file and locks it for its whole life. The kernel releases the lock when
//! the process dies for any reason, once a child that it was starting has called exec or died.
//! Lines are only appended.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use heapdrome_system::lock;
use serde::{Deserialize, Serialize};

use heapdrome_system::FileError;

use crate::item::Undone;
use crate::system::System;
use crate::{Error, Item};

const ENDING: &str = "ledger";

/// One line of a ledger.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Line {
    /// Identifier of the boot during which the ledger was begun.
    Boot(String),
    /// An item is about to be made; the number identifies it in later lines.
    Making(u64, Item),
    /// The item with this number was removed or not made, or another record covers it.
    Gone(u64),
}

/// This process's ledger.
#[derive(Debug)]
pub struct Ledger {
    path: PathBuf,
    file: Mutex<File>,
    next: AtomicU64,
    /// The system on which items are made.
    system: System,
}

/// The result of removing the items that killed labs have left.
#[derive(Debug, Default)]
pub struct Leftovers {
    /// Items that were removed.
    pub removed: Vec<Item>,
    /// Items that another program has replaced. The replacements were left unchanged.
    pub foreign: Vec<Item>,
    /// Items that could not be removed.
    pub failed: Vec<Error>,
    /// Number of ledgers that are still locked by a living lab, or by a child that a killed lab was
    /// starting. The items in them were left unchanged.
    pub living: usize,
}

impl Ledger {
    /// Removes the items that killed labs have left in `folder`, and begins a new ledger there.
    ///
    /// # Errors
    /// When the folder cannot be created or read, or no new ledger can be begun in it. An item that
    /// cannot be removed is not an error.
    pub fn open(folder: &Path) -> Result<(Arc<Self>, Leftovers), Error> {
        Self::open_on(&System::real(), folder)
    }

    /// Opens a ledger for items that are made on this system.
    pub(crate) fn open_on(system: &System, folder: &Path) -> Result<(Arc<Self>, Leftovers), Error> {
        let leftovers = remove_leftovers(system, folder)?;
        for attempt in 0..10 {
            let name = format!("{}-{attempt}.{ENDING}", unique_name());
            if let Some(ledger) = Self::begin(system, &folder.join(name))? {
                return Ok((Arc::new(ledger), leftovers));
            }
        }
        Err(Error::missing(
            format!("cannot begin a ledger in {}", folder.display()),
            "another heapdrome keeps removing it; try again",
        ))
    }

    /// Begins a ledger. Returns `None` if another lab found the file before this one locked it.
    fn begin(system: &System, path: &Path) -> Result<Option<Self>, Error> {
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(FileError::of("write", path))?;
        let locked = lock::try_exclusive(&file).map_err(FileError::of("lock", path))?;
        let same = |data: fs::Metadata| file.metadata().is_ok_and(|own| own.ino() == data.ino());
        if !locked || !fs::metadata(path).is_ok_and(same) {
            return Ok(None);
        }
        let ledger = Self {
            path: path.to_owned(),
            file: Mutex::new(file),
            next: AtomicU64::new(0),
            system: system.clone(),
        };
        ledger.write(&Line::Boot(boot()))?;
        Ok(Some(ledger))
    }

    /// Records an item that the caller is about to make. Dropping the returned value removes the
    /// item.
    ///
    /// # Errors
    /// When the ledger cannot be written. The caller must then not make the item.
    pub fn making(self: &Arc<Self>, item: Item) -> Result<Made, Error> {
        // Relaxed: the numbers only need to be unique.
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.write(&Line::Making(number, item.clone()))?;
        Ok(Made {
            ledger: Arc::clone(self),
            number,
            item,
            gone: false,
        })
    }

    /// Returns the system on which items are made.
    pub(crate) fn system(&self) -> &System {
        &self.system
    }

    fn write(&self, line: &Line) -> Result<(), Error> {
        let mut text = serde_json::to_vec(line)
            .map_err(|error| FileError::of("write", &self.path)(error.into()))?;
        text.push(b'\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(&text)
            .and_then(|()| file.sync_data())
            .map_err(FileError::of("write", &self.path))?;
        Ok(())
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        let text = fs::read_to_string(&self.path).unwrap_or_default();
        if standing(&text).is_empty() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// An item that is about to be made, or was made. Dropping this value removes the item.
#[derive(Debug)]
pub struct Made {
    ledger: Arc<Ledger>,
    number: u64,
    item: Item,
    gone: bool,
}

impl Made {
    /// Returns the item.
    #[must_use]
    pub fn item(&self) -> &Item {
        &self.item
    }

    /// Removes the item.
    ///
    /// # Errors
    /// When the item cannot be removed, or the ledger cannot be written. The next lab tries again.
    pub fn remove(mut self) -> Result<(), Error> {
        self.take_away()
    }

    /// Records that the item was not made, or that another record covers it. An item of that name
    /// is then not removed.
    pub(crate) fn forget(mut self) -> Result<(), Error> {
        self.gone = true;
        self.ledger.write(&Line::Gone(self.number))
    }

    fn take_away(&mut self) -> Result<(), Error> {
        if self.gone {
            return Ok(());
        }
        self.item.undo(self.ledger.system())?;
        self.gone = true;
        self.ledger.write(&Line::Gone(self.number))
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        // After a failure the item stays in the ledger, and the next lab tries again.
        let _ = self.take_away();
    }
}

/// Returns a name that no other process on this machine uses, and that is unlikely to be used
/// again.
pub(crate) fn unique_name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    // Relaxed: the numbers only need to be unique.
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{}-{}-{count}", std::process::id(), since.as_nanos())
}

/// Returns an identifier of this boot.
fn boot() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

/// Returns the items of a ledger that may still exist, the latest first. Ignores lines that cannot
/// be parsed, because the item of an incomplete last line was not made.
fn standing(text: &str) -> Vec<Item> {
    let (mut items, mut begun) = (BTreeMap::new(), None);
    for line in text
        .lines()
        .filter_map(|line| serde_json::from_str::<Line>(line).ok())
    {
        match line {
            Line::Boot(boot) => begun = Some(boot),
            Line::Making(number, item) => {
                items.insert(number, item);
            }
            Line::Gone(number) => {
                items.remove(&number);
            }
        }
    }
    let same_run = begun.is_some_and(|begun| begun == boot());
    let there = |item: &Item| same_run || !item.dies_with_the_system();
    items.into_values().rev().filter(there).collect()
}

fn remove_leftovers(system: &System, folder: &Path) -> Result<Leftovers, Error> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(folder).map_err(|source| {
        Error::missing(
            format!("cannot make {}: {source}", folder.display()),
            "set XDG_STATE_HOME to a folder that you may write to",
        )
    })?;
    let mut leftovers = Leftovers::default();
    let entries = fs::read_dir(folder).map_err(FileError::of("read", folder))?;
    let paths = entries.flatten().map(|entry| entry.path());
    for path in paths.filter(|path| path.extension().is_some_and(|end| end == ENDING)) {
        let Ok(file) = OpenOptions::new().read(true).append(true).open(&path) else {
            continue;
        };
        // A locked ledger belongs to a live lab, or to a killed lab whose child has not called exec
        // yet.
        if !lock::try_exclusive(&file).unwrap_or(false) {
            leftovers.living += 1;
            continue;
        }
        let failures = leftovers.failed.len();
        for item in standing(&fs::read_to_string(&path).unwrap_or_default()) {
            match item.undo(system) {
                Ok(Undone::Removed) => leftovers.removed.push(item),
                Ok(Undone::Foreign) => leftovers.foreign.push(item),
                Ok(Undone::Absent) => {}
                Err(error) => leftovers.failed.push(error),
            }
        }
        if leftovers.failed.len() == failures {
            let _ = fs::remove_file(&path);
        }
    }
    Ok(leftovers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(folder: &Path, name: &str) -> Item {
        Item::Group {
            folder: folder.join(format!("{}{name}", crate::item::PREFIX)),
        }
    }

    fn make(item: &Item) -> PathBuf {
        let Item::Group { folder } = item else {
            unreachable!("these tests make groups only");
        };
        fs::create_dir(folder).expect("made");
        folder.clone()
    }

    #[test]
    fn what_is_dropped_is_removed_and_so_is_the_ledger() {
        let home = tempfile::tempdir().expect("a temporary folder");
        let state = home.path().join("state of it");
        let (ledger, leftovers) = Ledger::open(&state).expect("opened");
        assert!(leftovers.removed.is_empty());
        let item = item(home.path(), "one");
        let made = ledger.making(item.clone()).expect("written");
        let folder = make(&item);
        drop(made);
        assert!(!folder.exists());
        drop(ledger);
        assert_eq!(fs::read_dir(&state).expect("read").count(), 0);
    }

    #[test]
    fn a_living_labs_things_are_left_alone_and_a_dead_ones_are_removed() {
        let home = tempfile::tempdir().expect("a temporary folder");
        let (first, _) = Ledger::open(home.path()).expect("opened");
        let item = item(home.path(), "two");
        let made = first.making(item.clone()).expect("written");
        let folder = make(&item);
        let (_, leftovers) = Ledger::open(home.path()).expect("opened");
        assert!(leftovers.removed.is_empty() && folder.exists());
        assert_eq!(leftovers.living, 1);
        // Simulates a kill: the lock is released without any cleanup.
        let file = || first.file.lock().expect("not poisoned");
        rustix::fs::flock(&*file(), rustix::fs::FlockOperation::Unlock).expect("unlocked");
        std::mem::forget((made, first));
        let (_, leftovers) = Ledger::open(home.path()).expect("opened");
        assert_eq!(leftovers.removed, [item]);
        assert!(!folder.exists());
    }

    #[test]
    fn half_a_line_and_another_run_of_the_system_speak_of_nothing() {
        let group = Line::Making(1, item(Path::new("/nowhere"), "x"));
        let file = Line::Making(
            2,
            Item::SwapFile {
                path: "/nowhere/x".into(),
            },
        );
        let text = |line: &Line| serde_json::to_string(line).expect("has a JSON form") + "\n";
        let before = text(&Line::Boot("another".into())) + &text(&group) + &text(&file);
        assert_eq!(standing(&before).len(), 1);
        let now = text(&Line::Boot(boot())) + &text(&group) + &text(&file);
        assert_eq!(standing(&now).len(), 2);
        assert_eq!(standing(&(now.clone() + &text(&Line::Gone(2)))).len(), 1);
        assert_eq!(standing(&now[..now.len() - 5]).len(), 1);
    }
}
