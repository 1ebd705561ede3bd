//! Tests the memory of a burst. Memory is measured for the whole process, so this test has its own
//! process.

use heapdrome_lgalloc_bench::burst;
use heapdrome_schema::{Burst, Bytes, Holder};

#[test]
fn all_that_is_taken_is_in_memory_at_once_and_what_stays_is_told() {
    for holder in [Holder::Lgalloc, Holder::Published] {
        let report = burst(&Burst {
            holder,
            threads: 2,
            each: Bytes::from_mib(2),
        })
        .expect("there is memory");
        let figure = |name: &str| report.figures.get(name).copied();
        // Two threads take one region of each of the five sizes.
        let taken = f64::from((2 * (2 + 4 + 8 + 16 + 32)) << 20);
        assert_eq!(figure("taken_bytes"), Some(taken));
        let most = figure("resident_at_most_bytes").expect("told");
        assert!(most >= 0.9 * taken, "{holder:?}: {most} of {taken}");
        let after = figure("resident_after_bytes").expect("told");
        assert!(after <= 1.1 * most, "{holder:?}: {after} of {most}");
        assert_eq!(figure("cap_bytes").is_some(), holder == Holder::Lgalloc);
    }
}
