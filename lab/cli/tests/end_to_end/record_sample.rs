//! Tests of `heapdrome record --sample`: the sample must represent the blocks that the program
//! made.

use heapdrome_trace::{Operation, Reader};

use crate::record::{COUNTED, Trace};
use crate::support::{Outcome, Site, recorded_program, reentrant_allocator};

/// Mean number of bytes between two sample points in these tests. Of the smallest counted blocks,
/// about a fifth is recorded.
const MEAN: u64 = 25_000;

/// Permitted error of an estimate in standard deviations. By chance, one test in 1.7 million
/// exceeds it.
const SIGMAS: f64 = 5.0;

/// Records a sample of the program of the fixtures.
fn record(site: &Site, arguments: &[&str]) -> (Outcome, Trace) {
    let (program, mean) = (recorded_program(), MEAN.to_string());
    let mut all = vec![
        "record",
        "-o",
        "app.trace",
        "--sample",
        &mean,
        "--",
        &program,
    ];
    all.extend(arguments);
    let outcome = site.run(&all);
    (outcome, Trace::read(&site.path("app.trace")))
}

/// Returns an estimate, from the sample, of the number of a process's requests for counted blocks,
/// and the standard deviation of the estimate.
fn estimate(trace: &Trace, process: u32) -> (f64, f64) {
    let (mut number, mut variance) = (0.0, 0.0);
    for step in &trace.steps[&process] {
        if let Operation::Make { size, .. } | Operation::Resize { size, .. } = step.operation
            && size >= COUNTED
        {
            let share = 1.0 - (-(size as f64) / MEAN as f64).exp();
            number += 1.0 / share;
            variance += (1.0 - share) / (share * share);
        }
    }
    (number, variance.sqrt())
}

fn assert_estimate(trace: &Trace, process: u32, truth: f64) {
    let (number, deviation) = estimate(trace, process);
    let error = (number - truth) / deviation;
    assert!(
        error.abs() < SIGMAS,
        "{number} requests instead of {truth}: {error} standard deviations"
    );
}

#[test]
fn a_sample_of_blocks_that_change_threads_stands_for_all_of_them() {
    let site = Site::new();
    let (outcome, trace) = record(&site, &["threads", "30000"]);
    outcome.says(0, &["of 1 process in app.trace"]);
    assert_estimate(&trace, 0, 120_000.0);
    // Each thread leaves one block. If another block is sampled, its free is recorded, too.
    assert!(trace.blocks(0).live.len() <= 4);
    assert!(trace.is_complete());
}

#[test]
fn a_handler_that_allocates_while_a_countdown_moves_disturbs_no_sample() {
    let site = Site::new();
    let (program, mean) = (recorded_program(), MEAN.to_string());
    let allocator = reentrant_allocator();
    let allocator = allocator.to_str().expect("a plain path");
    let record = [
        "record",
        "-o",
        "app.trace",
        "--sample",
        &mean,
        "-a",
        allocator,
    ];
    let command = ["--", &program, "interrupted", "1000000"];
    let outcome = site.run(&[&record[..], &command].concat());
    outcome.ends_with(0);
    let handled = outcome.stdout.trim().strip_prefix("handled ");
    let handled: f64 = handled
        .and_then(|number| number.parse().ok())
        .expect("a number");
    assert!(handled > 20.0, "{handled}");
    assert_estimate(&Trace::read(&site.path("app.trace")), 0, 1e6 + handled);
}

#[test]
fn a_trace_says_how_it_was_sampled() {
    let site = Site::new();
    let program = recorded_program();
    // There is one sample point per 10^12 bytes, so it is practically certain that none falls into
    // the few requested bytes. The trace still contains the process.
    let arguments = ["record", "--sample", "1e-12", "--", &program, "chain", "1"];
    let outcome = site.run(&arguments);
    outcome.says(0, &["recorded 0 calls of 1 process in heapdrome.trace"]);
    let file = std::fs::File::open(site.path("heapdrome.trace")).expect("a trace");
    let recording = Reader::new(file).expect("a trace").recording().clone();
    let expected = (1_000_000_000_000, 0);
    assert_eq!((recording.sample_bytes, recording.stack_bytes), expected);
}

#[test]
fn sampled_chains_of_realloc_end_with_no_block() {
    let site = Site::new();
    let (outcome, trace) = record(&site, &["chain", "10000"]);
    outcome.ends_with(0);
    // Each chain requests a block and ten successors.
    assert_estimate(&trace, 0, 110_000.0);
    let blocks = trace.blocks(0);
    assert!(blocks.live.is_empty(), "{:?}", blocks.live);
    let is_linked = |operation| matches!(operation, Operation::Resize { .. });
    let steps = || trace.steps[&0].iter().map(|step| step.operation);
    assert!(steps().any(is_linked));
    // A resize of an unrecorded block is recorded as a new block.
    let realloc = |operation| matches!(operation, Operation::Make { size, .. } if size > COUNTED);
    assert!(steps().any(realloc));
}

#[test]
fn aligned_blocks_and_failures_are_sampled() {
    let site = Site::new();
    let (outcome, trace) = record(&site, &["aligned", "20000"]);
    outcome.ends_with(0);
    assert_estimate(&trace, 0, 60_000.0);
    assert!(trace.blocks(0).live.is_empty());
    let (mut aligned, mut failed) = (0, 0);
    for step in &trace.steps[&0] {
        match step.operation {
            Operation::Make { alignment, .. } => aligned += u32::from(alignment > 0),
            Operation::Fail { .. } => failed += 1,
            Operation::FreeNull { .. } => panic!("a free of nothing is no sampled block's"),
            _ => {}
        }
    }
    assert!(aligned > 0);
    // Each failed request is larger than the distance between two sample points, so each is
    // recorded.
    assert_eq!(failed, 20_000);
}

#[test]
fn a_child_frees_the_sampled_blocks_that_it_inherits() {
    let site = Site::new();
    let (outcome, trace) = record(&site, &["inherit", "10000"]);
    outcome.ends_with(0);
    assert_estimate(&trace, 0, 10_001.0);
    let table = u64::try_from(10_000 * size_of::<usize>()).expect("a size");
    let live = trace.blocks(0).live;
    let sampled = live.values().filter(|(size, _)| *size != table);
    assert_eq!(trace.blocks(1).inherited, sampled.count());
}

#[test]
fn what_is_no_sample_is_refused_in_one_line() {
    let site = Site::new();
    for wrong in ["0", "1", "often", "512KB"] {
        let outcome = site.run(&["record", "--sample", wrong, "--", "true"]);
        outcome.says(
            2,
            &["expected a rate above 0 and below 1, such as 1e-3, or a number"],
        );
        assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
    }
}
