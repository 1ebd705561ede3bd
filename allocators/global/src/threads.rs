//! Threads that start and end, and free one another's blocks.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};

const THREADS: usize = 8;
const ROUNDS: usize = 10;
const BATCH: usize = 500;

type Words = HashMap<usize, String>;

static LEFT: AtomicUsize = AtomicUsize::new(0);

/// Value that allocates and frees once more when its thread ends.
struct Late(Vec<String>);

impl Drop for Late {
    fn drop(&mut self) {
        let copies: Vec<String> = self.0.iter().map(|word| word.repeat(3)).collect();
        let length: usize = copies.iter().map(String::len).sum();
        // Relaxed: only read after all threads have been joined.
        LEFT.fetch_add(length, Relaxed);
    }
}

thread_local! {
    static LATE: RefCell<Late> = const { RefCell::new(Late(Vec::new())) };
}

fn words(first: usize) -> Words {
    (first..first + BATCH)
        .map(|number| (number, number.to_string().repeat(number % 50 + 1)))
        .collect()
}

/// Sends words to the next thread, and frees the words that it receives. Returns the number of
/// received bytes.
fn pass_on(me: usize, to: &Sender<Words>, from: &Receiver<Words>) -> usize {
    let mut bytes = 0;
    for round in 0..ROUNDS {
        to.send(words(me * ROUNDS * BATCH + round * BATCH))
            .expect("the next thread is there");
        let got = from.recv().expect("the one before is there");
        for (number, word) in &got {
            assert!(word.starts_with(&number.to_string()));
            bytes += word.len();
        }
    }
    LATE.with_borrow_mut(|late| late.0.push(me.to_string()));
    bytes
}

/// Checks threads in a ring, many consecutive threads, and destructors of thread-local values that
/// allocate.
pub fn threads() {
    let (senders, mut receivers): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| channel()).unzip();
    receivers.rotate_left(1);
    let mut ring = Vec::new();
    for (me, (to, from)) in senders.into_iter().zip(receivers).enumerate() {
        ring.push(std::thread::spawn(move || pass_on(me, &to, &from)));
    }
    let got: usize = ring
        .into_iter()
        .map(|thread| thread.join().expect("all was well"))
        .sum();
    let sent: usize = (0..THREADS * ROUNDS * BATCH)
        .step_by(BATCH)
        .map(|first| words(first).values().map(String::len).sum::<usize>())
        .sum();
    assert_eq!(got, sent);
    assert_eq!(LEFT.load(Relaxed), 3 * THREADS);
    for round in 0..100 {
        let short = std::thread::spawn(move || words(round).len());
        assert_eq!(short.join().expect("all was well"), BATCH);
    }
}
