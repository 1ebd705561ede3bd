//! Tests of the library of traces: its traces are listed, recorded, profiled, cut, replayed and
//! raced.

use std::time::Duration;

use serde_json::Value;

use crate::support::{Site, allocator};

#[test]
fn a_trace_of_the_library_is_recorded_with_its_manifest() {
    let site = Site::new();
    let record = ["trace", "library", "-o", "traces", "gcc"];
    let outcome = site.run(&record);
    outcome.ends_with(0);
    let text = std::fs::read_to_string(site.path("traces/manifest.json")).expect("a manifest");
    let manifest: Value = serde_json::from_str(&text).expect("JSON");
    let entry = &manifest["traces"][0];
    assert_eq!(entry["name"], "gcc");
    assert!(
        entry["operations"]
            .as_u64()
            .is_some_and(|count| count > 100_000)
    );
    assert!(entry["cut_at"].is_u64(), "a small trace is cut");
    site.run(&record).complains(2, &["gcc.trace", "--force"]);
    site.run(&["trace", "info", "traces/gcc.trace"])
        .ends_with(0);
    let mut names: Vec<_> = std::fs::read_dir(site.path("traces"))
        .expect("a folder")
        .map(|file| file.expect("a file").file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["gcc.trace", "manifest.json", "suite.toml"]);
    let suite = std::fs::read_to_string(site.path("traces/suite.toml")).expect("a suite");
    let path = site.path("traces/gcc.trace");
    let path = path.canonicalize().expect("it is there");
    assert_eq!(suite.matches(path.to_str().expect("plain")).count(), 2);
    let sound = allocator("");
    let sound = sound.to_str().expect("plain");
    let race = ["suite", "traces/suite.toml", "--quick", "-a", sound];
    let only = ["--only", "gcc", "--only", "gcc-paced", "--rounds", "2"];
    let outcome = site.run(&[&race[..], &only].concat());
    outcome.ends_with(0);
    assert!(outcome.stdout.contains("peak over the floor"));
    site.file("traces/suite.toml", "name = \"mine\"");
    let other = ["trace", "library", "-o", "traces", "git"];
    site.run(&other).complains(2, &["suite.toml", "--force"]);
}

#[test]
fn a_server_that_refuses_root_is_recorded_whoever_runs_heapdrome() {
    let site = Site::new();
    let outcome = site.run(&["trace", "library", "-o", "traces", "postgres"]);
    if outcome.stderr.contains("install postgresql") {
        println!("skipped: PostgreSQL is not installed");
        return;
    }
    outcome.ends_with(0);
    let info = site.run(&["trace", "info", "traces/postgres.trace"]);
    info.ends_with(0);
    let server = info.stdout.matches("/bin/postgres").count();
    assert!(
        server > 3,
        "one process for each connection: {}",
        info.stdout
    );
}

#[test]
fn a_built_in_trace_is_profiled_cut_and_not_checked() {
    let site = Site::new();
    for command in [
        &["profile", "library:redis"][..],
        &["trace", "info", "library:redis"],
        &[
            "trace",
            "cut",
            "library:redis",
            "--to",
            "1ms",
            "-o",
            "cut.trace",
        ],
    ] {
        site.run(command).ends_with(0);
    }
    site.run(&["profile", "library:rediss"])
        .complains(2, &["no such built-in trace: rediss", "redis"]);
    site.run(&["trace", "check", "library:redis", "--", "true"])
        .complains(2, &["record the program"]);
}

#[test]
fn a_program_that_is_missing_is_left_out_with_its_reason() {
    let site = Site::new();
    let folder = site.path("bin");
    std::fs::create_dir(&folder).expect("a folder");
    std::os::unix::fs::symlink("/bin/sh", folder.join("sh")).expect("a link");
    let mut command = site.command(&["trace", "library", "-o", "traces", "gcc", "sqlite"]);
    command.env("PATH", &folder);
    let outcome = site.finish(command);
    outcome.ends_with(4);
    for words in [
        "gcc is left out",
        "install g++",
        "sqlite is left out",
        "no trace was recorded",
    ] {
        assert!(
            outcome.stderr.contains(words),
            "{words}: {}",
            outcome.stderr
        );
    }
}

#[test]
fn an_interrupted_recording_leaves_no_file_behind() {
    let site = Site::new();
    let command = site.command(&["trace", "library", "-o", "traces", "--full", "gcc"]);
    let mut running = site.start(command);
    while !running.stderr().contains("recording") {
        assert!(running.is_running(), "{}", running.stderr());
        std::thread::sleep(Duration::from_millis(5));
    }
    running.signal(libc::SIGINT);
    running.wait().ends_with(130);
    let left = std::fs::read_dir(site.path("traces")).expect("a folder");
    assert_eq!(left.count(), 0);
}

#[test]
fn built_in_traces_are_listed_and_replayed_by_name() {
    let site = Site::new();
    let listed = site.run(&["trace", "library"]);
    listed.ends_with(0);
    assert!(listed.stdout.contains("redis"), "{}", listed.stdout);
    let sound = allocator("");
    let sound = sound.to_str().expect("plain");
    site.run(&["replay", "library:git", "-a", sound])
        .ends_with(0);
    site.run(&["replay", "library:gti"])
        .complains(2, &["no such built-in trace: gti", "did you mean git?"]);
    site.run(&["trace", "library", "-o", "traces", "gti"])
        .complains(
            2,
            &["no such trace in the library: gti", "did you mean git?"],
        );
    assert!(!site.path("traces").exists());
}

#[test]
fn a_replay_whose_result_is_spoiled_is_a_failure_of_the_allocator() {
    let talking = allocator("talking");
    let talking = talking.to_str().expect("plain");
    Site::new()
        .run(&["replay", "library:git", "-a", talking])
        .says(1, &["no valid result", "--touch check"]);
}

#[test]
fn the_suite_of_traces_shows_the_peak_over_the_floor() {
    let (site, sound) = (Site::new(), allocator(""));
    let sound = sound.to_str().expect("plain");
    let only = ["--only", "git", "--only", "git-paced", "--rounds", "5"];
    let mut suite = vec![
        "suite",
        "traces",
        "--quick",
        "-a",
        sound,
        "--json",
        "suite.json",
    ];
    suite.extend(only);
    let outcome = site.run(&suite);
    outcome.ends_with(0);
    for title in [
        "time of one operation",
        "the floor [MiB]",
        "peak over the floor",
    ] {
        assert!(outcome.stdout.contains(title), "{}", outcome.stdout);
    }
    site.run(&["report", "suite.json", "-o", "page.html"])
        .ends_with(0);
    let page = std::fs::read_to_string(site.path("page.html")).expect("a page");
    assert!(page.contains("peak over the floor"));
}
