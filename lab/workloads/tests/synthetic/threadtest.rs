use crate::recorded;

#[test]
fn every_round_allocates_the_share_and_frees_it_in_the_same_order() {
    let words = ["threads=3", "iterations=5", "objects=100", "size=24"];
    let (recorder, report) = recorded("threadtest", &words);
    // 100 objects for 3 threads are 33 for each; the remaining one is omitted.
    assert_eq!(report.operations, 3 * 5 * 33 * 2);
    let threads = recorder.by_thread();
    assert_eq!(threads.len(), 3);
    for calls in threads {
        assert_eq!(calls.len(), 5 * 33 * 2);
        for round in calls.chunks(66) {
            let (allocated, freed) = round.split_at(33);
            assert!(
                allocated
                    .iter()
                    .all(|call| call.allocated && call.size == 24)
            );
            assert!(freed.iter().all(|call| !call.allocated));
            let order = |calls: &[crate::recorder::Event]| -> Vec<_> {
                calls.iter().map(|call| call.block).collect()
            };
            assert_eq!(order(allocated), order(freed));
        }
    }
}

#[test]
fn parameters_come_in_the_order_of_the_original() {
    let (recorder, report) = recorded("threadtest", &["1", "2", "30", "1", "40"]);
    assert_eq!(report.operations, 2 * 30 * 2);
    assert!(recorder.sizes().iter().all(|size| *size == 40));
    assert!(
        report
            .parameters
            .starts_with("threads=1 iterations=2 objects=30 work=1 size=40")
    );
    assert_eq!(report.figures["peak_requested_bytes"], 1200.0);
    assert_eq!(report.figures["bookkeeping_bytes"], 240.0);
}

/// Checks that the parameter `work` adds computation only: it changes the time and nothing else.
#[test]
fn work_takes_time() {
    let with_work = |work| recorded("threadtest", &["1", "2", "100", work, "40"]).1;
    let (without, with) = (with_work("0"), with_work("20000"));
    assert_eq!(without.checksum, with.checksum);
    assert!(with.figures["cpu_s"] > 2.0 * without.figures["cpu_s"]);
}
