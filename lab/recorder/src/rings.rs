//! Collector's side of a ring: copies the entries that the thread wrote.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

use heapdrome_witness::ring::{ENTRIES, LAP_SHIFT, MAGIC, PREFIX, Ring, lap};

use crate::backlog::{Backlog, Batch};
use crate::entries::Raw;
use crate::shared::Shared;

/// Time after which a reserved entry that is still unwritten is skipped. Its thread will probably
/// never write it, for example after a `longjmp` out of a signal handler.
const HOLE: Duration = Duration::from_secs(1);

/// Number of entries, from an unwritten one on, that are searched for a written one.
const LOOKAHEAD: u64 = 64;

/// The folder in which processes make their rings.
pub(crate) struct RingFolder {
    path: PathBuf,
    /// Paths of the rings that have been opened.
    known: BTreeSet<PathBuf>,
    /// Number of rings that were announced when the folder was last read.
    announced: u32,
}

impl RingFolder {
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            known: BTreeSet::new(),
            announced: 0,
        }
    }

    /// Opens the new rings, parents before their children. `announced` is the number of rings that
    /// all processes have created.
    pub(crate) fn fresh(&mut self, announced: u32) -> Vec<Source> {
        if announced == self.announced {
            return Vec::new();
        }
        self.announced = announced;
        let mut fresh = Vec::new();
        // A folder that cannot be read now is read again when the next ring is announced.
        let entries = std::fs::read_dir(&self.path).into_iter().flatten();
        for path in entries.flatten().map(|entry| entry.path()) {
            let name = path.file_name().and_then(|name| name.to_str());
            if name.is_some_and(|name| name.starts_with(PREFIX))
                && !self.known.contains(&path)
                && let Some(source) = Source::open(&path)
            {
                self.known.insert(path);
                fresh.push(source);
            }
        }
        fresh.sort_by_key(|source| source.ring().image);
        fresh
    }
}

/// A ring of a process that is recorded.
pub(crate) struct Source {
    ring: Shared<Ring>,
    path: PathBuf,
    /// Index of the next entry to read.
    next: u64,
    /// Time since which the next entry is reserved but unwritten, although a later entry has been
    /// written.
    hole: Option<Instant>,
}

impl Source {
    /// Opens a ring. Returns `None` if its process has not completed the ring, or ended before it
    /// did.
    pub(crate) fn open(path: &Path) -> Option<Self> {
        let file = File::options().read(true).write(true).open(path).ok()?;
        let ring = Shared::<Ring>::map(&file).ok()?;
        if ring.magic.load(Ordering::Relaxed) != MAGIC {
            return None;
        }
        // Acquire: pairs with the release of the magic, so all other fields are visible.
        fence(Ordering::Acquire);
        Some(Self {
            ring,
            path: path.to_owned(),
            next: 0,
            hole: None,
        })
    }

    pub(crate) fn ring(&self) -> &Ring {
        &self.ring
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of the object that serves malloc.
    pub(crate) fn server(&self) -> String {
        text(&self.ring.server)
    }

    /// Returns the path of the executable.
    pub(crate) fn program(&self) -> String {
        text(&self.ring.program)
    }

    /// Copies the entries before the first unwritten one, at most one lap, and returns their
    /// number. Returns 1 if it only skipped an entry.
    pub(crate) fn drain(&mut self, backlog: &Backlog, mut deliver: impl FnMut(Batch)) -> u64 {
        let first = self.next;
        let end = self.reserved().min(first + ENTRIES);
        while self.next < end {
            let mut batch = backlog.batch((end - self.next) as usize);
            while batch.has_room()
                && self.next < end
                && let Some(entry) = self.read(self.next)
            {
                batch.push(entry);
                self.next += 1;
            }
            if batch.is_empty() {
                break;
            }
            self.give_back();
            deliver(batch);
        }
        if self.next != first {
            self.hole = None;
        } else if self.is_at_hole() && self.hole.get_or_insert_with(Instant::now).elapsed() > HOLE {
            self.next += 1;
            self.give_back();
        }
        self.next - first
    }

    /// Copies the remaining entries of a thread that has ended or is no longer recorded, except
    /// incomplete ones.
    pub(crate) fn drain_ended(&mut self, backlog: &Backlog, mut deliver: impl FnMut(Batch)) {
        let end = self.reserved();
        while self.next < end {
            let mut batch = backlog.batch((end - self.next) as usize);
            while batch.has_room() && self.next < end {
                if let Some(entry) = self.read(self.next) {
                    batch.push(entry);
                }
                self.next += 1;
            }
            deliver(batch);
        }
    }

    fn reserved(&self) -> u64 {
        // Relaxed: an entry is read only once its own tag says that it is complete.
        self.ring.reserved.0.load(Ordering::Relaxed)
    }

    fn read(&self, index: u64) -> Option<Raw> {
        let entry = &self.ring.entries[(index % ENTRIES) as usize];
        // Acquire pairs with the writer's release of the tag, so the entry's other word is visible.
        let tag = entry.tag.load(Ordering::Acquire);
        (tag >> LAP_SHIFT == lap(index)).then(|| Raw {
            detail: entry.detail.load(Ordering::Relaxed),
            tag,
        })
    }

    /// Lets the thread reuse the entries that were read.
    fn give_back(&self) {
        // Release pairs with the writer's acquire: nothing is overwritten before it was read.
        self.ring.taken.0.store(self.next, Ordering::Release);
    }

    fn is_at_hole(&self) -> bool {
        (1..LOOKAHEAD).any(|ahead| self.read(self.next + ahead).is_some())
    }
}

fn text(bytes: &[u8]) -> String {
    let length = bytes.iter().position(|&byte| byte == 0);
    String::from_utf8_lossy(&bytes[..length.unwrap_or(bytes.len())]).into_owned()
}

impl Drop for Source {
    fn drop(&mut self) {
        // The thread must not wait for a reader that no longer reads.
        self.ring.abandoned.store(1, Ordering::Relaxed);
        // Remove the file now: its memory would otherwise stay occupied until the recording's end,
        // when the folder is removed.
        let _ = std::fs::remove_file(&self.path);
    }
}
