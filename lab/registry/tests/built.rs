//! Tests that fetch and build an allocator, or compile the programs that check an allocator.

use std::path::PathBuf;
use std::process::Command;

use heapdrome_packages::Cache;
use heapdrome_registry::{
    BuildEvent, CheckOutcome, CheckResult, Checks, Level, Registry, RegistryError,
};
use heapdrome_schema::Entrant;
use tempfile::TempDir;

/// Creates a cache and a registry in a temporary folder. Dropping the folder deletes it.
fn place() -> (TempDir, Cache, Registry) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let cache = Cache::at(&folder.path().join("cache")).expect("a usable path");
    let registry = Registry::load(&cache, &folder.path().join("config")).expect("loads");
    (folder, cache, registry)
}

/// Prints a message directly to standard error, because the test runner captures ordinary output.
fn skipped(what: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "\nSKIPPED: {what}");
}

/// Builds the smallest allocator, checks it, and removes it. Reports a skip if its sources cannot
/// be fetched, or a program that the build needs is missing.
#[test]
fn the_smallest_allocator_is_built_checked_and_removed() {
    let (_folder, cache, mut registry) = place();
    let mut events = Vec::new();
    let installed = match registry.install("rpmalloc", &mut |event| events.push(event)) {
        Err(error @ (RegistryError::Fetch(_) | RegistryError::NeedsPackage { .. })) => {
            skipped(&format!("rpmalloc was not built and not checked: {error}"));
            return;
        }
        other => other.expect("rpmalloc can be built"),
    };
    assert!(installed.seconds.is_some());
    assert!(
        matches!(events.first(), Some(BuildEvent::Fetching { .. })),
        "{events:?}"
    );
    assert!(
        matches!(events.last(), Some(BuildEvent::Finished { .. })),
        "{events:?}"
    );
    let log = installed.path.with_file_name("build.log");
    assert!(
        std::fs::read_to_string(log)
            .expect("the log is kept")
            .contains("-O3 -DNDEBUG")
    );
    let again = registry.install("rpmalloc", &mut |_| ()).expect("is there");
    assert_eq!((again.path, again.seconds), (installed.path.clone(), None));
    let entrant = registry.entrant("rpmalloc").expect("is there");
    assert_eq!(entrant.library.as_deref(), Some(installed.path.as_path()));
    a_known_fault_is_seen(&cache, &entrant);
    registry.remove("rpmalloc").expect("can be removed");
    assert!(!installed.path.exists());
}

fn a_known_fault_is_seen(cache: &Cache, rpmalloc: &Entrant) {
    let checks = Checks::prepare(cache, Level::Basic).expect("the checks can be compiled");
    let results = results_of(&checks, rpmalloc);
    let of = |name| results.iter().find(|result| result.program == name);
    let outcome = |name| of(name).map(|result| &result.outcome);
    assert_eq!(outcome("C"), Some(&CheckOutcome::Passed));
    let broke = matches!(outcome("aligned"), Some(CheckOutcome::Broke(_)));
    assert!(broke, "a known fault is not seen: {results:?}");
    let aligned = of("aligned").expect("a result");
    assert!(aligned.source.is_file(), "{aligned:?}");
    let again = Command::new("sh").args(["-c", &aligned.again]).output();
    let again = again.expect("a shell");
    assert!(!again.status.success(), "{aligned:?}: {again:?}");
}

fn results_of(checks: &Checks, entrant: &Entrant) -> Vec<CheckResult> {
    let mut results = Vec::new();
    let ran = checks.run(entrant, |result| results.push(result));
    ran.expect("the checks can be run");
    results
}

#[test]
fn where_another_allocator_serves_only_the_basic_checks_run() {
    let (_folder, cache, registry) = place();
    let missing = PathBuf::from("/no/such/library.so");
    let entrant = Entrant {
        library: Some(missing.clone()),
        preload: vec![missing],
        ..registry.entrant("system").expect("is there")
    };
    let checks = match Checks::prepare(&cache, Level::Strict) {
        Err(RegistryError::NeedsPackage { .. }) => {
            return skipped("without a compiler there is nothing to check with");
        }
        checks => checks.expect("the checks can be compiled"),
    };
    let results = results_of(&checks, &entrant);
    let names: Vec<&str> = results.iter().map(|result| result.program).collect();
    let basic = ["C", "C++", "threads", "aligned", "fork", "exhaustion"];
    assert_eq!(names, basic);
    for result in results {
        let missed = matches!(result.outcome, CheckOutcome::NotServed(_));
        assert!(missed, "{}: {:?}", result.program, result.outcome);
    }
}
