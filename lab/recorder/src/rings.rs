//! The collector's side of a ring.

use std::collections::VecDeque;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

use heapdrome_witness::ring::{ADDRESS_BITS, ENTRIES, Event, LAP_SHIFT, MAGIC, Ring, lap};

use crate::shared::Shared;
use crate::snapshots::Snapshots;

/// How long an entry may be reserved and not written before it is skipped: the thread has left it
/// for good, as by `longjmp` out of a signal handler.
const HOLE: Duration = Duration::from_secs(1);

/// How many entries behind a hole are looked at.
const LOOKAHEAD: u64 = 64;

/// A ring, and what was read of it but is not in order yet.
pub(crate) struct Source {
    ring: Shared<Ring>,
    path: PathBuf,
    /// Index of the next entry to read.
    next: u64,
    /// Since when the next entry is a hole.
    hole: Option<Instant>,
    pub events: VecDeque<Event>,
    /// The thread of the next event: its number in the trace; `None` until it is known.
    pub thread: Option<u32>,
    /// The alignment for the next event.
    pub alignment: u64,
    /// Blocks that calls of realloc have freed and not replaced yet, the latest last.
    pub resizing: Vec<Resizing>,
    /// The stacks of its calls.
    pub snapshots: Snapshots,
}

/// A call of realloc that has begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resizing {
    pub address: u64,
    /// The block; `None` if it is not known.
    pub block: Option<crate::addresses::Block>,
}

impl Source {
    /// Opens a ring; `None` if it is not complete, and never will be if its process has ended.
    pub(crate) fn open(path: &Path) -> Option<Self> {
        let file = File::options().read(true).write(true).open(path).ok()?;
        let ring = Shared::<Ring>::map(&file).ok()?;
        if ring.magic.load(Ordering::Relaxed) != MAGIC {
            return None;
        }
        // Pairs with the release of the magic: all other fields were written before.
        fence(Ordering::Acquire);
        Some(Self {
            ring,
            path: path.to_owned(),
            next: 0,
            hole: None,
            events: VecDeque::new(),
            thread: None,
            alignment: 0,
            resizing: Vec::new(),
            snapshots: Snapshots::of(path),
        })
    }

    pub(crate) fn ring(&self) -> &Ring {
        &self.ring
    }

    /// The ring with its stacks.
    pub(crate) fn stacks(&mut self) -> (&Ring, &mut Snapshots) {
        (&self.ring, &mut self.snapshots)
    }

    /// The path of the object that serves malloc.
    pub(crate) fn server(&self) -> String {
        text(&self.ring.server)
    }

    /// The path of the executable.
    pub(crate) fn program(&self) -> String {
        text(&self.ring.program)
    }

    /// Reads what is there, and returns how many entries.
    pub(crate) fn drain(&mut self) -> u64 {
        let first = self.next;
        while self.next < first + ENTRIES
            && let Some(event) = self.read(self.next)
        {
            self.events.push_back(event);
            self.next += 1;
        }
        if self.next != first {
            self.hole = None;
            self.give_back();
        } else if self.is_at_hole() && self.hole.get_or_insert_with(Instant::now).elapsed() > HOLE {
            self.next += 1;
            self.give_back();
        }
        self.next - first
    }

    /// Reads all that a thread that has ended left, without what it had only begun to write.
    pub(crate) fn drain_ended(&mut self) {
        let end = self.ring.reserved.0.load(Ordering::Relaxed);
        while self.next < end {
            self.events.extend(self.read(self.next));
            self.next += 1;
        }
    }

    fn read(&self, index: u64) -> Option<Event> {
        let entry = &self.ring.entries[(index % ENTRIES) as usize];
        // Acquire pairs with the writer's release: the other words are there.
        let tag = entry.tag.load(Ordering::Acquire);
        (tag >> LAP_SHIFT == lap(index)).then(|| Event {
            stamp: entry.stamp.load(Ordering::Relaxed),
            size: entry.size.load(Ordering::Relaxed),
            address: tag & ((1 << ADDRESS_BITS) - 1),
            code: (tag >> ADDRESS_BITS) as u8,
        })
    }

    /// Gives the entries that were read back to the thread.
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
        // A thread that still writes must not wait for a reader.
        self.ring.abandoned.store(1, Ordering::Relaxed);
        // The recorder's folder goes with the recording; until then a ring takes memory.
        let _ = std::fs::remove_file(&self.path);
    }
}
