//! Tests of programs whose memory does not come from malloc: their rows show this, or they do not
//! race.

use std::path::Path;
use std::process::Command;

use crate::support::{
    Site, allocator, baseline, opened_library, private_program, program, static_program,
};

/// Returns whether a program of this name is installed; prints that the test is skipped if not.
fn is_installed(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| folder.join(name).is_file());
    if !found {
        eprintln!("skipped: {name} is not installed");
    }
    found
}

/// Races a command under a sound allocator, and returns the remarks on the race.
#[track_caller]
fn remarks(command: &[&str]) -> String {
    let (site, sound) = (Site::new(), allocator(""));
    let (outcome, result) = site.race(&[&sound], &[], command);
    outcome.ends_with(0);
    result["remarks"].to_string()
}

#[test]
fn few_calls_for_much_work_hardly_matter() {
    let told = remarks(&[&program(), "spin", "100000000"]);
    assert!(told.contains("malloc hardly matters"), "{told}");
    assert!(!told.contains("far more memory"), "{told}");
    let told = remarks(&[&program(), "work", "200000"]);
    assert!(!told.contains("hardly matters"), "{told}");
}

#[test]
fn allocators_that_rust_programs_link_are_told_by_their_names() {
    for (names, known) in [
        ("mimalloc", "mi_malloc_aligned"),
        ("snmalloc", "sn_rust_alloc"),
        ("jemalloc", "_rjem_mallocx"),
        ("elfmalloc", "heapdrome_elfmalloc"),
    ] {
        let (site, sound) = (Site::new(), allocator(""));
        let options = ["--memory-runs", "0"];
        let (outcome, result) = site.race(&[&sound], &options, &[&private_program(names)]);
        outcome.ends_with(0);
        let warnings = baseline(&result)["proof"]["warnings"].to_string();
        assert!(warnings.contains(known), "{names}: {warnings}");
        let told = result["remarks"].to_string();
        assert!(told.contains("malloc hardly matters"), "{names}: {told}");
    }
}

#[test]
fn a_pool_without_a_name_is_told_by_its_effect() {
    let told = remarks(&[&private_program("none"), "pool"]);
    assert!(told.contains("malloc hardly matters"), "{told}");
    assert!(told.contains("far more memory"), "{told}");
}

#[test]
fn private_names_of_the_c_library_are_told_by_their_effect() {
    let told = remarks(&[&private_program("none"), "libc"]);
    assert!(told.contains("malloc hardly matters"), "{told}");
    assert!(told.contains("far more memory"), "{told}");
}

#[test]
fn a_deeply_bound_library_that_was_closed_is_told_by_its_effect() {
    let library = opened_library();
    let library = library.to_str().expect("plain");
    let told = remarks(&[&private_program("none"), "open", library]);
    assert!(told.contains("malloc hardly matters"), "{told}");
    assert!(told.contains("far more memory"), "{told}");
}

#[test]
fn memcached_keeps_its_items_in_slabs_of_its_own() {
    if !is_installed("memcached") {
        return;
    }
    let (site, sound) = (Site::new(), allocator(""));
    // The port depends on the process id, so that concurrent tests in other processes rarely use
    // the same one.
    let port = 20_000 + std::process::id() % 10_000;
    let load = format!(
        "exec 3<>/dev/tcp/127.0.0.1/{port}; {{ for i in {{1..2000}}; do \
         printf 'set k%d 0 0 4096 noreply\\r\\n%04096d\\r\\n' $i 7; done; \
         printf 'stats\\r\\nquit\\r\\n'; }} >&3; grep -q curr_items <&3"
    );
    let serve = format!("exec memcached -u root -l 127.0.0.1 -p {port} -U 0");
    let ready = format!("bash -c ': </dev/tcp/127.0.0.1/{port}'");
    let settings = ["--serve", &serve, "--ready", &ready, "--idle", "0s"];
    let (outcome, result) = site.race(&[&sound], &settings, &["bash", "-c", &load]);
    outcome.ends_with(0);
    let told = result["remarks"].to_string();
    assert!(told.contains("malloc hardly matters"), "{told}");
}

#[test]
fn java_keeps_its_objects_in_a_heap_of_its_own() {
    if is_installed("java") {
        let told = remarks(&["java", "-XX:+UseSerialGC", "-Xshare:auto", "-version"]);
        // In such a short run, the processor time decides which of the two notes appears.
        let notes = ["malloc hardly matters", "manages most of its memory itself"];
        assert!(notes.iter().any(|note| told.contains(note)), "{told}");
    }
}

#[test]
fn go_with_cgo_keeps_its_objects_in_a_heap_of_its_own() {
    if !is_installed("go") {
        return;
    }
    let site = Site::new();
    let source = site.file("main.go", include_str!("fixtures/cgo.go"));
    let built = site.path("cgo");
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("go-cache");
    let mut go = Command::new("go");
    go.args(["build", "-o"]).arg(&built).arg(&source);
    go.env("GOCACHE", cache)
        .env("CGO_ENABLED", "1")
        .env("GO111MODULE", "off");
    let output = go.output().expect("go is installed");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let told = remarks(&[built.to_str().expect("plain")]);
    assert!(told.contains("malloc hardly matters"), "{told}");
}

#[test]
fn what_loads_nothing_does_not_race_at_all() {
    let (site, sound) = (Site::new(), allocator(""));
    let (outcome, _) = site.race(&[&sound], &[], &[&static_program()]);
    outcome.says(1, &["static binary"]);
}
