//! Tests of races of the built-in workloads, and of `heapdrome workloads`.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Site, allocator, row};

/// Load of a few milliseconds.
const TINY: [&str; 4] = ["quick-16-1000", "loops=2", "blocks=200", "ops=20"];

/// Returns the texts in an array.
fn texts(value: &Value) -> Vec<&str> {
    let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(Value::as_str).collect()
}

#[test]
fn figures_of_a_workload_are_series_with_ratios() {
    let (site, sound) = (Site::new(), allocator(""));
    let options = ["-w", "rptest", "--rounds", "5", "--memory-runs", "0"];
    let options = [&options[..], &["--csv", "s.csv", "--markdown", "t.md"]].concat();
    let (outcome, result) = site.race(&[&sound], &options, &TINY);
    outcome.ends_with(0);
    let sound = row(&result, &sound);
    assert_eq!(sound["output"], "same");
    for figure in ["operations_per_cpu_s", "overhead", "peak_requested_bytes"] {
        let samples = sound["metrics"][figure]["samples"].as_array();
        assert_eq!(samples.map(Vec::len), Some(5), "{figure}");
        let ratio = &sound["versus_baseline"][figure]["ratio"];
        assert!(ratio.as_f64().is_some_and(|ratio| ratio > 0.0), "{figure}");
    }
    assert!(sound["metrics"]["measured_wall_s"]["median"].is_number());
    let options = &result["options"];
    assert!(texts(&options["figures"]).contains(&"overhead"));
    assert_eq!(options["same_output_required"], true);
    let workload = options["workload"].as_str().unwrap_or_default();
    assert!(workload.starts_with("rptest ") && workload.contains("loops=2"));
    site.in_full().tells("ops per");
    let read = |name: &str| std::fs::read_to_string(site.path(name)).expect("written");
    assert!(read("s.csv").contains("operations_per_cpu_s"));
    assert!(read("t.md").contains("ops per"));
}

#[test]
fn an_allocator_that_corrupts_is_caught_and_not_ranked() {
    let (site, sound) = (Site::new(), allocator(""));
    let overlapping = allocator("overlapping");
    let options = ["-w", "rptest", "--memory-runs", "0"];
    let load = ["quick-16-1000", "loops=5", "blocks=2000", "ops=200"];
    let (outcome, result) = site.race(&[&sound, &overlapping], &options, &load);
    outcome.says(1, &["not in the race", "liboverlapping.so"]);
    assert_eq!(row(&result, &overlapping)["status"], "failed");
    assert_eq!(row(&result, &sound)["status"], "ok");
    outcome.tells("Not counted");
    outcome.tells("exit status 1");
    let tail = row(&result, &overlapping)["failure"]["stderr_tail"].to_string();
    assert!(tail.contains("heapdrome-runner: a block of"), "{tail}");
}

#[test]
fn every_child_of_a_workload_is_proven_to_be_served() {
    let (site, sound) = (Site::new(), allocator(""));
    for (workload, load) in [
        ("short-process", &["processes=3"][..]),
        ("fork-server", &["children=3", "blocks=100"]),
    ] {
        let options = ["-w", workload, "--memory-runs", "0", "--rounds", "1"];
        let (outcome, result) = site.race(&[&sound], &options, load);
        outcome.ends_with(0);
        let proof = &row(&result, &sound)["proof"];
        assert_eq!(proof["processes"], 4, "{workload}");
        assert_eq!(proof["served_processes"], 4, "{workload}");
    }
}

#[test]
fn quick_takes_the_small_preset() {
    let (site, sound) = (Site::new(), allocator(""));
    let options = ["-w", "rptest", "--quick", "--memory-runs", "0"];
    let (outcome, result) = site.race(&[&sound], &options, &["loops=2"]);
    outcome.ends_with(0);
    let command = texts(&result["command"]);
    assert!(command.contains(&"blocks=5000") && command.contains(&"loops=2"));
}

#[test]
fn a_race_of_a_workload_goes_on_after_an_interrupt() {
    let (site, sound) = (Site::new(), allocator(""));
    let sound = sound.to_str().expect("plain").to_owned();
    let mut words = vec!["race", "-a", &sound, "-w", "rptest", "--rounds", "100"];
    words.extend(["--memory-runs", "0", "--"]);
    words.extend(["quick-16-1000", "loops=20", "blocks=1000", "ops=100"]);
    let mut running = site.start(site.command(&words));
    let started = Instant::now();
    while !site.journal_text().contains("{\"line\":\"run\"") {
        assert!(running.is_running(), "it ended before it was disturbed");
        assert!(started.elapsed() < Duration::from_secs(150), "no run");
        std::thread::sleep(Duration::from_millis(5));
    }
    running.signal(libc::SIGINT);
    running.wait().ends_with(130);
    let outcome = site.run(&["race", "--resume", "--json", "result.json"]);
    outcome.ends_with(0);
    outcome.tells("100 rounds");
    site.in_full().tells("ops per");
}

#[test]
fn the_data_of_the_catalog_are_generated_once_and_shared_by_races_that_take_turns() {
    let (site, sound) = (Site::new(), allocator(""));
    let load = ["n=1", "size=3", "parallel=1"];
    let race = |more: &[&str]| {
        let options = ["-w", "catalog", "--memory-runs", "0", "--rounds", "1"];
        site.race(&[&sound], &[&options[..], more].concat(), &load)
    };
    let (first, result) = race(&["-t", "2"]);
    first.ends_with(0);
    assert!(
        first.stderr.contains("generating 1 data sets"),
        "{}",
        first.stderr
    );
    assert_eq!(row(&result, &sound)["output"], "same");
    assert!(row(&result, &sound)["metrics"]["operations_per_cpu_s"].is_object());
    let (again, collection) = race(&["-t", "1,2"]);
    again.ends_with(0);
    assert!(!again.stderr.contains("generating"), "{}", again.stderr);
    assert_eq!(collection["sweep"]["paired"], true);
    assert_eq!(collection["races"].as_array().map(Vec::len), Some(2));
}

#[test]
fn every_workload_is_listed_and_explained() {
    let site = Site::new();
    let list = site.run(&["workloads"]);
    list.ends_with(0);
    for name in ["threadtest", "rptest", "prodcons", "catalog", "build"] {
        list.tells(name);
        let told = site.run(&["workloads", "show", name]);
        told.ends_with(0);
        for heading in ["What it models", "Meaning of its figures", "does not show"] {
            told.tells(heading);
        }
        let wide = told.stdout.lines().find(|line| line.chars().count() > 100);
        assert_eq!(wide, None, "{name}");
    }
    site.run(&["workloads", "show", "rptets"])
        .complains(2, &["rptets", "did you mean rptest?"]);
}

#[test]
fn wrong_parameters_are_told_before_anything_is_built() {
    let site = Site::new();
    let refused = |words: &[&str], told: &[&str]| {
        let arguments = [&["race", "-a", "system"], words].concat();
        site.run(&arguments).complains(2, told);
    };
    refused(
        &["-w", "rptest", "--", "threads=0"],
        &["threads", "not '0'"],
    );
    refused(&["-w", "rptest", "--", "min=9", "max=8"], &["min 9"]);
    refused(
        &["-w", "rptest", "--", "speed=1"],
        &["no parameter 'speed'"],
    );
    refused(&["-w", "rptest", "--", "tiny"], &["tiny", "preset"]);
    refused(&["-w", "rptest", "--", "ls", "-l"], &["cannot read 'ls'"]);
    refused(
        &["-w", "rptest", "--", "blocks=4294967296", "max=1000000"],
        &["memory"],
    );
    refused(&["-w", "catalog", "--", "n=0"], &["n must be"]);
    refused(
        &["-w", "catalog", "--", "n=256", "parallel=256", "size=1000"],
        &["memory"],
    );
    refused(&["-w", "build", "--", "jobs=1"], &["no parameter jobs"]);
    refused(&["-w", "rptset"], &["did you mean rptest?"]);
    refused(&["-t", "2", "--", "true"], &["-t", "-w"]);
    refused(&["-w", "rptest", "-t", "0"], &["--threads"]);
    refused(&["-w", "rptest", "-t", "2,2"], &["2 is given twice"]);
    refused(&["-w", "rptest", "-t", "1,5000"], &["threads", "5000"]);
    refused(&["-w", "build", "-t", "1,2"], &["no parameter 'threads'"]);
    refused(&["-w", "rptest", "-t", "2", "--pin", "0"], &["--pin"]);
    assert!(!site.path(".local/state/heapdrome").exists());
}

#[test]
fn the_runner_is_found_beside_the_executable_itself() {
    let (site, sound) = (Site::new(), allocator(""));
    let sound = sound.to_str().expect("plain");
    let words = ["race", "-a", sound, "-w", "rptest", "--rounds", "1"];
    let words = [&words[..], &["--memory-runs", "0", "--"], &TINY].concat();
    let own = env!("CARGO_BIN_EXE_heapdrome");
    let link = site.path("linked");
    std::os::unix::fs::symlink(own, &link).expect("a link");
    let linked = site.program(link.to_str().expect("plain"), &words);
    site.finish(linked).ends_with(0);
    let alone = site.path("alone");
    std::fs::copy(own, &alone).expect("a copy");
    let alone = site.program(alone.to_str().expect("plain"), &words);
    site.finish(alone)
        .complains(4, &["heapdrome-runner", "cargo install"]);
}
