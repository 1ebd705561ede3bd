//! Tests of requests for a proof: requests that are refused, unusual requests that work, changes
//! that require a new proof, and cleanup.

use crate::bench::{Bench, system};
use heapdrome_schema::Ending;
use heapdrome_witness::{Witness, WitnessError};

#[test]
fn what_cannot_run_is_one_clear_line() {
    let bench = Bench::new();
    let message = |command: &[&str]| {
        let error = bench
            .take(&bench.request(&system(), command))
            .expect_err("cannot run");
        let message = error.to_string();
        assert!(!message.contains('\n'));
        message
    };
    assert!(message(&[]).contains("empty"));
    assert!(message(&["no-such-program-here"]).contains("cannot find the program no-such"));
    assert!(message(&["./nothing"]).contains("cannot find the program ./nothing"));
    std::fs::write(bench.path("data"), "x").unwrap();
    assert!(message(&["./data"]).contains("Permission denied"));
}

#[test]
fn paths_that_the_loader_would_split_are_refused() {
    let bench = Bench::new();
    let mut entrant = bench.bump();
    let spaced = bench.path("a library.so");
    std::fs::copy(bench.path("bump.so"), &spaced).unwrap();
    entrant.preload = vec![spaced];
    let error = bench
        .take(&bench.request(&entrant, &["true"]))
        .expect_err("refused");
    assert!(
        matches!(error, WitnessError::UnspeakablePath { .. }),
        "{error}"
    );
}

#[test]
fn folders_with_spaces_are_no_hindrance() {
    let bench = Bench::new();
    let folder = bench.path("with space: and colon");
    std::fs::create_dir(&folder).unwrap();
    let mut request = bench.request(&bench.bump(), &["ls"]);
    request.directory = Some(folder.clone());
    let report = Witness::new(&folder)
        .unwrap()
        .start(&request)
        .unwrap()
        .finish()
        .unwrap();
    assert!(report.proof.calls > 0);
}

#[test]
fn a_script_without_interpreter_runs_in_the_shell() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new();
    std::fs::write(bench.path("script"), "exit $1\n").unwrap();
    std::fs::set_permissions(bench.path("script"), PermissionsExt::from_mode(0o755)).unwrap();
    assert_eq!(
        bench.run(&system(), &["./script", "4"]).ending,
        Ending::Exited(4)
    );
}

#[test]
fn the_key_follows_all_that_the_proof_depends_on() {
    let bench = Bench::new();
    let witness = Witness::new(bench.folder.path()).unwrap();
    let request = bench.request(&bench.bump(), &["true", "1"]);
    let key = witness.key(&request).unwrap();
    assert_eq!(key.len(), 64);
    assert_eq!(witness.key(&request).unwrap(), key);
    let mut other = request.clone();
    other.command[1] = "2".to_owned();
    assert_ne!(witness.key(&other).unwrap(), key);
    let mut other = request.clone();
    other
        .entrant
        .settings
        .insert("A".to_owned(), "1".to_owned());
    assert_ne!(witness.key(&other).unwrap(), key);
    let mut other = request.clone();
    other.environment.insert("B".into(), "1".into());
    assert_ne!(witness.key(&other).unwrap(), key);
    std::fs::write(bench.path("bump.so"), "another library").unwrap();
    assert_ne!(witness.key(&request).unwrap(), key);
    let report = bench.run(&system(), &["true"]);
    assert_eq!(
        report.proof.key,
        witness.key(&bench.request(&system(), &["true"])).unwrap()
    );
}

#[test]
fn a_preload_that_the_environment_asks_for_is_kept_and_proven() {
    let bench = Bench::new();
    let entrant = bench.bump();
    let source = "#include <unistd.h>
        __attribute__((constructor)) static void begin() { write(1, \"extra\\n\", 6); }";
    let extra = bench.c("extra.so", source, &["-shared", "-fPIC"]);
    let mut request = bench.request(&entrant, &["printenv", "LD_PRELOAD"]);
    let own = bench.text("bump.so");
    // As in measured runs, the entrant's own libraries precede the user's.
    let asked = format!("{own}:{extra}: {extra}");
    request
        .environment
        .insert("LD_PRELOAD".into(), asked.into());
    let report = bench.take(&request).expect("a proof");
    assert_eq!(report.proof.unserved, []);
    let shown = std::fs::read_to_string(bench.path("stdout")).unwrap();
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines.len(), 2, "{shown}");
    assert_eq!(lines[0], "extra");
    let names: Vec<&str> = lines[1].split(':').collect();
    assert!(names[0].ends_with("/libheapdrome_interpose.so"), "{shown}");
    assert_eq!(names[1..], [own, extra.clone()]);

    let witness = Witness::new(bench.folder.path()).unwrap();
    let key = |request: &_| witness.key(request).unwrap();
    let before = key(&request);
    assert_eq!(before, report.proof.key);
    let mut without = request.clone();
    without
        .environment
        .remove(std::ffi::OsStr::new("LD_PRELOAD"));
    assert_ne!(key(&without), before);
    let mut bare = request.clone();
    let name = "no-such-library.so";
    bare.environment.insert("LD_PRELOAD".into(), name.into());
    assert_ne!(key(&bare), key(&without));
    std::fs::write(&extra, "changed").unwrap();
    assert_ne!(key(&request), before);
}

#[test]
fn nothing_is_left_behind() {
    let bench = Bench::new();
    bench.run(&system(), &["printenv", "LD_PRELOAD"]);
    let library = std::fs::read_to_string(bench.path("stdout")).unwrap();
    let folder = std::path::Path::new(&library).parent().unwrap();
    assert!(folder.is_absolute(), "{library}");
    assert!(!folder.exists(), "{library}");
}
