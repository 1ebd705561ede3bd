//! Tests of the output of a race, of the options of its runs, and of the commands `cache clean` and
//! `doctor`.

use std::fs;

use crate::support::{Site, allocator, baseline, program, row};

#[test]
fn the_json_has_what_the_schema_says() {
    let (site, sound) = (Site::new(), allocator(""));
    let (outcome, result) = site.race(&[&sound], &["--seed", "42"], &[&program(), "nap"]);
    outcome.ends_with(0);
    assert_eq!(result["schema"], 1);
    assert_eq!(result["baseline"], "system");
    assert_eq!(result["seed"], 42);
    assert_eq!(result["rounds"], 2);
    assert_eq!(result["command"], serde_json::json!([program(), "nap"]));
    assert!(
        result["machine"]["kernel"]
            .as_str()
            .is_some_and(|kernel| !kernel.is_empty())
    );
    let row = row(&result, &sound);
    assert_eq!(row["sha256"].as_str().map(str::len), Some(64));
    for figure in [
        "wall_s",
        "user_s",
        "system_s",
        "peak_rss_bytes",
        "minor_faults",
        "major_faults",
    ] {
        assert_eq!(
            row[figure]["samples"].as_array().map(Vec::len),
            Some(2),
            "{figure}"
        );
        assert!(row[figure]["median"].is_number(), "{figure}");
    }
    assert!(
        row["peak_rss_bytes"]["method"].is_string() && row["peak_tree_bytes"]["method"].is_string()
    );
    let wall = row["wall_s"]["median"].as_f64().expect("a number");
    assert!(wall > 1e-4 && wall < 10.0, "{wall} s");
}

#[test]
fn every_sample_is_in_the_csv_and_every_row_in_the_markdown() {
    let (site, sound) = (Site::new(), allocator(""));
    let options = [
        "--rounds",
        "3",
        "--csv",
        "samples.csv",
        "--markdown",
        "table.md",
    ];
    site.race(&[&sound], &options, &[&program()]).0.ends_with(0);
    let csv = fs::read_to_string(site.path("samples.csv")).expect("written");
    let wall = csv
        .lines()
        .filter(|line| line.contains("libsound.so") && line.contains("wall_s"));
    assert_eq!(wall.count(), 3, "{csv}");
    let markdown = fs::read_to_string(site.path("table.md")).expect("written");
    let is_row = |line: &&str| line.starts_with('|') && line.contains("libsound.so");
    assert!(markdown.lines().any(|line| is_row(&line)), "{markdown}");
    assert_eq!(
        site.visible_files(),
        ["result.json", "samples.csv", "table.md"]
    );
}

#[test]
fn show_prints_the_same_table_again() {
    let (site, sound) = (Site::new(), allocator(""));
    let (outcome, _) = site.race(&[&sound], &["--memory-runs", "0"], &[&program()]);
    let path = site.path("result.json");
    let shown = site.run(&["show", path.to_str().expect("plain")]);
    assert_eq!(shown.ends_with(0).stdout, outcome.ends_with(0).stdout);
    site.run(&["show", "result.json", "--json", "again.json"])
        .ends_with(0);
    let read = |name: &str| fs::read_to_string(site.path(name)).expect("written");
    assert_eq!(read("again.json"), read("result.json"));
}

#[test]
fn the_table_is_plain_and_fits_eighty_columns() {
    let (site, sound, slow) = (Site::new(), allocator(""), allocator("slow"));
    let (outcome, _) = site.race(&[&sound, &slow], &[], &[&program()]);
    let text = &outcome.ends_with(0).stdout;
    assert!(!text.contains('\u{1b}'), "no colours outside a terminal");
    // A line with a single path may be longer, because a path is never broken.
    let breakable = |line: &&str| line.trim_end_matches('\\').split_whitespace().count() > 1;
    for line in text.lines().filter(breakable) {
        assert!(line.chars().count() <= 80, "too long: {line}\n{text}");
    }
    let told: Vec<&str> = outcome.stderr.lines().collect();
    let is_end = |line: &&str| line.contains("expected time left: ");
    assert!(
        told.iter().all(is_end) && told.len() == 1,
        "quiet outside a terminal: {told:?}"
    );
}

#[test]
fn shared_results_do_not_name_the_home_folder() {
    let site = Site::new();
    let library = site.path("lib.so");
    fs::copy(allocator(""), &library).expect("a copy");
    let options = ["--redact", "--csv", "samples.csv", "--markdown", "table.md"];
    let (outcome, result) = site.race(&[&library], &options, &[&program()]);
    outcome.ends_with(0);
    let home = site.path("");
    let home = home.to_str().expect("plain").trim_end_matches('/');
    for name in ["result.json", "samples.csv", "table.md"] {
        let text = fs::read_to_string(site.path(name)).expect("written");
        assert!(!text.contains(home), "{name} names {home}");
    }
    assert!(result.to_string().contains("$HOME/lib.so"), "{result}");
}

#[test]
fn a_result_of_an_earlier_race_is_replaced_whole() {
    let (site, sound) = (Site::new(), allocator(""));
    site.file("result.json", "x".repeat(1 << 20));
    let (outcome, result) = site.race(&[&sound], &["--memory-runs", "0"], &[&program()]);
    outcome.ends_with(0);
    assert_eq!(result["schema"], 1);
    assert_eq!(site.visible_files(), ["result.json"]);
}

/// Returns the number of lines in a file to which a hook appends.
fn lines(site: &Site, name: &str) -> usize {
    fs::read_to_string(site.path(name))
        .unwrap_or_default()
        .lines()
        .count()
}

#[test]
fn hooks_run_when_they_should_and_without_the_allocator() {
    let (site, sound) = (Site::new(), allocator(""));
    let hook = |name: &str| format!("echo \"$LD_PRELOAD\" >> {}", site.path(name).display());
    let [setup, prepare, cleanup, command] = ["setup", "prepare", "cleanup", "command"].map(hook);
    let options = [
        "--setup",
        &setup,
        "--prepare",
        &prepare,
        "--cleanup",
        &cleanup,
        "--warmup",
        "1",
        "--memory-runs",
        "0",
        "--rounds",
        "2",
    ];
    site.race(&[&sound], &options, &["sh", "-c", &command])
        .0
        .ends_with(0);
    assert_eq!((lines(&site, "setup"), lines(&site, "cleanup")), (1, 1));
    assert!(
        lines(&site, "command") >= 3 * 3,
        "a warm-up round and two rounds of three entrants"
    );
    assert_eq!(
        lines(&site, "prepare"),
        lines(&site, "command"),
        "once before each run"
    );
    let seen = fs::read_to_string(site.path("prepare")).expect("written");
    assert_eq!(seen.trim(), "", "the hooks run without the allocator");
}

#[test]
fn the_command_gets_its_folder_input_and_environment() {
    let (site, sound) = (Site::new(), allocator(""));
    let input = site.file("input", "a line of input\n");
    fs::create_dir(site.path("a folder")).expect("a folder");
    let folder = site.path("a folder");
    let options = [
        "--directory",
        folder.to_str().expect("plain"),
        "--stdin",
        input.to_str().expect("plain"),
        "--env",
        "COLOUR=green blue",
        "--memory-runs",
        "0",
    ];
    let line = format!(
        "pwd > seen; cat >> seen; echo \"$COLOUR\" >> seen; {}",
        program()
    );
    site.race(&[&sound], &options, &["sh", "-c", &line])
        .0
        .ends_with(0);
    let seen = fs::read_to_string(site.path("a folder/seen")).expect("it ran there");
    let real = folder.canonicalize().expect("it is there");
    assert_eq!(
        seen,
        format!("{}\na line of input\ngreen blue\n", real.display())
    );
}

#[test]
fn the_command_runs_on_the_processors_that_it_is_pinned_to() {
    let (site, sound) = (Site::new(), allocator(""));
    let line = format!(
        "grep Cpus_allowed_list /proc/self/status >> pinned; {}",
        program()
    );
    let options = ["--pin", "0", "--memory-runs", "0"];
    site.race(&[&sound], &options, &["sh", "-c", &line])
        .0
        .ends_with(0);
    let seen = fs::read_to_string(site.path("pinned")).expect("each run wrote a line");
    // The runs under the witness come first; two rounds of three entrants are measured.
    let mut measured = seen.lines().rev().take(6);
    assert!(measured.all(|line| line.ends_with("\t0")), "{seen}");
}

#[test]
fn another_baseline_can_be_chosen() {
    let (site, sound, slow) = (Site::new(), allocator(""), allocator("slow"));
    let options = [
        "--baseline",
        slow.to_str().expect("plain"),
        "--rounds",
        "20",
        "--memory-runs",
        "0",
    ];
    let (outcome, result) = site.race(&[&sound, &slow], &options, &[&program()]);
    outcome.ends_with(0);
    assert_eq!(baseline(&result)["library"].as_str(), slow.to_str());
    let versus = &row(&result, &sound)["versus_baseline"]["wall_s"];
    assert_eq!(versus["verdict"], "faster", "{versus}");
    outcome.tells("Use it:");
    let deployed = site.run(&["show", "result.json", "--deploy"]);
    let preload = format!("LD_PRELOAD={}", sound.display());
    deployed.ends_with(0).tells(&preload);
}

#[test]
fn the_cache_is_cleaned_and_only_the_cache() {
    let (site, sound) = (Site::new(), allocator(""));
    site.race(&[&sound], &["--memory-runs", "0"], &[&program()])
        .0
        .ends_with(0);
    let cache = site.run(&["cache", "path"]);
    let cache = std::path::PathBuf::from(cache.ends_with(0).stdout.trim());
    assert!(cache.starts_with(site.path(".cache")) && cache.is_dir());
    site.run(&["cache", "clean"]).ends_with(0);
    let mut left: Vec<_> = fs::read_dir(&cache).expect("a folder").flatten().collect();
    left.sort_by_key(fs::DirEntry::file_name);
    let names: Vec<_> = left.iter().map(fs::DirEntry::file_name).collect();
    assert_eq!(
        names,
        ["CACHEDIR.TAG", "locks"],
        "others may hold the lock; the rest is gone"
    );
    assert!(site.path("result.json").exists());
    site.run(&["cache", "clean"]).ends_with(0);
}

#[test]
fn the_doctor_examines_the_machine() {
    let outcome = Site::new().run(&["doctor"]);
    for subject in ["load", "swap", "overcommit"] {
        assert!(
            outcome.stdout.to_lowercase().contains(subject),
            "{subject}:\n{}",
            outcome.stdout
        );
    }
    outcome.ends_with(0);
}

#[test]
fn the_build_is_raced_with_every_process_proven() {
    let (site, sound) = (Site::new(), allocator(""));
    let name = sound.to_str().expect("plain");
    let outcome = site.run(&[
        "race", "-w", "build", "--quick", "--rounds", "2", "-a", name, "--json", "r.json",
    ]);
    outcome.ends_with(0);
    let text = fs::read_to_string(site.path("r.json")).expect("written");
    let result: serde_json::Value = serde_json::from_str(&text).expect("a result");
    let proof = &row(&result, &sound)["proof"];
    // There are ten translation units, each of which runs at least g++, cc1plus and as. Ninja and
    // the archiver add two processes. A shell that replaces itself with its command adds no
    // process.
    assert!(
        proof["processes"].as_u64().is_some_and(|count| count >= 32),
        "{proof}"
    );
    assert_eq!(proof["processes"], proof["served_processes"], "{proof}");
    assert!(
        proof["calls"]
            .as_u64()
            .is_some_and(|calls| calls > 1_000_000),
        "{proof}"
    );
    let shown = site.run(&["show", "r.json", "--full"]);
    shown.ends_with(0).tells("geos-src 0.2.0");
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let (site, sound) = (Site::new(), allocator(""));
    let binary = env!("CARGO_BIN_EXE_heapdrome");
    let race = format!(
        "{{ '{binary}' race -a {} --rounds 2 -- {}; echo $? >status; }} 2>&1 | true",
        sound.display(),
        program()
    );
    site.finish(site.program("sh", &["-c", &race])).ends_with(0);
    let status = fs::read_to_string(site.path("status")).expect("the race ended");
    assert_eq!(status.trim(), "0");
}
