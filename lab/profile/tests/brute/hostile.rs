//! Tests profiles of traces that are empty or damaged, or contain double frees or extreme numbers.

use heapdrome_profile::profile;
use heapdrome_trace::{Beginning, Operation, Reader, TraceError};

use crate::trace::{FREE, Trace, free, make, resize};

#[test]
fn a_block_that_is_freed_twice_counts_once() {
    let mut trace = Trace::new();
    trace.does(0, 0, make(10));
    trace.does(0, 16, free(0));
    trace.does(0, 32, free(0));
    trace.does(0, 48, resize(0, 20));
    let counts = trace.profile().processes[0].counts.clone();
    assert_eq!((counts.freed.blocks, counts.repeated_frees), (1, 2));
    assert_eq!((counts.made.blocks, counts.resizes.calls), (2, 0));
}

#[test]
fn extreme_numbers_do_no_harm() {
    let mut trace = Trace::new();
    let most = u64::MAX;
    trace.begin(
        0,
        most,
        Beginning::Forked {
            parent: 9,
            blocks: most,
            bytes: most,
        },
    );
    trace.does(u32::MAX, 0, make(most));
    let odd = Operation::Make {
        function: FREE,
        size: most,
        alignment: 7,
    };
    trace.does(0, 16, odd);
    let aligned = Operation::Make {
        function: FREE,
        size: 1,
        alignment: 1 << 63,
    };
    trace.does(0, 32, aligned);
    trace.does(0, 48, resize(0, most));
    trace.does(
        0,
        64,
        Operation::FreeForeign {
            function: FREE,
            size: Some(most - 1),
        },
    );
    trace.does(0, most, free(1));
    trace.resident(u32::MAX, most, most);
    trace.end(0, 3);
    let profile = trace.profile();
    assert_eq!(profile.processes.len(), 2);
    assert_eq!(profile.all.counts.calls(), 6);
}

#[test]
fn a_damaged_trace_is_an_error() {
    let mut trace = Trace::new();
    for time in 0..10_000 {
        trace.does(0, time * 16, make(time * time % 777));
    }
    let mut bytes = trace.bytes();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let read = Reader::new(&bytes[..]).and_then(profile);
    assert!(matches!(read, Err(TraceError::Damaged { .. })));
}

#[test]
fn an_empty_trace_has_no_processes() {
    let profile = Trace::new().profile();
    assert!(profile.processes.is_empty());
    assert_eq!(profile.all.counts.calls(), 0);
    assert!(profile.all.timeline.points.is_empty());
}
