use crate::recorded;

const WORDS: [&str; 5] = ["mebibytes=1", "periods=6", "pause=0", "min=100", "max=100"];

/// Number of blocks of 100 bytes in 1 MiB.
const LIVE: usize = (1 << 20) / 100;

#[test]
fn each_period_replaces_a_share_of_the_blocks_and_frees_a_burst() {
    let (recorder, _) = recorded("long-lived", &WORDS);
    let events = recorder.events();
    let (filled, rest) = events.split_at(LIVE);
    assert!(filled.iter().all(|call| call.allocated));
    let (replaced, burst) = (LIVE * 5 / 100, LIVE * 50 / 100);
    let (periods, freed) = rest.split_at(6 * 2 * (replaced + burst));
    assert!(freed.len() == LIVE && freed.iter().all(|call| !call.allocated));
    for period in periods.chunks(2 * (replaced + burst)) {
        let (turnover, rest) = period.split_at(2 * replaced);
        assert!(
            turnover
                .chunks(2)
                .all(|two| !two[0].allocated && two[1].allocated)
        );
        let (allocated, freed) = rest.split_at(burst);
        assert!(allocated.iter().all(|call| call.allocated));
        let same = |(one, other): (&crate::recorder::Event, &crate::recorder::Event)| {
            !other.allocated && one.block == other.block
        };
        assert!(allocated.iter().zip(freed).all(same));
    }
}

#[test]
fn the_overhead_is_that_at_the_ends_of_the_periods() {
    let words = ["mebibytes=32", "periods=4", "pause=0", "threads=2"];
    let heap = heapdrome_workloads::Libc;
    let report = crate::try_on(&heap, "long-lived", &words).expect("memory");
    let [first, last, mean] =
        ["overhead_first", "overhead_last", "overhead_mean"].map(|figure| report.figures[figure]);
    for overhead in [first, last, mean] {
        assert!((0.9..2.0).contains(&overhead), "{overhead}");
    }
    assert!(mean >= first.min(last) * 0.9);
}
