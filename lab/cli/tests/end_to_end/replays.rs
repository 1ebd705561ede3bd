//! Tests of traces that are replayed once, and of traces that are raced.

use std::fs::File;
use std::path::PathBuf;

use heapdrome_trace::{Operation, Recording, Step, Time, Writer};

use crate::support::{Site, allocator, row};

/// Writes a trace of two threads that pass blocks to each other, and returns its path. The last
/// block has size `last`.
pub fn passing_blocks(site: &Site, last: u64) -> PathBuf {
    let path = site.path("app.trace");
    let recording = Recording {
        functions: ["malloc", "free"].map(String::from).to_vec(),
        ..Recording::default()
    };
    let file = File::create(&path).expect("a file can be written");
    let mut writer = Writer::new(file, &recording).expect("a trace");
    let mut step = |number: u64, thread, operation| {
        let time = Time(number * 10_000);
        let step = Step {
            thread,
            time,
            operation,
            stack: None,
        };
        writer.operation(0, step).expect("a step");
    };
    for block in 0..500 {
        let size = if block == 499 { last } else { 1000 };
        let made = Operation::Make {
            function: 0,
            size,
            alignment: 0,
        };
        step(2 * block, (block % 2) as u32, made);
        let freed = Operation::Free { function: 1, block };
        step(2 * block + 1, ((block + 1) % 2) as u32, freed);
    }
    writer.finish().expect("a trace");
    path
}

#[test]
fn a_trace_is_replayed_at_every_speed() {
    let (site, sound) = (Site::new(), allocator(""));
    passing_blocks(&site, 1000);
    let sound = sound.to_str().expect("plain");
    for speed in ["dependencies", "paced", "locked"] {
        let replay = ["replay", "app.trace", "--speed", speed, "-a", sound];
        let outcome = site.run(&replay);
        outcome.ends_with(0);
        for line in [
            "operations",
            "wall time per operation",
            "most live requested bytes",
        ] {
            assert!(outcome.stdout.contains(line), "{}", outcome.stdout);
        }
        assert!(
            outcome.stderr.contains(&format!("at speed {speed}")),
            "{}",
            outcome.stderr
        );
    }
}

#[test]
fn a_call_that_returns_null_ends_a_replay_in_one_line() {
    let site = Site::new();
    passing_blocks(&site, 1 << 60);
    for touch in ["pages", "none"] {
        let outcome = site.run(&["replay", "app.trace", "--touch", touch]);
        outcome.ends_with(1);
        let line = outcome.stderr.lines().last().unwrap_or_default();
        assert!(
            line.contains("out of memory: the allocator returned NULL"),
            "{line}"
        );
        assert!(outcome.stdout.is_empty());
    }
}

#[test]
fn what_is_no_trace_is_refused_in_one_line() {
    let site = Site::new();
    let path = passing_blocks(&site, 1000);
    let whole = std::fs::read(&path).expect("it was written");
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    site.file("damaged", damaged);
    site.file("text", "nothing of the kind, but long enough");
    for (name, words) in [
        ("damaged", "damaged at byte"),
        ("text", "not a trace"),
        ("missing", "No such file"),
    ] {
        for arguments in [
            &["replay", name][..],
            &["race", "--rounds", "1", "--trace", name],
        ] {
            let outcome = site.run(arguments);
            outcome.ends_with(2);
            let line = outcome.stderr.lines().last().unwrap_or_default();
            assert!(line.contains(words) && line.contains(name), "{line}");
            assert!(!outcome.stderr.contains("building "), "{}", outcome.stderr);
        }
    }
    site.file("cut", &whole[..whole.len() - 10]);
    let outcome = site.run(&["replay", "cut"]);
    outcome.ends_with(0);
    assert!(
        outcome.stderr.contains("was cut off at byte"),
        "{}",
        outcome.stderr
    );
    let outcome = site.run(&["replay", "app.trace", "--process", "3"]);
    outcome.ends_with(2);
    assert!(
        outcome.stderr.contains("no operations of process 3"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn a_replay_races_like_any_other_workload() {
    let (site, sound) = (Site::new(), allocator(""));
    passing_blocks(&site, 1000);
    let options = ["--trace", "app.trace", "--speed", "paced"];
    let (outcome, result) = site.race(&[&sound], &options, &[]);
    outcome.ends_with(0);
    assert_eq!(result["options"]["judged"][0], "peak_rss_bytes");
    let workload = result["options"]["workload"].as_str().unwrap_or_default();
    assert!(workload.contains("speed=paced touch=pages"), "{workload}");
    let metrics = &row(&result, &sound)["metrics"];
    for figure in [
        "overhead",
        "ns_per_operation",
        "measured_wall_s",
        "behind_s",
    ] {
        assert!(metrics[figure]["median"].is_number(), "{figure}");
    }
    site.in_full().tells("memory is valid at this speed");
    site.run(&["race", "--speed", "paced", "--", "true"])
        .complains(2, &["--trace"]);
}
