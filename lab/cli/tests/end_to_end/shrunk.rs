//! Tests of replays that compare the content of blocks, under heapdrome's own and under faulty
//! allocators. Also tests the shortening of a failing trace.

use std::path::Path;
use std::time::Duration;

use crate::replays::passing_blocks;
use crate::support::{Site, faulty};

/// Returns the lines that `trace shrink` prints for a trace that fails under an allocator.
fn shortened(site: &Site, trace: &str, allocator: &str) -> String {
    let shrink = [
        "trace",
        "shrink",
        trace,
        "-a",
        allocator,
        "-o",
        "short.trace",
    ];
    let outcome = site.run(&[&shrink[..], &["--for", "60s", "--force"]].concat());
    format!("{}\n{}", outcome.stderr, outcome.stdout)
}

/// Replays every built-in trace, and one whose threads exchange blocks, and compares the content of
/// the blocks.
fn serves_every_trace(allocator: &str) {
    let site = Site::new();
    passing_blocks(&site, 1000);
    let listed = site.run(&["trace", "library"]).stdout;
    let names = [
        "gcc",
        "cpython",
        "redis",
        "sqlite",
        "git",
        "ghostscript",
        "rocksdb",
        "node",
    ];
    let mut traces: Vec<_> = names.map(|name| format!("library:{name}")).into();
    assert!(names.iter().all(|name| listed.contains(name)));
    traces.push("library:postgres".to_owned());
    traces.push("app.trace".to_owned());
    for trace in &traces {
        let replay = ["replay", trace, "--speed", "locked", "--touch", "check"];
        let outcome = site.run(&[&replay[..], &["-a", allocator]].concat());
        assert!(
            outcome.status == 0,
            "{trace}: {}\n{}",
            outcome.stderr,
            shortened(&site, trace, allocator)
        );
    }
}

#[test]
fn elfmalloc_serves_every_trace() {
    serves_every_trace("elfmalloc");
}

#[test]
fn elfmalloc_l_serves_every_trace() {
    serves_every_trace("elfmalloc-l");
}

#[test]
fn elfmalloc_hardened_serves_every_trace() {
    serves_every_trace("elfmalloc-hardened");
}

fn text(path: &Path) -> &str {
    path.to_str().expect("plain")
}

#[test]
fn a_failing_trace_is_shortened_to_the_calls_that_fail() {
    let site = Site::new();
    for (fault, most, words) in [
        ("REALLOC_LOSES", 2, "block0 = realloc(block0, "),
        ("NOT_ZEROED", 1, "block0 = calloc("),
    ] {
        let library = faulty(fault);
        let short = format!("{fault}.trace");
        let shrink = [
            "trace",
            "shrink",
            "library:git",
            "-a",
            text(&library),
            "-o",
            &short,
        ];
        let outcome = site.run(&shrink);
        outcome.ends_with(0);
        let calls: Vec<_> = outcome.stdout.lines().collect();
        assert!(calls.len() <= most, "{}", outcome.stdout);
        assert!(outcome.stdout.contains(words), "{}", outcome.stdout);
        let replay = ["replay", &short, "--touch", "check", "-a", text(&library)];
        let failed = site.run(&replay);
        failed.ends_with(1);
        failed.says(1, &["wrong content"]);
        site.run(&["trace", "info", &short]).ends_with(0);
        site.run(&shrink).complains(2, &[&short, "--force"]);
    }
}

#[test]
fn what_does_not_fail_is_not_shortened() {
    let site = Site::new();
    passing_blocks(&site, 1000);
    let shrink = [
        "trace",
        "shrink",
        "app.trace",
        "-a",
        "system",
        "-o",
        "short.trace",
    ];
    site.run(&shrink).complains(2, &["does not fail"]);
    assert!(!site.path("short.trace").exists());
}

#[test]
fn an_interrupted_search_writes_the_shortest_trace_so_far() {
    let site = Site::new();
    let library = faulty("REALLOC_LOSES");
    let shrink = [
        "trace",
        "shrink",
        "library:gcc",
        "-a",
        text(&library),
        "-o",
        "short.trace",
    ];
    let mut running = site.start(site.command(&shrink));
    while !running.stderr().contains("calls fail") {
        assert!(running.is_running(), "{}", running.stderr());
        std::thread::sleep(Duration::from_millis(5));
    }
    running.signal(libc::SIGINT);
    running.wait().ends_with(130);
    site.run(&["trace", "info", "short.trace"]).ends_with(0);
}
