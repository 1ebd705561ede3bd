//! Tests the readings of memory runs by each method, and the measurer's effect on its measurements.

mod common;

use std::path::Path;

use common::{plan, start, tool};
use heapdrome_measure::{Interrupt, MemoryMethod, selftest};
use heapdrome_schema::{Bytes, MemoryRun, Nanoseconds, Server};

const METHODS: [MemoryMethod; 2] = [MemoryMethod::Best, MemoryMethod::Processes];

/// Returns the memory run of the test program with the arguments `words`, by each method.
fn watched(words: &[&str]) -> Vec<MemoryRun> {
    let folder = tempfile::tempdir().expect("a folder");
    let tool = tool();
    let command: Vec<&str> = [tool.to_str().expect("UTF-8")]
        .iter()
        .chain(words)
        .copied()
        .collect();
    let mut race = start(&plan(&command, folder.path()), folder.path()).expect("a race");
    let runs = METHODS.map(|method| {
        race.set_memory_method(method);
        let run = race.memory_run(2, &mut |_| {}, &Interrupt::default());
        run.expect("a run").expect("which does not fail")
    });
    assert_eq!(race.memory_runs(), runs);
    assert!(race.runs().is_empty());
    assert_eq!(made_by_this_process(), 0, "control groups are left");
    runs.into()
}

/// Returns the number of existing control groups (version 1) that this process created.
fn made_by_this_process() -> usize {
    let name = format!("heapdrome-{}-", std::process::id());
    fn count(folder: &Path, name: &str) -> usize {
        let Ok(entries) = std::fs::read_dir(folder) else {
            return 0;
        };
        let folders = entries.flatten().filter(|entry| entry.path().is_dir());
        folders
            .map(|entry| {
                usize::from(entry.file_name().to_string_lossy().starts_with(name))
                    + count(&entry.path(), name)
            })
            .sum()
    }
    count(Path::new("/sys/fs/cgroup/memory"), &name)
}

fn assert_near(run: &MemoryRun, megabytes: u64) {
    let peak = run.peak_tree.0 >> 20;
    assert!(
        (megabytes..=megabytes + 4).contains(&peak),
        "{peak} MiB by {}",
        run.method
    );
    let highest = run.timeline.iter().map(|sample| sample.anonymous).max();
    assert_eq!(highest, Some(run.peak_tree));
}

// Control groups are named after the process. Parallel tests would count each other's groups, so
// all memory runs are in a single test.
#[test]
fn anonymous_memory_is_read_and_nothing_else() {
    for run in watched(&["touch", "100"]) {
        assert_near(&run, 100);
        // A busy machine allows only a few readings, but a timeline needs more than one.
        assert!(run.timeline.len() > 1, "{} readings", run.timeline.len());
    }
    for run in watched(&["fork", "40"]) {
        assert_near(&run, 120);
    }
    for run in watched(&["rest", "80"]) {
        assert_near(&run, 80);
        let average = run.average.expect("readings").0 >> 20;
        assert!(
            (20..80).contains(&average),
            "between the least and the most: {average}"
        );
        let rest = run.after_idle.expect("it rested for four seconds");
        assert!(rest.idle >= Nanoseconds(1_000_000_000), "{}", rest.idle);
        let kept = rest.parts.anonymous.0 >> 20;
        assert!((20..24).contains(&kept), "{kept} MiB kept");
    }
    for run in watched(&["free-lazily", "80"]) {
        // A machine short of memory may reclaim lazily freed memory at any time, so the readings
        // may show less than the 40 MiB that were freed.
        let most = run.parts.iter().map(|part| part.lazily_freed.0 >> 20).max();
        assert!(
            most.is_some_and(|most| (32..=40).contains(&most)),
            "{:?}",
            run.parts
        );
        let all = run.parts.iter().map(|part| part.anonymous.0 >> 20).max();
        assert!(
            all.is_some_and(|all| (80..84).contains(&all)),
            "{:?}",
            run.parts
        );
        assert!(run.parts.iter().any(|part| part.file > Bytes(0)));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a file");
    std::fs::write(&file, vec![7_u8; 200 << 20]).expect("a file of 200 MiB");
    for run in watched(&["read", "0", file.to_str().expect("UTF-8")]) {
        assert!(
            run.peak_tree < Bytes(4 << 20),
            "{} by {}",
            run.peak_tree,
            run.method
        );
    }
    a_servers_memory_is_read_and_its_loads_is_not();
}

fn a_servers_memory_is_read_and_its_loads_is_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let tool = tool();
    let tool = tool.to_str().expect("UTF-8");
    let mut plan = plan(&[tool, "touch", "200"], folder.path());
    plan.options.server = Some(Server {
        serve: format!("touch ready; exec {tool} touch 60 & wait; sleep 60"),
        ready: "test -e ready".to_owned(),
        ready_within: Nanoseconds(120_000_000_000),
        idle: Nanoseconds(1_000_000_000),
    });
    plan.options.prepare = Some("rm -f ready".to_owned());
    let mut race = start(&plan, folder.path()).expect("a race");
    for method in METHODS {
        race.set_memory_method(method);
        let run = race.memory_run(0, &mut |_| {}, &Interrupt::default());
        let run = run.expect("a run").expect("which does not fail");
        assert_near(&run, 60);
        let rest = run.after_idle.expect("it was left alone");
        assert!(rest.idle >= Nanoseconds(1_000_000_000), "{}", rest.idle);
        assert!(rest.parts.anonymous < run.peak_tree, "its 60 MiB are gone");
    }
}

#[test]
fn what_the_measurer_holds_is_not_counted_to_the_command() {
    let read = selftest::resident_of_true(&common::launcher()).expect("a reading");
    assert!(read.held >= Bytes(400 << 20));
    assert!(
        read.read_directly >= Bytes(400 << 20),
        "the kernel no longer hands the peak down"
    );
    assert!(read.read < Bytes(8 << 20), "{} read", read.read);
}

#[test]
fn the_harness_costs_little_beside_the_run() {
    let overhead = selftest::overhead(&common::launcher(), 20).expect("twenty runs");
    assert!(overhead.whole > overhead.measured);
    // This limit is far above the expected value, because debug builds, busy machines and slow
    // disks are slower.
    assert!(
        overhead.whole < Nanoseconds(500_000_000),
        "{}",
        overhead.whole
    );
}
