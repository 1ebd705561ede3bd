use crate::recorded;
use crate::recorder::Event;
use crate::statistics::chi_square;

#[test]
fn each_repeat_allocates_all_and_frees_all_in_the_same_order() {
    for touch in ["touch=0", "touch=1"] {
        let words = ["threads=2", "repeats=3", "iterations=400", touch];
        let (recorder, report) = recorded("malloctest", &words);
        assert_eq!(report.operations, 2 * 3 * 400 * 2);
        for calls in recorder.by_thread() {
            assert_eq!(calls.len(), 3 * 400 * 2);
            for repeat in calls.chunks(800) {
                let (allocated, freed) = repeat.split_at(400);
                assert!(allocated.iter().all(|call| call.allocated));
                assert!(freed.iter().all(|call| !call.allocated));
                let order =
                    |calls: &[Event]| -> Vec<_> { calls.iter().map(|call| call.block).collect() };
                assert_eq!(order(allocated), order(freed));
            }
        }
    }
}

#[test]
fn sizes_are_drawn_evenly_and_anew_in_each_repeat() {
    // There are 990 sizes, so that they fall into bins of equal width.
    let (recorder, _) = recorded("malloctest", &["1", "2", "50000", "11", "1000"]);
    let sizes = recorder.sizes();
    let (found, limit) = chi_square(&sizes, 11, 1000, 99);
    assert!(found < limit, "{found} {limit}");
    let (first, second) = sizes.split_at(50_000);
    assert_ne!(first, second);
    // Consecutive sizes are drawn independently. So the remainders of weighted sums of pairs are
    // uniform, although the sums are not.
    let sums = sizes.windows(2).map(|pair| (pair[0] + 3 * pair[1]) % 99);
    let (found, limit) = chi_square(&sums.collect::<Vec<_>>(), 0, 98, 99);
    assert!(found < limit, "{found} {limit}");
}

#[test]
fn threads_draw_sizes_of_their_own() {
    let (recorder, _) = recorded("malloctest", &["threads=2", "repeats=1", "iterations=100"]);
    let sizes = |calls: &[Event]| -> Vec<_> { calls[..100].iter().map(|call| call.size).collect() };
    let threads = recorder.by_thread();
    assert_ne!(sizes(&threads[0]), sizes(&threads[1]));
}

#[test]
fn touch_writes_every_byte_and_its_absence_none() {
    let fresh = |touch| {
        let words = ["1", "1", "2000", "10", "1000", touch];
        let (recorder, report) = recorded("malloctest", &words);
        let freed = recorder.events().into_iter().filter(|call| !call.allocated);
        (freed.collect::<Vec<_>>(), report.checksum)
    };
    let (untouched, checksum) = fresh("touch=0");
    assert!(untouched.iter().all(|call| call.fresh == call.size));
    assert_eq!(checksum, "0000000000000000");
    let (touched, checksum) = fresh("touch=1");
    // A byte that was written may happen to have its old value: in blocks filled with that byte,
    // and by chance in the two tags of 8 bytes.
    let filled = |call: &&Event| call.size % 256 != 0xee;
    assert!(touched.iter().filter(filled).all(|call| call.fresh <= 3));
    assert_ne!(checksum, "0000000000000000");
}

#[test]
fn the_sums_of_stretches_are_bookkeeping_too() {
    for (touch, arrays) in [("touch=1", 6400.0 * 8.0), ("touch=0", 6600.0 * 8.0)] {
        let (_, report) = recorded("malloctest", &["1", "1", "6400", "10", "1000", touch]);
        assert_eq!(report.figures["bookkeeping_bytes"], arrays, "{touch}");
    }
}
