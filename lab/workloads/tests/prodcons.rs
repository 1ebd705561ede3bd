//! Checks the workload `prodcons` against its description, from the calls that a heap receives.

mod recorder;

use std::collections::{HashMap, HashSet};
use std::thread::ThreadId;

use heapdrome_workloads::{BATCH, Failure};
use recorder::{Call, Fault, Recorder, lives, record, run_on, shadow_peak};

/// Returns the threads that free the blocks of each thread.
fn receivers(lives: &[recorder::Life]) -> HashMap<ThreadId, HashSet<ThreadId>> {
    let mut receivers: HashMap<ThreadId, HashSet<ThreadId>> = HashMap::new();
    for life in lives {
        receivers.entry(life.by).or_default().insert(life.freed_by);
    }
    receivers
}

#[test]
fn pairs_keep_to_themselves_and_every_block_crosses() {
    let (report, events) = record("prodcons", "threads=6 batches=40 objects=25");
    let lives = lives(&events);
    assert_eq!(lives.len(), 3 * 40 * 25);
    assert_eq!(report.operations, 2 * 3 * 40 * 25);
    assert!(lives.iter().all(|life| life.by != life.freed_by));
    let receivers = receivers(&lives);
    assert_eq!(receivers.len(), 3);
    assert!(receivers.values().all(|consumers| consumers.len() == 1));
    let consumers: HashSet<_> = receivers.values().flatten().collect();
    assert_eq!(consumers.len(), 3);
    assert!(
        consumers
            .iter()
            .all(|consumer| !receivers.contains_key(consumer))
    );
}

#[test]
fn unequal_numbers_take_turns() {
    for (producers, consumers) in [(4, 1), (1, 4), (2, 3)] {
        let threads = producers + consumers;
        let words = format!("{threads} {producers} {consumers} 60 10");
        let (_, events) = record("prodcons", &words);
        let lives = lives(&events);
        assert_eq!(lives.len(), producers * 60 * 10, "{words}");
        let foretold = heapdrome_workloads::operations(&recorder::parameters("prodcons", &words));
        assert_eq!(foretold, Some(2 * lives.len() as u64));
        let receivers = receivers(&lives);
        assert_eq!(receivers.len(), producers);
        assert!(
            receivers.values().all(|set| set.len() == consumers),
            "{words}"
        );
        let mut of_each: HashMap<(ThreadId, ThreadId), usize> = HashMap::new();
        for life in lives {
            assert_ne!(life.by, life.freed_by);
            *of_each.entry((life.by, life.freed_by)).or_default() += 1;
        }
        let equal = of_each.values().all(|count| *count == 60 / consumers * 10);
        assert!(equal, "{words}: {of_each:?}");
    }
}

#[test]
fn one_thread_does_the_same_calls_without_crossing() {
    let (alone, events) = record("prodcons", "threads=1 batches=50 objects=20");
    let own = lives(&events);
    assert!(own.iter().all(|life| life.by == life.freed_by));
    let (pair, events) = record("prodcons", "threads=2 batches=50 objects=20");
    let crossing = lives(&events);
    let requests = |lives: &[recorder::Life]| -> Vec<_> {
        lives
            .iter()
            .map(|life| (life.size, life.alignment))
            .collect()
    };
    assert_eq!(requests(&own), requests(&crossing));
    assert_eq!(
        (alone.operations, alone.checksum),
        (pair.operations, pair.checksum)
    );
}

#[test]
fn blocks_are_freed_in_the_order_of_their_allocation() {
    let (_, events) = record("prodcons", "threads=2 batches=100 objects=20 queue=3");
    let lives = lives(&events);
    assert!(lives.windows(2).all(|two| two[0].died < two[1].died));
}

#[test]
fn no_more_than_the_queue_and_one_batch_in_hand_is_in_use() {
    for queue in [1, 3] {
        let words = format!("threads=2 batches=200 objects=20 queue={queue}");
        let (_, events) = record("prodcons", &words);
        let mut now = 0_usize;
        for event in &events {
            match event.call {
                Call::Allocate { .. } => now += 1,
                Call::Free { .. } => now -= 1,
                Call::Enter | Call::Leave => {}
            }
            assert!(now <= (queue + 1) * 20, "{now}");
        }
    }
}

#[test]
fn the_peak_of_requested_bytes_is_the_shadow_count() {
    let (report, events) = record("prodcons", "threads=1 batches=20 objects=3000 max=9000");
    assert_eq!(
        report.figures["peak_requested_bytes"],
        shadow_peak(&events) as f64
    );
    let (report, events) = record("prodcons", "threads=4 batches=20 objects=3000 max=9000");
    let off = report.figures["peak_requested_bytes"] - shadow_peak(&events) as f64;
    // Each thread may have one block whose call is not counted yet.
    assert!(off.abs() <= 4.0 * (BATCH as f64 + 9000.0), "{off}");
}

/// Checks the bound on the peak when a batch is far smaller than a thread's maximum unpublished
/// balance.
#[test]
fn with_little_in_use_the_peak_is_off_by_no_more_than_a_batch_for_each_thread() {
    for (words, threads) in [
        ("threads=2 batches=200 objects=5 queue=1 max=100", 2.0),
        ("threads=4 batches=200 objects=5 queue=2 max=100", 4.0),
        (
            "threads=5 consumers=1 batches=100 objects=5 queue=2 max=100",
            5.0,
        ),
    ] {
        let (report, events) = record("prodcons", words);
        let (found, due) = (
            report.figures["peak_requested_bytes"],
            shadow_peak(&events) as f64,
        );
        let batch = 5.0 * 100.0;
        assert!(
            (found - due).abs() <= threads * batch,
            "{words}: {found}, not {due}"
        );
        // The peak is at least one batch, regardless of the interleaving.
        assert!(found >= 5.0 * 16.0, "{words}: {found}");
    }
}

#[test]
fn a_heap_that_fails_ends_all_threads() {
    for words in [
        "threads=1",
        "threads=2 queue=1",
        "threads=5 consumers=1",
        "threads=5 producers=1",
    ] {
        for at in [1, 300] {
            let words = format!("{words} batches=5000 objects=10");
            let fail = |fault| run_on(Recorder::failing(fault), "prodcons", &words).0;
            let null = fail(Fault::Null(at));
            assert!(matches!(null, Err(Failure::NoMemory { .. })), "{null:?}");
            let corrupt = fail(Fault::Corrupt(at));
            assert!(
                matches!(corrupt, Err(Failure::Corrupt { .. })),
                "{corrupt:?}"
            );
        }
    }
}
