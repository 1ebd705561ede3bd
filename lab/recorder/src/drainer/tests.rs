use std::fs::File;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::mpsc::{self, Receiver};

use heapdrome_witness::ring::{CONTROL, Control, ENTRIES, Event, MAGIC, PREFIX, Ring, code};

use super::*;
use crate::backlog::Batch;
use crate::shared::Shared;
use crate::streams::Stream;

const RINGS: usize = 3;

/// Number of large batches in a lap.
const BATCHES: usize = 8;

fn file(path: &Path, bytes: usize) -> File {
    let mut options = File::options();
    let file = options.read(true).write(true).create_new(true).open(path);
    let file = file.expect("a new file");
    file.set_len(bytes as u64).expect("room");
    file
}

/// Writing side of a ring.
struct Thread(Shared<Ring>);

impl Thread {
    fn start(folder: &Path, number: usize) -> Self {
        let path = folder.join(format!("{PREFIX}{number}"));
        let file = file(&path, size_of::<Ring>());
        let image = 1_u64.to_ne_bytes();
        file.write_all_at(&image, offset_of!(Ring, image) as u64)
            .expect("written");
        file.write_all_at(&MAGIC.to_ne_bytes(), offset_of!(Ring, magic) as u64)
            .expect("written");
        Self(Shared::map(&file).expect("mapped"))
    }

    /// Writes entries of malloc calls until the ring is full.
    fn fill(&self) {
        let ring = &self.0;
        while ring.reserved.0.load(Ordering::Relaxed) < ring.limit() {
            let index = ring.reserve(1);
            let stamp = ticks();
            if index == 0 {
                ring.write_whole(index, code::THREAD, 1, stamp);
                continue;
            }
            let (size, address, code) = (16, 4096, code::MADE);
            ring.write(
                index,
                Event {
                    stamp,
                    size,
                    address,
                    code,
                },
            );
        }
    }
}

/// Handles messages as the worker does, and counts the written events of each ring in `written`.
fn work(messages: &Receiver<Message>, streams: &mut [Stream], written: &mut [u64]) {
    for message in messages.try_iter() {
        match message {
            Message::Entries { ring, batch, .. } => streams[ring].add(batch),
            Message::Until(stamp) => {
                for (stream, written) in streams.iter_mut().zip(&mut *written) {
                    while stream.take(stamp).is_some() {
                        *written += 1;
                    }
                }
            }
            _ => {}
        }
    }
}

#[test]
fn busy_threads_go_on_while_the_backlog_has_room_for_one_ring() {
    let folder = tempfile::tempdir().expect("a folder");
    let control = file(&folder.path().join(CONTROL), size_of::<Control>());
    let control: Shared<Control> = Shared::map(&control).expect("mapped");
    control.rings.store(RINGS as u32, Ordering::Relaxed);
    let start = |number| Thread::start(folder.path(), number);
    let threads: Vec<_> = (0..RINGS).map(start).collect();
    let mut streams: Vec<_> = (0..RINGS).map(|_| Stream::new(folder.path())).collect();
    let (backlog, (sender, messages)) = (Backlog::new(1), mpsc::channel());
    // The backlog has room for two laps of each ring. Occupy all of it except one lap.
    let _taken: Vec<Batch> = (0..(2 * RINGS - 1) * BATCHES)
        .map(|_| backlog.batch(ENTRIES as usize))
        .collect();
    let mut drainer = Drainer::new(
        Closing(control),
        RingFolder::new(folder.path()),
        PathBuf::new(),
        Clock::start(),
        (backlog, sender),
        FullestStacks::default(),
    );
    let mut written = [0; RINGS];
    let laps = 4;
    for _ in 0..3 * laps {
        threads.iter().for_each(Thread::fill);
        drainer.round().expect("a worker");
        work(&messages, &mut streams, &mut written);
    }
    assert!(
        written.iter().all(|&events| events >= laps * ENTRIES),
        "{written:?} events were written"
    );
}

#[test]
fn a_full_ring_of_stacks_shortens_the_pause() {
    let folder = tempfile::tempdir().expect("a folder");
    let control = file(&folder.path().join(CONTROL), size_of::<Control>());
    let control: Shared<Control> = Shared::map(&control).expect("mapped");
    let (sender, _messages) = mpsc::channel();
    let fullest = FullestStacks::default();
    let mut drainer = Drainer::new(
        Closing(control),
        RingFolder::new(folder.path()),
        PathBuf::new(),
        Clock::start(),
        (Backlog::new(1), sender),
        fullest.clone(),
    );
    assert_eq!(drainer.round().expect("a worker"), PAUSE);
    fullest.note(Fullness::of(1, 1));
    assert!(drainer.round().expect("a worker") < PAUSE);
    assert_eq!(drainer.round().expect("a worker"), PAUSE);
}
