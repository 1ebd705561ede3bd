//! Checks of the descriptions of workloads, and of workloads on heaps that record every call or
//! have a fault.

mod broken;
mod churn;
mod descriptions;
mod large_blocks;
mod long_lived;
mod malloctest;
mod recorder;
mod shbench;
mod short_threads;
mod statistics;
mod threadtest;
mod vectors;

use heapdrome_schema::WorkloadReport;
use heapdrome_workloads::{BATCH, Failure, Heap, Parameters, find};

use recorder::Recorder;

/// Runs a workload on a heap.
fn try_on<H: Heap>(heap: &H, workload: &str, words: &[&str]) -> Result<WorkloadReport, Failure> {
    let description = find(workload).expect("a known workload");
    let parameters = Parameters::parse(description, words).expect("good parameters");
    heapdrome_workloads::run(&parameters, heap)
}

/// Runs a workload on a recorder, and checks the properties that every workload must have.
fn recorded(workload: &str, words: &[&str]) -> (Recorder, WorkloadReport) {
    let recorder = Recorder::default();
    let report = try_on(&recorder, workload, words).expect("a sound heap");
    let description = find(workload).expect("a known workload");
    let parameters = Parameters::parse(description, words).expect("good parameters");
    let foretold = heapdrome_workloads::operations(&parameters);
    assert_eq!(foretold, Some(report.operations), "{workload} {words:?}");
    let shadow = recorder.shadow();
    assert_eq!(shadow.live, 0, "blocks are left: {workload} {words:?}");
    let calls = recorder.events().len() as u64;
    assert_eq!(report.operations, calls, "{workload} {words:?}");
    let threads: u64 = words
        .iter()
        .find_map(|word| word.strip_prefix("threads="))
        .map_or(1, |number| number.parse().expect("a number"));
    let peak = report.figures["peak_requested_bytes"] as u64;
    match threads {
        1 => assert_eq!(peak, shadow.peak, "{workload} {words:?}"),
        _ => assert!(
            peak.abs_diff(shadow.peak) <= threads * BATCH,
            "{workload} {words:?}"
        ),
    }
    (recorder, report)
}

#[test]
fn the_same_seed_gives_the_same_report_and_another_seed_another() {
    for (workload, words) in [
        (
            "threadtest",
            &["threads=3", "iterations=3", "objects=999"][..],
        ),
        ("shbench", &["threads=3", "iterations=7", "kept=50"]),
        (
            "malloctest",
            &["threads=3", "repeats=2", "iterations=500", "touch=1"],
        ),
        (
            "large-blocks",
            &["threads=3", "live=1", "min=4096", "max=9999"],
        ),
    ] {
        let with_seed = |seed| {
            let words: Vec<_> = words.iter().copied().chain([seed]).collect();
            recorded(workload, &words).1
        };
        let (one, again, other) = (
            with_seed("seed=1"),
            with_seed("seed=1"),
            with_seed("seed=2"),
        );
        assert_eq!(one.checksum, again.checksum, "{workload}");
        assert_eq!(one.operations, again.operations, "{workload}");
        assert_ne!(one.checksum, other.checksum, "{workload}");
        assert_ne!(one.checksum, "0000000000000000", "{workload}");
    }
}

#[test]
fn latency_is_reported_where_it_is_asked_for() {
    let names = [
        "latency_malloc_p50_ns",
        "latency_free_max_ns",
        "latency_clock_ns",
    ];
    for (workload, words) in [
        (
            "threadtest",
            &["threads=2", "iterations=3", "objects=200"][..],
        ),
        ("shbench", &["threads=2", "iterations=3"]),
        ("malloctest", &["threads=2", "iterations=300"]),
    ] {
        let timed: Vec<_> = words.iter().copied().chain(["latency=1"]).collect();
        let (_, report) = recorded(workload, &timed);
        assert!(
            names.iter().all(|name| report.figures[*name] > 0.0),
            "{workload}"
        );
        let (_, report) = recorded(workload, words);
        let mut figures = report.figures.keys();
        let any = figures.any(|name| name.starts_with("latency"));
        assert!(!any, "{workload}");
    }
}

/// Checks the figures of a run that is large enough for the kernel's counters.
#[test]
fn figures_are_those_of_the_measured_part() {
    let words = ["iterations=20000", "lower=4000", "upper=4000", "touch=1"];
    let report = try_on(&heapdrome_workloads::Libc, "malloctest", &words).expect("memory");
    let figure = |name: &str| report.figures[name];
    assert_eq!(figure("peak_requested_bytes"), 80e6);
    assert!(figure("peak_resident_bytes") > 75e6);
    assert!(figure("overhead") > 0.9);
    assert_eq!(figure("bookkeeping_bytes"), 160_000.0);
    assert!(figure("cpu_s") > 0.0 && figure("wall_s") > 0.0);
    let rate = report.operations as f64 / figure("cpu_s");
    assert!((figure("operations_per_cpu_s") / rate - 1.0).abs() < 1e-9);
}
