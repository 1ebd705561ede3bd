//! The collector's side of a ring of stacks.

use std::collections::VecDeque;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use heapdrome_trace::TraceError;
use heapdrome_witness::ring::PREFIX;
use heapdrome_witness::stack_ring::{self, BYTES, HEADER_BYTES, Header, StackRing};

use crate::pace::Fullness;
use crate::shared::Shared;

/// Time after which an incomplete copy, and all copies reserved after it, are skipped. Its thread
/// will probably never complete it, for example after a `longjmp` out of a signal handler.
const HOLE: Duration = Duration::from_secs(1);

/// Size of a word of the stack in bytes.
pub(crate) const WORD: u64 = 8;

/// Registers of the caller of an allocation function, and the copied words of its stack.
#[derive(Clone, Copy)]
pub(crate) struct Snapshot<'a> {
    pub return_address: u64,
    pub stack_pointer: u64,
    pub frame_pointer: u64,
    words: &'a [AtomicU64],
}

impl Snapshot<'_> {
    /// Returns a snapshot without any copied word of the stack.
    #[cfg(test)]
    pub(crate) fn without_stack(return_address: u64) -> Self {
        Self {
            return_address,
            stack_pointer: 0,
            frame_pointer: 0,
            words: &[],
        }
    }

    /// Returns the word at an address; `None` if it was not copied.
    pub(crate) fn read(&self, address: u64) -> Option<u64> {
        let offset = address.checked_sub(self.stack_pointer)?;
        let word = self.words.get((offset / WORD) as usize)?;
        // Relaxed: the seal, which publishes the words, was read with acquire.
        (offset % WORD == 0).then(|| word.load(Ordering::Relaxed))
    }
}

/// Ring of stacks of a thread, if the thread has one, and the unwound stacks that are not yet
/// assigned to calls.
pub(crate) struct Snapshots {
    ring: Option<Shared<StackRing>>,
    path: PathBuf,
    /// Whether the ring's file may exist and must be opened.
    is_expected: bool,
    /// Position of the next copy in the ring.
    next: u64,
    hole: Option<Instant>,
    /// Number of bytes that the last drain read.
    drained: u64,
    /// Positions of the copies of unwound stacks that no entry has announced yet, with the numbers
    /// of the stacks, the earliest first.
    unwound: VecDeque<(u64, u32)>,
    /// Addresses of the blocks of announced calls that have not been read yet, with the numbers of
    /// their stacks.
    waiting: Vec<(u64, u32)>,
}

/// Maximum number of announced stacks that wait for their calls. More than one waits if signal
/// handlers interrupt calls of the thread.
const NESTED: usize = 8;

impl Snapshots {
    /// Creates the value for the thread whose ring of entries is the file `ring`.
    pub(crate) fn of(ring: &Path) -> Self {
        let name = ring.file_name().unwrap_or_default().to_string_lossy();
        let name = name.replacen(PREFIX, stack_ring::PREFIX, 1);
        Self {
            ring: None,
            path: ring.with_file_name(name),
            is_expected: false,
            next: 0,
            hole: None,
            drained: 0,
            unwound: VecDeque::new(),
            waiting: Vec::new(),
        }
    }

    /// Records that the thread has written entries, so its ring of stacks may exist by now.
    pub(crate) fn expect(&mut self) {
        self.is_expected = self.ring.is_none();
    }

    /// Calls `unwind` for each complete copy, and keeps the stack numbers that it returns. Returns
    /// a lower bound of the number of skipped copies.
    pub(crate) fn drain(
        &mut self,
        mut unwind: impl FnMut(Snapshot<'_>) -> Result<u32, TraceError>,
    ) -> Result<u64, TraceError> {
        if std::mem::take(&mut self.is_expected) {
            let file = File::options().read(true).write(true).open(&self.path);
            self.ring = file.and_then(|file| Shared::map(&file)).ok();
        }
        let Some(ring) = &self.ring else { return Ok(0) };
        let first = self.next;
        // Read at most one lap, because the thread continues to write.
        while self.next < first + BYTES {
            let header = ring.header(self.next);
            // Acquire pairs with the writer's release of the seal, so the whole copy is visible.
            let seal = header.seal.load(Ordering::Acquire);
            if seal == stack_ring::skip(self.next) {
                self.next = (self.next / BYTES + 1) * BYTES;
            } else if seal == stack_ring::seal(self.next) {
                let stack = unwind(snapshot(ring, self.next, header))?;
                self.unwound.push_back((self.next, stack));
                // Round to a whole number of headers, at least one, because the program may have
                // overwritten this value.
                let room = header
                    .room
                    .load(Ordering::Relaxed)
                    .clamp(HEADER_BYTES, BYTES);
                self.next += room / HEADER_BYTES * HEADER_BYTES;
            } else {
                break;
            }
            // Release pairs with the writer's acquire: nothing is overwritten before it was read.
            ring.taken.0.store(self.next, Ordering::Release);
        }
        self.drained = self.next - first;
        // A whole number of headers, and at most one lap, because the program may have overwritten
        // this value.
        let reserved = ring.reserved.0.load(Ordering::Relaxed).min(first + BYTES);
        let reserved = reserved / HEADER_BYTES * HEADER_BYTES;
        if self.next != first || self.next >= reserved {
            self.hole = None;
        } else if self.hole.get_or_insert_with(Instant::now).elapsed() > HOLE {
            self.next = reserved;
            ring.taken.0.store(reserved, Ordering::Release);
            self.hole = None;
            return Ok(1);
        }
        Ok(0)
    }

    /// Returns the fullness of the ring at its latest drain.
    pub(crate) fn fullness(&self) -> Fullness {
        Fullness::of(self.drained, BYTES)
    }

    /// Assigns the stack whose copy is at `place` to the call that returns the block at `address`.
    pub(crate) fn announce(&mut self, place: u64, address: u64) {
        while let Some(&(first, stack)) = self.unwound.front()
            && first <= place
        {
            self.unwound.pop_front();
            if first == place {
                self.waiting.push((address, stack));
            }
        }
        if self.waiting.len() > NESTED {
            self.waiting.remove(0);
        }
    }

    /// Removes and returns the stack of the call that returned the block at `address`, if one was
    /// announced.
    pub(crate) fn take(&mut self, address: u64) -> Option<u32> {
        let place = self.waiting.iter().rposition(|&(it, _)| it == address)?;
        Some(self.waiting.remove(place).1)
    }
}

fn snapshot<'a>(ring: &'a StackRing, place: u64, header: &Header) -> Snapshot<'a> {
    let number = |word: &AtomicU64| word.load(Ordering::Relaxed);
    let first = ((place % BYTES + HEADER_BYTES) / WORD) as usize;
    let length = (number(&header.length) / WORD) as usize;
    Snapshot {
        return_address: number(&header.return_address),
        stack_pointer: number(&header.stack_pointer),
        frame_pointer: number(&header.frame_pointer),
        words: ring
            .words
            .get(first..first.saturating_add(length))
            .unwrap_or(&[]),
    }
}

impl Drop for Snapshots {
    fn drop(&mut self) {
        if self.ring.is_some() {
            // Remove the file now: its memory would otherwise stay occupied until the recording's
            // end, when the folder is removed.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_as_full_as_its_copies_are_long() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut snapshots = Snapshots::of(&folder.path().join(format!("{PREFIX}1")));
        let mut options = File::options();
        let file = options.read(true).write(true).create_new(true);
        let file = file.open(&snapshots.path).expect("a new file");
        file.set_len(size_of::<StackRing>() as u64).expect("room");
        let ring = Shared::<StackRing>::map(&file).expect("mapped");
        let header = ring.header(0);
        header.room.store(BYTES / 2, Ordering::Relaxed);
        header.seal.store(stack_ring::seal(0), Ordering::Release);
        snapshots.expect();
        let mut halves = [Fullness::of(1, 2), Fullness::of(0, 2)].into_iter();
        for _ in 0..2 {
            snapshots.drain(|_| Ok(0)).expect("no trace is written");
            assert_eq!(Some(snapshots.fullness()), halves.next());
        }
    }

    #[test]
    fn an_invalid_reservation_moves_by_whole_headers_and_at_most_one_lap() {
        let folder = tempfile::tempdir().expect("a folder");
        for (reserved, expected) in [(HEADER_BYTES + 1, HEADER_BYTES), (u64::MAX, BYTES)] {
            let mut snapshots = Snapshots::of(&folder.path().join(format!("{PREFIX}{reserved}")));
            let mut options = File::options();
            let file = options.read(true).write(true).create_new(true);
            let file = file.open(&snapshots.path).expect("a new file");
            file.set_len(size_of::<StackRing>() as u64).expect("room");
            let ring = Shared::<StackRing>::map(&file).expect("mapped");
            ring.reserved.0.store(reserved, Ordering::Relaxed);
            snapshots.expect();
            let mut drain = || snapshots.drain(|_| Ok(0)).expect("no trace is written");
            assert_eq!(drain(), 0);
            std::thread::sleep(HOLE + Duration::from_millis(1));
            assert_eq!(drain(), 1);
            assert_eq!(ring.taken.0.load(Ordering::Relaxed), expected);
        }
    }
}
