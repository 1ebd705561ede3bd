//! Tests profiles of small traces whose figures are known.

use heapdrome_profile::{Amount, Bounds, Digits, Peak, Profile, Variance};
use heapdrome_trace::{Beginning, Ending, Operation, Record};

use crate::trace::{FREE, MALLOC, Trace, free, make, read, resize};

fn amount(blocks: u64, bytes: u64) -> Amount {
    Amount { blocks, bytes }
}

/// Profiles ten calls of two threads. They make three blocks, resize one of them twice, and free
/// two. Three calls neither make nor free a block of the trace.
fn ten_calls() -> Profile {
    let mut trace = Trace::new();
    trace.begin(0, 0, Beginning::Executed);
    trace.does(0, 1600, make(100));
    trace.does(0, 3200, make(1000));
    trace.does(1, 4800, free(0));
    trace.does(1, 6400, make(50));
    trace.does(1, 8000, free(2));
    trace.does(0, 9600, resize(1, 4000));
    trace.does(0, 11_200, resize(3, 3000));
    let (function, size, alignment) = (MALLOC, 1 << 40, 0);
    trace.does(
        0,
        12_800,
        Operation::Fail {
            function,
            size,
            alignment,
        },
    );
    trace.does(0, 14_400, Operation::FreeNull { function: FREE });
    trace.does(
        0,
        16_000,
        Operation::FreeForeign {
            function: FREE,
            size: None,
        },
    );
    trace.end(0, 32_000);
    trace.profile()
}

#[test]
fn calls_and_blocks_are_counted() {
    let counts = ten_calls().all.counts;
    let calls: Vec<_> = counts
        .functions
        .iter()
        .map(|f| (f.calls, f.failed))
        .collect();
    assert_eq!(calls, [(4, 1), (2, 0), (4, 0)]);
    assert_eq!(counts.calls(), 10);
    assert_eq!((counts.failed(), counts.largest_failed), (1, 1 << 40));
    assert_eq!(counts.made, amount(5, 8150));
    assert_eq!(counts.freed, amount(4, 5150));
    assert_eq!(counts.freed_by_others, amount(1, 100));
    assert_eq!(counts.temporary, amount(1, 50));
    assert_eq!(counts.left, amount(1, 3000));
    let rare = [
        counts.null_frees,
        counts.foreign_frees,
        counts.repeated_frees,
    ];
    assert_eq!(rare, [1, 1, 0]);
    let resizes = counts.resizes;
    assert_eq!([resizes.calls, resizes.grown, resizes.shrunk], [2, 1, 1]);
    assert_eq!(
        (resizes.copied, resizes.chains, resizes.longest),
        (4000, 1, 2)
    );
}

#[test]
fn sizes_and_lifetimes_lie_in_their_steps() {
    let counts = ten_calls().all.counts;
    let blocks = |digits: &Digits| -> Vec<_> {
        let steps = digits.steps();
        steps
            .map(|(below, amount)| (below, amount.blocks))
            .collect()
    };
    assert_eq!(
        blocks(&counts.sizes),
        [(64, 1), (128, 1), (1024, 1), (4096, 2)]
    );
    // The four freed blocks live for 3200, 1600, 6400 and 1600 ns, in which 1000, 0, 50 and 0 bytes
    // are requested.
    assert_eq!(
        blocks(&counts.lived_time),
        [(2048, 2), (4096, 1), (8192, 1)]
    );
    assert_eq!(blocks(&counts.lived_bytes), [(1, 2), (64, 1), (1024, 1)]);
}

#[test]
fn the_peak_is_known_with_its_time() {
    let profile = ten_calls();
    let process = &profile.processes[0];
    let (live, inherited) = (amount(1, 4000), amount(0, 0));
    assert_eq!(
        process.peak,
        Peak {
            live,
            inherited,
            time: 9600,
            variance: Variance::default(),
        }
    );
    assert_eq!((process.most_blocks, process.threads), (2, 2));
    assert_eq!(process.span, [0, 32_000]);
    assert_eq!(
        profile.all.peak,
        Bounds {
            least: 4000,
            most: 4000
        }
    );
    assert!(process.is_whole());
}

#[test]
fn the_rounding_of_live_blocks_is_added_up() {
    let mut trace = Trace::new();
    trace.does(0, 0, make(100));
    trace.does(0, 16, make(1));
    trace.does(0, 32, free(0));
    trace.does(0, 48, make(130));
    let profile = trace.profile();
    let rounded: Vec<_> = profile.processes[0].counts.rounded().collect();
    let of = |name: &str| {
        let found = rounded.iter().find(|(known, _)| *known == name);
        found.map(|(_, rounded)| (rounded.made, rounded.most_live))
    };
    assert_eq!(of("system"), Some((112 + 32 + 144, 32 + 144)));
    assert_eq!(of("jemalloc"), Some((112 + 8 + 160, 8 + 160)));
    assert_eq!(of("elfmalloc"), Some((112 + 16 + 144, 16 + 144)));
}

#[test]
fn inherited_blocks_are_live_until_they_are_freed() {
    let mut trace = Trace::new();
    trace.begin(0, 0, Beginning::Executed);
    trace.does(0, 160, make(500));
    trace.does(0, 320, make(700));
    let forked = Beginning::Forked {
        parent: 0,
        blocks: 2,
        bytes: 1200,
    };
    trace.begin(1, 1000, forked);
    let step = |time, operation| heapdrome_trace::Step {
        thread: 0,
        time: heapdrome_trace::Time(time),
        operation,
        stack: None,
    };
    trace.step(1, step(1600, make(10)));
    let inherited = Operation::FreeForeign {
        function: FREE,
        size: Some(500),
    };
    trace.step(1, step(3200, inherited));
    trace.end(1, 4000);
    trace.end(0, 5000);
    let profile = trace.profile();
    let child = &profile.processes[1];
    assert_eq!(child.peak.live, amount(3, 1210));
    assert_eq!(child.peak.inherited, amount(2, 1200));
    assert_eq!(child.counts.most_requested, 10);
    assert_eq!(child.counts.inherited_freed, amount(1, 500));
    assert_eq!(child.counts.inherited_left, amount(1, 700));
    assert_eq!(child.counts.left, amount(1, 10));
    assert!(
        (profile.all.peak.least..=profile.all.peak.most).contains(&2410),
        "{:?}",
        profile.all.peak
    );
}

#[test]
fn resident_memory_stands_beside_the_live_bytes() {
    let mut trace = Trace::new();
    trace.begin(0, 0, Beginning::Executed);
    trace.resident(0, 100, 10_000);
    trace.does(0, 1 << 20, make(1 << 20));
    trace.resident(0, (1 << 20) + 50, 2_000_000);
    trace.does(0, 1 << 21, free(0));
    trace.resident(0, 1 << 22, 30_000);
    trace.end(0, 1 << 23);
    let profile = trace.profile();
    let process = &profile.processes[0];
    assert_eq!(process.most_resident, Some(2_000_000));
    assert_eq!(process.resident_at_peak(), Some(2_000_000));
    assert_eq!(
        profile.all.resident,
        Some(Bounds {
            least: 2_000_000,
            most: 2_000_000
        })
    );
    let before = process
        .timeline
        .at(1 << 19)
        .and_then(|point| point.resident);
    assert_eq!(before.map(|level| level.most), Some(10_000));
}

#[test]
fn a_trace_that_was_cut_off_is_profiled_up_to_there() {
    let mut trace = Trace::new();
    trace.begin(0, 0, Beginning::Executed);
    trace.does(0, 160, make(100));
    let bypass = heapdrome_trace::Bypass {
        pid: 7,
        program: "/bin/static".into(),
        reason: "static".into(),
    };
    trace.record(Record::Bypass(bypass.clone()));
    let bytes = trace.bytes();
    // The last records are lost.
    let profile = read(&bytes[..bytes.len() - 3]);
    assert!(matches!(profile.ending, Ending::CutOff { .. }));
    assert_eq!(profile.processes[0].counts.left, amount(1, 100));
    assert!(!profile.processes[0].is_whole());
    assert_eq!(profile.bypassed, [bypass]);
}
