//! Runs on heaps with one fault each. The workloads must detect the fault, except that malloctest
//! without `touch=1` detects only the lack of memory.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use heapdrome_workloads::{Failure, Heap, Libc};

use crate::try_on;

/// Fault of a heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// The heap returns null after a few blocks.
    Null,
    /// At every hundredth call, the heap returns the block that it returned before, if that block
    /// is large enough.
    Twice,
    /// At every hundredth call, the heap zeroes the block that it returned before.
    Zeroes,
    /// At every hundredth call, the heap changes the last byte of the block that it returned
    /// before.
    Tail,
    /// Every hundredth address that the heap returns is odd.
    Misaligned,
}

/// Heap with a fault. It never frees, so that nothing else breaks.
struct Broken {
    fault: Fault,
    calls: AtomicUsize,
    /// The block that was returned before, and its size; blocks are never unmapped.
    before: std::sync::Mutex<(usize, usize)>,
}

impl Heap for Broken {
    fn allocate(&self, size: usize, alignment: usize) -> *mut u8 {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let mut before = self.before.lock().unwrap();
        let (address, former_size) = *before;
        let former = std::ptr::with_exposed_provenance_mut::<u8>(address);
        let strikes = call % 100 == 99;
        match self.fault {
            Fault::Null if call >= 50 => return std::ptr::null_mut(),
            Fault::Twice if strikes && former_size >= size => return former,
            // SAFETY: the former block has at least `former_size` bytes and is never freed.
            Fault::Zeroes if strikes => unsafe { former.write_bytes(0, former_size) },
            Fault::Tail if strikes => {
                // SAFETY: the former block has `former_size` bytes and is never freed; this is its
                // last byte.
                unsafe { *former.add(former_size - 1) ^= 0x10 }
            }
            _ => {}
        }
        let block = Libc.allocate(size + 64, alignment);
        let block = match self.fault {
            Fault::Misaligned if strikes => block.wrapping_add(1),
            _ => block,
        };
        *before = (block.expose_provenance(), size);
        block
    }

    unsafe fn free(&self, _block: *mut u8, _size: usize) {}
}

/// Returns the outcome on a heap with this fault. The test fails if the run hangs or panics.
fn outcome(
    fault: Fault,
    workload: &'static str,
    words: &'static [&'static str],
) -> Result<(), Failure> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        let heap = Broken {
            fault,
            calls: AtomicUsize::new(0),
            before: std::sync::Mutex::new((0, 0)),
        };
        send.send(try_on(&heap, workload, words).map(|_| ()))
    });
    match receive.recv_timeout(Duration::from_secs(150)) {
        Ok(outcome) => outcome,
        Err(RecvTimeoutError::Timeout) => panic!("{workload} hangs on {fault:?}"),
        Err(RecvTimeoutError::Disconnected) => panic!("{workload} panics on {fault:?}"),
    }
}

const LOADS: [(&str, &[&str]); 11] = [
    ("threadtest", &["iterations=2", "objects=1000"]),
    ("threadtest", &["iterations=2", "objects=3000", "threads=3"]),
    ("shbench", &["iterations=4", "min=8"]),
    ("shbench", &["iterations=6", "min=8", "threads=3"]),
    ("malloctest", &["repeats=1", "iterations=1000", "touch=1"]),
    (
        "malloctest",
        &["repeats=1", "iterations=1000", "touch=1", "threads=3"],
    ),
    ("vectors", &["vectors=100", "max=4096", "threads=2"]),
    ("short-threads", &["threads=3", "count=30", "min=8"]),
    (
        "long-lived",
        &["threads=2", "mebibytes=1", "periods=2", "pause=0"],
    ),
    ("churn", &["blocks=100", "steps=3000", "min=8", "threads=2"]),
    (
        "large-blocks",
        &["blocks=2000", "live=1", "min=4096", "max=8192", "threads=2"],
    ),
];

#[test]
fn a_heap_without_memory_ends_the_run() {
    for (workload, words) in LOADS {
        let failure = outcome(Fault::Null, workload, words).unwrap_err();
        assert!(
            matches!(failure, Failure::NoMemory { .. }),
            "{workload}: {failure}"
        );
    }
}

#[test]
fn contents_that_changed_end_the_run() {
    for (workload, words) in LOADS {
        for fault in [Fault::Twice, Fault::Zeroes, Fault::Tail] {
            let failure = outcome(fault, workload, words).unwrap_err();
            assert!(
                matches!(failure, Failure::Corrupt { .. }),
                "{workload} {fault:?}: {failure}"
            );
        }
    }
}

#[test]
fn an_address_that_is_not_aligned_ends_the_run() {
    for (workload, words) in LOADS {
        let failure = outcome(Fault::Misaligned, workload, words).unwrap_err();
        assert!(
            matches!(failure, Failure::Misaligned { .. }),
            "{workload}: {failure}"
        );
    }
}

/// Without `touch=1`, malloctest checks only that malloc returns a block.
#[test]
fn malloctest_untouched_sees_no_fault_but_lack_of_memory() {
    let words = &["repeats=1", "iterations=1000"];
    for fault in [Fault::Twice, Fault::Zeroes, Fault::Tail, Fault::Misaligned] {
        assert_eq!(outcome(fault, "malloctest", words), Ok(()));
    }
    let failure = outcome(Fault::Null, "malloctest", words);
    assert!(matches!(failure, Err(Failure::NoMemory { .. })));
}
