//! Checks the workload `burst` against its description, from the calls that a heap receives.

mod recorder;

use std::collections::{HashMap, HashSet};

use heapdrome_workloads::{BATCH, Failure};
use recorder::{Event, Fault, Life, Recorder, lives, record, run_on, shadow_peak};

const WORDS: &str =
    "threads=3 mebibytes=1 min=100 max=100 survivors=8 silence=0 activity=0 distribution=0";

/// Number of blocks of 100 bytes per thread if 1 MiB is divided among three threads.
const OF_THREAD: usize = (1 << 20) / 100 / 3;

/// Records a run and checks its number of operations. Returns all events, the blocks of the bursts,
/// and the blocks of the leading thread's pulses. A block belongs to a pulse if it is freed at most
/// eight calls after its allocation.
fn recorded() -> (Vec<Event>, Vec<Life>, Vec<Life>) {
    let (report, events) = record("burst", WORDS);
    let foretold = heapdrome_workloads::operations(&recorder::parameters("burst", WORDS));
    let all = lives(&events);
    assert_eq!(foretold, Some(report.operations));
    assert_eq!(report.operations, 2 * all.len() as u64);
    let (pulses, bursts) = all.into_iter().partition(|life| life.died - life.born <= 8);
    (events, bursts, pulses)
}

#[test]
fn three_bursts_of_all_threads_and_two_times_of_activity_of_one() {
    let (_, bursts, pulses) = recorded();
    let mut of_thread: HashMap<_, usize> = HashMap::new();
    for life in &bursts {
        assert_eq!(life.by, life.freed_by);
        *of_thread.entry(life.by).or_default() += 1;
    }
    assert_eq!(of_thread.len(), 3);
    assert!(of_thread.values().all(|blocks| *blocks == 3 * OF_THREAD));
    let active: HashSet<_> = pulses.iter().map(|life| life.by).collect();
    assert_eq!((active.len(), pulses.len()), (1, 2 * 100 * 8));
}

#[test]
fn no_thread_frees_before_all_have_allocated_nor_allocates_before_all_have_freed() {
    let (_, mut bursts, _) = recorded();
    let of_burst = 3 * OF_THREAD;
    bursts.sort_unstable_by_key(|life| life.born);
    for burst in bursts.chunks(of_burst) {
        let last_born = burst.iter().map(|life| life.born).max();
        let first_died = burst.iter().map(|life| life.died).min();
        assert!(last_born < first_died);
    }
    let [first, second, _] = [0, 1, 2].map(|burst| &bursts[burst * of_burst..][..of_burst]);
    let last_died = first.iter().map(|life| life.died).max();
    assert!(last_died < second.iter().map(|life| life.born).min());
}

#[test]
fn of_the_third_burst_one_block_in_each_run_survives_the_activity() {
    let (_, mut bursts, pulses) = recorded();
    bursts.sort_unstable_by_key(|life| life.born);
    let third = &bursts[2 * 3 * OF_THREAD..];
    let end = pulses.iter().map(|life| life.died).max().unwrap();
    let mut runs: HashMap<_, Vec<bool>> = HashMap::new();
    for life in third {
        runs.entry(life.by).or_default().push(life.died > end);
    }
    let mut places = HashSet::new();
    for survived in runs.values().flat_map(|one| one.chunks_exact(8)) {
        assert_eq!(survived.iter().filter(|one| **one).count(), 1);
        places.extend(survived.iter().position(|one| *one));
    }
    // The surviving block is drawn at random. With this seed, every position within a run occurs.
    assert_eq!(places.len(), 8);
}

#[test]
fn what_survives_is_counted_and_so_is_the_peak() {
    let (report, events) = record("burst", WORDS);
    let runs = OF_THREAD.div_ceil(8);
    let survivors = report.figures["survivor_bytes"] / 100.0;
    // The last run of each thread is shorter, and the drawn place may lie beyond its end, so that
    // this run may have no survivor.
    assert!((3.0 * (runs as f64 - 1.0)..=3.0 * runs as f64).contains(&survivors));
    let off = report.figures["peak_requested_bytes"] - shadow_peak(&events) as f64;
    assert!(off.abs() <= 3.0 * BATCH as f64, "{off}");
}

#[test]
fn the_same_seed_gives_the_same_report_and_another_seed_another() {
    let checksum = |seed: u32| record("burst", &format!("{WORDS} seed={seed}")).0.checksum;
    assert_eq!(checksum(1), checksum(1));
    assert_ne!(checksum(1), checksum(2));
}

#[test]
fn a_heap_that_fails_ends_all_threads() {
    for at in [1, 5000, 3 * 3 * OF_THREAD + 100] {
        let fail = |fault| run_on(Recorder::failing(fault), "burst", WORDS).0;
        let null = fail(Fault::Null(at));
        assert!(matches!(null, Err(Failure::NoMemory { .. })), "{null:?}");
        let corrupt = fail(Fault::Corrupt(at));
        assert!(
            matches!(corrupt, Err(Failure::Corrupt { .. })),
            "{corrupt:?}"
        );
    }
}
