//! Tests of the proof of which allocator served each entrant. A row without a proof is not ranked,
//! and a library or program that changes is proven again. Also tests `exec`, the user's own
//! allocators, and the display of faults of `operator new`.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{
    Site, allocator, baseline, bundling_program, news_program, program, row, static_program,
};

/// Minimum number of the program's calls of malloc and free: it allocates and frees 20,000 blocks.
const CALLS: u64 = 40_000;

/// Returns the keys of an entrant's proofs, in the order of the journal.
fn proofs_of(site: &Site, entrant: u64) -> Vec<String> {
    let lines = site.journal_text();
    let lines = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line of JSON"));
    let is_proof = |line: &Value| line["line"] == "proof" && line["entrant"] == entrant;
    let keys = lines
        .filter(is_proof)
        .map(|line| line["proof"]["key"].to_string());
    keys.collect()
}

/// Returns a shell command that replaces `old` by `new` before the ninth run.
fn replacement(new: &Path, old: &Path) -> String {
    let (new, old) = (new.display(), old.display());
    format!("echo >> runs; if [ $(wc -l < runs) = 9 ]; then mv {new} {old}; fi")
}

#[track_caller]
fn served_by(row: &Value, library: &Path) {
    assert_eq!(row["status"], "ok", "{row}");
    assert_eq!(row["proof"]["served_by"].as_str(), library.to_str());
    assert!(
        row["proof"]["calls"]
            .as_u64()
            .is_some_and(|calls| calls >= CALLS),
        "{row}"
    );
}

#[test]
fn each_row_tells_who_served_and_how_many_calls() {
    let (site, sound, slow) = (Site::new(), allocator(""), allocator("slow"));
    let (outcome, result) = site.race(&[&sound, &slow], &[], &[&program()]);
    outcome.ends_with(0);
    served_by(row(&result, &sound), &sound);
    served_by(row(&result, &slow), &slow);
    let by = baseline(&result)["proof"]["served_by"]
        .as_str()
        .expect("a path");
    assert!(by.contains("libc.so"), "{by}");
    outcome.tells("libsound.so");
}

#[test]
fn every_process_of_the_tree_is_proven() {
    let (site, sound) = (Site::new(), allocator(""));
    let line = format!("{0}; {0}; true", program());
    let (outcome, result) = site.race(&[&sound], &[], &["sh", "-c", &line]);
    outcome.ends_with(0);
    let proof = &row(&result, &sound)["proof"];
    assert_eq!(proof["processes"], 3, "{proof}");
    assert_eq!(proof["served_processes"], 3, "{proof}");
    assert!(
        proof["calls"]
            .as_u64()
            .is_some_and(|calls| calls >= 2 * CALLS),
        "{proof}"
    );
}

#[test]
fn a_static_binary_is_refused_with_the_reason() {
    let (site, sound) = (Site::new(), allocator(""));
    let (outcome, result) = site.race(&[&sound], &[], &[&static_program()]);
    outcome.says(
        1,
        &["program-static", "static binary", "link it dynamically"],
    );
    let system = baseline(&result);
    assert_eq!(system["status"], "not-served");
    assert!(system["wall_s"].is_null(), "nothing was timed");
}

#[test]
fn a_program_with_an_allocator_of_its_own_is_refused_with_the_reason() {
    let (site, sound) = (Site::new(), allocator(""));
    let (outcome, result) = site.race(&[&sound], &[], &[&bundling_program()]);
    outcome.says(1, &["program-bundling", "allocator"]);
    assert_eq!(outcome.stdout, "", "one line says it all");
    assert_eq!(baseline(&result)["status"], "not-served");
}

#[test]
fn a_static_child_of_a_shell_is_listed() {
    let (site, sound) = (Site::new(), allocator(""));
    let line = format!("{} work 2000000; {} work 10", program(), static_program());
    let (_, result) = site.race(&[&sound], &[], &["sh", "-c", &line]);
    let unserved = row(&result, &sound)["proof"]["unserved"].to_string();
    assert!(
        unserved.contains("program-static") && unserved.contains("static-binary"),
        "{unserved}"
    );
}

#[test]
fn a_child_that_clears_its_environment_is_found_out() {
    let (site, sound) = (Site::new(), allocator(""));
    let (outcome, result) = site.race(&[&sound], &[], &[&program(), "clear"]);
    outcome.ends_with(1);
    let row = row(&result, &sound);
    assert_eq!(row["status"], "not-served", "{row}");
    assert!(
        row["proof"]["unserved"]
            .to_string()
            .contains("cleared-environment"),
        "{row}"
    );
    outcome.says(1, &["LD_PRELOAD", "env -i"]);
}

#[test]
fn a_parent_that_allocates_nothing_hides_no_child() {
    let (site, sound) = (Site::new(), allocator(""));
    let (outcome, result) = site.race(&[&sound], &[], &[&program(), "clear-only"]);
    outcome.says(1, &["LD_PRELOAD"]);
    let unserved = row(&result, &sound)["proof"]["unserved"].to_string();
    assert!(unserved.contains("cleared-environment"), "{unserved}");
}

#[test]
fn a_program_behind_env_i_is_found_out() {
    let (site, sound) = (Site::new(), allocator(""));
    let (outcome, result) = site.race(&[&sound], &[], &["env", "-i", &program()]);
    outcome.says(1, &["LD_PRELOAD"]);
    let unserved = row(&result, &sound)["proof"]["unserved"].to_string();
    assert!(unserved.contains("cleared-environment"), "{unserved}");
}

#[test]
fn a_library_that_changes_during_the_race_is_proven_again() {
    let site = Site::new();
    let (library, next) = (site.path("lib.so"), site.path("next.so"));
    fs::copy(allocator(""), &library).expect("a copy");
    fs::copy(allocator("slow"), &next).expect("another copy");
    let replace = replacement(&next, &library);
    let options = ["--prepare", &replace, "--rounds", "6", "--memory-runs", "0"];
    let (outcome, result) = site.race(&[&library], &options, &[&program()]);
    outcome.says(0, &["lib.so", "changed", "proven again"]);
    assert!(
        result["remarks"].to_string().contains("proven again"),
        "{}",
        result["remarks"]
    );
    let proofs = proofs_of(&site, 2);
    assert_eq!(proofs.len(), 2, "{proofs:?}");
    assert_ne!(proofs[0], proofs[1]);
    assert_eq!(
        proofs_of(&site, 0).len(),
        1,
        "the baseline's proof still holds"
    );
}

#[test]
fn a_program_that_changes_during_the_race_is_proven_again() {
    let (site, sound) = (Site::new(), allocator(""));
    let (old, next) = (site.path("program"), site.path("next"));
    fs::copy(program(), &old).expect("a copy");
    fs::write(&next, "#!/bin/sh\necho changed\n").expect("another program");
    fs::set_permissions(
        &next,
        fs::metadata(&old).expect("it is there").permissions(),
    )
    .expect("runnable");
    let replace = replacement(&next, &old);
    let options = ["--prepare", &replace, "--rounds", "6", "--memory-runs", "0"];
    let command = old.to_str().expect("plain").to_owned();
    let (outcome, _) = site.race(&[&sound], &options, &[&command]);
    outcome.says(outcome.status, &["changed", "proven again"]);
    assert_eq!(proofs_of(&site, 2).len(), 2);
}

#[test]
fn a_program_that_traces_from_the_middle_of_a_race_ends_it() {
    let (site, sound) = (Site::new(), allocator(""));
    let (path, next) = (site.path("program"), site.path("next"));
    fs::copy(program(), &path).expect("a copy");
    let text = format!("#!/bin/sh\nexec '{}' trace-child\n", program());
    fs::write(&next, text).expect("another program");
    let rights = fs::metadata(&path).expect("it is there").permissions();
    fs::set_permissions(&next, rights).expect("runnable");
    let replace = replacement(&next, &path);
    let options = ["--prepare", &replace, "--rounds", "6", "--memory-runs", "0"];
    let command = path.to_str().expect("plain").to_owned();
    let (outcome, _) = site.race(&[&sound], &options, &[&command]);
    outcome.says(3, &["traces programs itself"]);
}

#[test]
fn exec_runs_the_command_under_the_allocator() {
    let (site, sound) = (Site::new(), allocator(""));
    let name = sound.to_str().expect("plain");
    let outcome = site.run(&[
        "exec",
        "-a",
        name,
        "--",
        "grep",
        "-c",
        "libsound.so",
        "/proc/self/maps",
    ]);
    outcome.ends_with(0);
    let outcome = site.run(&[
        "exec",
        "-a",
        "system",
        "--",
        "grep",
        "-c",
        "libsound",
        "/proc/self/maps",
    ]);
    outcome.ends_with(1);
    site.run(&["exec", "-a", name, "--", "sh", "-c", "exit 42"])
        .ends_with(42);
}

#[test]
fn an_allocator_of_the_users_own_is_kept_with_its_settings() {
    let (site, sound) = (Site::new(), allocator(""));
    let name = sound.to_str().expect("plain");
    site.run(&["allocators", "add", "mine", name, "--env", "MINE=seven"])
        .ends_with(0);
    let shown = site.run(&["allocators", "show", "mine"]);
    assert!(shown.ends_with(0).stdout.contains("MINE=seven"));
    let outcome = site.run(&["exec", "-a", "mine", "--", "sh", "-c", "echo $MINE"]);
    assert_eq!(outcome.ends_with(0).stdout, "seven\n");
    let listed = site.run(&["allocators"]);
    assert!(listed.ends_with(0).stdout.contains("mine"));
    let (outcome, result) = site.race(&[Path::new("mine")], &[], &[&program()]);
    outcome.ends_with(0);
    served_by(row(&result, &sound), &sound);
    assert_eq!(row(&result, &sound)["settings"]["MINE"], "seven");
    site.run(&["allocators", "remove", "mine"]).ends_with(0);
    site.run(&["exec", "-a", "mine", "--", "true"])
        .complains(2, &["mine"]);
    assert!(sound.exists(), "only the name is removed");
}

/// Returns all output on a race of `program` whose entrants have a fault of their `operator new`.
/// The fault is added to the plan in the journal, from which the result is recomputed. Only
/// registry entries have such faults, and this machine may lack them.
fn shown_with_fault_of_new(program: &str) -> String {
    let (site, sound) = (Site::new(), allocator(""));
    let (outcome, _) = site.race(&[&sound], &[], &[program]);
    outcome.ends_with(0);
    let journal = site.journal().expect("a journal");
    let text = site.journal_text();
    let (plan, rest) = text.split_once('\n').expect("a plan");
    let mut plan: Value = serde_json::from_str(plan).expect("JSON");
    for entrant in plan["plan"]["entrants"].as_array_mut().expect("entrants") {
        entrant["faults_of_new"] = serde_json::json!([FAULT]);
    }
    fs::write(journal, format!("{plan}\n{rest}")).expect("the site is ours");
    let shown = site.run(&["show", "latest", "--full"]);
    shown.ends_with(0);
    shown.stdout
}

const FAULT: &str = "operator new aborts";

#[test]
fn faults_of_operator_new_are_told_of_programs_that_call_it_only() {
    let shown = shown_with_fault_of_new(&program());
    assert!(!shown.contains(FAULT), "{shown}");
    let shown = shown_with_fault_of_new(&news_program());
    assert!(shown.contains(FAULT), "{shown}");
}
