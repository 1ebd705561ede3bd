use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use std::collections::BTreeMap;

use super::*;
use crate::{LibraryFault, system_libc};

/// A registry with its cache and configuration in a temporary folder.
struct Place {
    folder: tempfile::TempDir,
    registry: Registry,
}

fn place() -> Place {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let cache = Cache::at(&folder.path().join("cache")).expect("a usable path");
    let registry = Registry::load(&cache, &folder.path().join("config")).expect("loads");
    Place { folder, registry }
}

fn libc_path() -> PathBuf {
    system_libc().expect("a C library is loaded")
}

fn env(name: &str, value: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(name.to_owned(), value.to_owned())])
}

fn message<T: std::fmt::Debug>(result: Result<T, RegistryError>) -> String {
    let message = result.expect_err("a mistake").to_string();
    assert!(!message.contains('\n'), "more than one line: {message}");
    message
}

#[test]
fn an_unknown_name_brings_the_nearest() {
    let place = place();
    for (name, near) in [
        ("mimaloc3", "mimalloc3"),
        ("jemaloc", "jemalloc"),
        ("gperf", "gperftools"),
        ("snmaloc-check", "snmalloc-checks"),
    ] {
        let said = message(place.registry.entrant(name));
        assert!(
            said.contains(near) && said.contains("did you mean"),
            "{name}: {said}"
        );
    }
    assert!(!message(place.registry.find("qqqqqqqq")).contains("did you mean"));
}

#[test]
fn an_alias_names_the_same_entry() {
    let place = place();
    let entry = place.registry.find("mimalloc-secure").expect("an alias");
    assert_eq!(entry.name, "mimalloc3-secure");
}

#[test]
fn the_system_needs_no_library() {
    let entrant = place().registry.entrant("system").expect("always there");
    assert_eq!(
        (entrant.library, entrant.sha256, entrant.preload.len()),
        (None, None, 0)
    );
    assert!(entrant.version.starts_with("glibc 2."));
    let one = place()
        .registry
        .entrant("system-arena1")
        .expect("always there");
    assert_eq!(one.settings, env("MALLOC_ARENA_MAX", "1"));
}

#[test]
fn a_setting_without_effect_is_no_entrant_and_says_why() {
    let mut place = place();
    let entry = place.registry.find("system-huge").expect("an entry");
    assert_eq!(
        entry.settings,
        env("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")
    );
    for (libc, huge_pages, reason) in [
        ("glibc 2.34", Some("madvise"), "glibc 2.35"),
        ("glibc 2.36", Some("never"), "are off"),
        ("glibc 2.36", None, "no transparent huge pages"),
    ] {
        place.registry.surroundings = Surroundings::of(libc, huge_pages).into();
        let said = message(place.registry.entrant("system-huge"));
        let wanted = ["system-huge is not applicable here", reason];
        assert!(wanted.iter().all(|part| said.contains(part)), "{said}");
        let entry = place.registry.find("system-huge").expect("an entry");
        let state = place.registry.state(entry);
        assert!(matches!(state, State::Unavailable { .. }), "{state:?}");
        place.registry.entrant("system").expect("always there");
    }
    place.registry.surroundings = Surroundings::of("glibc 2.36", Some("madvise")).into();
    let entrant = place.registry.entrant("system-huge").expect("applicable");
    assert_eq!((entrant.library, entrant.preload.len()), (None, 0));
}

#[test]
fn nothing_is_built_by_asking_for_an_entrant() {
    let place = place();
    let result = place.registry.entrant("rpmalloc");
    let expected = matches!(
        result,
        Err(RegistryError::NotInstalled { .. } | RegistryError::NeedsPackage { .. })
    );
    assert!(expected, "{result:?}");
    assert!(!place.folder.path().join("cache").exists());
}

#[test]
fn a_file_must_be_a_library_with_malloc() {
    let place = place();
    let text = place.folder.path().join("text.so");
    std::fs::write(&text, "hello").expect("writable");
    let spec = text.to_string_lossy().into_owned();
    assert!(message(place.registry.entrant(&spec)).contains("not a shared object"));
    assert!(message(place.registry.entrant("./no-such.so")).contains("no such file"));
    let entrant = place
        .registry
        .entrant(&libc_path().to_string_lossy())
        .expect("libc has malloc");
    assert_eq!(entrant.sha256.map(|digest| digest.len()), Some(64));
    assert_eq!(entrant.preload, [libc_path()]);
}

#[test]
fn a_path_with_a_space_is_refused_with_advice() {
    let place = place();
    let path = place.folder.path().join("my lib.so");
    std::fs::copy(libc_path(), &path).expect("writable");
    let said = message(place.registry.entrant(&path.to_string_lossy()));
    assert!(said.contains("space") && said.contains("link"), "{said}");
}

#[test]
fn adding_and_removing_round_trips() {
    let mut place = place();
    place
        .registry
        .add("mine", &libc_path(), &env("K", "a=b"))
        .expect("can be added");
    let entrant = place.registry.entrant("mine").expect("was added");
    assert_eq!(
        (entrant.library, entrant.settings),
        (Some(libc_path()), env("K", "a=b"))
    );
    let cache = Cache::at(&place.folder.path().join("cache")).expect("usable");
    let config = place.folder.path().join("config");
    let again = Registry::load(&cache, &config).expect("loads");
    assert!(
        again
            .list()
            .iter()
            .any(|listing| listing.entry.name == "mine")
    );
    assert_eq!(
        place.registry.remove("mine").expect("can be removed"),
        libc_path()
    );
    assert!(place.registry.find("mine").is_err());
    assert!(libc_path().exists());
}

#[test]
fn one_of_the_users_own_takes_the_place_of_one_that_cannot_be_had() {
    let mut place = place();
    assert!(matches!(
        place.registry.entrant("llalloc"),
        Err(RegistryError::Unavailable { .. })
    ));
    place
        .registry
        .add("llalloc", &libc_path(), &BTreeMap::new())
        .expect("can be added");
    assert_eq!(
        place.registry.entrant("llalloc").expect("is there").library,
        Some(libc_path())
    );
    place.registry.remove("llalloc").expect("can be removed");
    assert!(matches!(
        place.registry.entrant("llalloc"),
        Err(RegistryError::Unavailable { .. })
    ));
}

#[test]
fn bad_names_and_settings_are_refused() {
    let mut place = place();
    for name in ["", "a/b", "a,b", "-x", "a b", "jemalloc", "glibc"] {
        let result = place.registry.add(name, &libc_path(), &BTreeMap::new());
        assert!(
            matches!(result, Err(RegistryError::BadName { .. })),
            "{name}: {result:?}"
        );
    }
    let result = place.registry.add("x", &libc_path(), &env("", "1"));
    assert!(matches!(result, Err(RegistryError::BadSetting { .. })));
    let result = place
        .registry
        .add("x", Path::new("/no/such.so"), &BTreeMap::new());
    assert!(matches!(
        result,
        Err(RegistryError::Library {
            fault: LibraryFault::Missing,
            ..
        })
    ));
    assert!(!place.folder.path().join("config").exists());
}

#[test]
fn what_is_not_heapdromes_is_not_removed() {
    let mut place = place();
    assert!(message(place.registry.remove("system")).contains("system's own"));
    assert!(message(place.registry.remove("rpmalloc")).contains("not built"));
    assert!(message(place.registry.remove("jemalloc-debian")).contains("apt remove"));
}

#[test]
fn a_vanished_library_of_the_users_own_is_told() {
    let mut place = place();
    let path = place.folder.path().join("gone.so");
    std::fs::copy(libc_path(), &path).expect("writable");
    place
        .registry
        .add("gone", &path, &BTreeMap::new())
        .expect("can be added");
    std::fs::remove_file(&path).expect("removable");
    let said = message(place.registry.entrant("gone"));
    assert!(
        said.contains("gone.so") && said.contains("no such file"),
        "{said}"
    );
    let entry = place.registry.find("gone").expect("still listed");
    assert!(matches!(
        place.registry.state(entry),
        State::Unavailable { .. }
    ));
}

#[test]
fn an_interrupted_build_says_so_and_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let cache = Cache::at(&folder.path().join("cache")).expect("a usable path");
    let cache = cache.interrupted_by(Arc::new(AtomicBool::new(true)));
    let registry = Registry::load(&cache, folder.path()).expect("loads");
    match registry.install("rpmalloc", &mut |_| ()) {
        Err(RegistryError::NeedsPackage { .. }) => {
            skipped("without a compiler nothing can be interrupted");
        }
        result => assert!(message(result).contains("interrupted")),
    }
    assert!(!folder.path().join("cache/allocators").exists());
}

/// Prints a message directly to standard error, because the test runner captures ordinary output.
fn skipped(what: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "\nSKIPPED: {what}");
}
