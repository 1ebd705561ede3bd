use std::collections::HashMap;

use crate::recorded;

#[test]
fn every_thread_frees_all_its_blocks_but_one_and_the_main_thread_frees_that() {
    let words = ["threads=3", "count=50", "blocks=20"];
    let (recorder, report) = recorded("short-threads", &words);
    assert_eq!(report.operations, 50 * 20 * 2);
    let events = recorder.events();
    let owners: HashMap<_, _> = events
        .iter()
        .filter(|call| call.allocated)
        .map(|call| (call.block, call.thread))
        .collect();
    let frees = events.iter().filter(|call| !call.allocated);
    let handed: Vec<_> = frees
        .filter(|call| owners[&call.block] != call.thread)
        .collect();
    assert_eq!(handed.len(), 50);
    assert!(handed.iter().all(|call| call.thread == handed[0].thread));
    let by_thread = recorder.by_thread();
    let short: Vec<_> = by_thread
        .iter()
        .filter(|calls| calls[0].allocated)
        .collect();
    assert_eq!(short.len(), 50);
    assert!(short.iter().all(|calls| calls.len() == 20 + 19));
    // The block that is handed over is drawn at random.
    let mut places: Vec<_> = short
        .iter()
        .map(|calls| {
            let first = calls[..20].iter().map(|call| call.block);
            first
                .clone()
                .position(|block| handed.iter().any(|call| call.block == block))
        })
        .collect();
    places.sort_unstable();
    places.dedup();
    assert!(places.len() > 10, "{places:?}");
}

/// With `threads=2`, a thread may begin only after the main thread has freed the block of every
/// earlier thread except one.
#[test]
fn no_more_threads_are_alive_than_asked_for() {
    let (recorder, _) = recorded("short-threads", &["threads=2", "count=30", "blocks=5"]);
    let events = recorder.events();
    let short = recorder.by_thread();
    let begun = |place: usize| {
        let until = events[..place].iter();
        let threads: std::collections::HashSet<_> = until.map(|call| call.thread).collect();
        short
            .iter()
            .filter(|calls| calls[0].allocated && threads.contains(&calls[0].thread))
            .count()
    };
    let mut collected = 0;
    for (place, call) in events.iter().enumerate() {
        let by_main = !short
            .iter()
            .any(|calls| calls[0].allocated && calls[0].thread == call.thread);
        collected += usize::from(by_main);
        assert!(begun(place + 1) <= collected + 2, "{place}");
    }
    assert_eq!(collected, 30);
}
