//! Checks the workload `fork-server` against its description. A recorder sees only the calls of the
//! parent.

mod recorder;

use std::sync::atomic::{AtomicUsize, Ordering};

use heapdrome_workloads::{Failure, Heap, Libc, run};
use recorder::{Fault, Recorder, lives, parameters, record, run_on};

const WORDS: &str = "children=9 alive=3 blocks=200 replaces=20 touches=50 allocates=30";

#[test]
fn the_parent_replaces_blocks_and_the_children_leave_it_as_it_was() {
    let (report, events) = record("fork-server", WORDS);
    let of_parent = lives(&events).len() as u64;
    assert_eq!(of_parent, 200 + 9 * 20);
    assert_eq!(report.operations, 2 * (of_parent + 9 * 30));
    let foretold = heapdrome_workloads::operations(&parameters("fork-server", WORDS));
    assert_eq!(foretold, Some(report.operations));
    assert!(report.figures["page_faults_per_child"] > 0.0);
    assert!(report.figures["cpu_s"] >= report.figures["children_cpu_s"]);
}

#[test]
fn the_same_seed_gives_the_same_report_and_another_seed_another() {
    let checksum = |seed: u32| {
        record("fork-server", &format!("{WORDS} seed={seed}"))
            .0
            .checksum
    };
    assert_eq!(checksum(1), checksum(1));
    assert_ne!(checksum(1), checksum(2));
}

#[test]
fn other_threads_replace_blocks_while_the_first_forks() {
    let words = format!("{WORDS} threads=3");
    let report = run(&parameters("fork-server", &words), &Libc).unwrap();
    assert_eq!(report.operations, 2 * (3 * (200 + 9 * 20) + 9 * 30));
}

#[test]
fn a_parent_that_fails_leaves_no_child() {
    for at in [1, 250] {
        let outcome = run_on(Recorder::failing(Fault::Null(at)), "fork-server", WORDS).0;
        assert!(
            matches!(outcome, Err(Failure::NoMemory { .. })),
            "{outcome:?}"
        );
    }
}

/// Heap that fails only in a child.
struct InChildren {
    parent: u32,
    calls: AtomicUsize,
    crashes: bool,
}

impl Heap for InChildren {
    fn allocate(&self, size: usize, alignment: usize) -> *mut u8 {
        if std::process::id() != self.parent && self.calls.fetch_add(1, Ordering::Relaxed) == 20 {
            if self.crashes {
                // SAFETY: raise has no preconditions.
                unsafe { libc::raise(libc::SIGKILL) };
            }
            return std::ptr::null_mut();
        }
        Libc.allocate(size, alignment)
    }

    unsafe fn free(&self, block: *mut u8, size: usize) {
        // SAFETY: by contract the block is in use with this size and is not used afterwards, and
        // `Libc` returned it.
        unsafe { Libc.free(block, size) }
    }
}

#[test]
fn a_child_that_fails_or_is_killed_ends_the_run() {
    for (crashes, expected) in [(false, "returned NULL"), (true, "killed by SIGKILL")] {
        let heap = InChildren {
            parent: std::process::id(),
            calls: AtomicUsize::new(0),
            crashes,
        };
        let failure = run(&parameters("fork-server", WORDS), &heap).unwrap_err();
        let text = failure.to_string();
        assert!(text.starts_with("in a child process: "), "{text}");
        assert!(text.contains(expected), "{text}");
    }
}
