use super::*;

fn cache_in(folder: &TempDir) -> Cache {
    Cache::at(&folder.path().join("cache")).expect("a usable path")
}

fn temporary() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

#[test]
fn opening_writes_nothing() {
    let folder = temporary();
    let cache = cache_in(&folder);
    assert!(!cache.root().exists());
    assert_eq!(cache.clean().expect("nothing to do"), 0);
}

#[test]
fn a_path_that_cannot_be_preloaded_from_is_refused() {
    for bad in ["/tmp/with space", "/tmp/with:colon", "/tmp/$ORIGIN"] {
        let error = Cache::at(Path::new(bad))
            .expect_err("not preloadable")
            .to_string();
        assert!(
            error.contains(bad) && error.contains("HEAPDROME_CACHE"),
            "{error}"
        );
        assert!(!error.contains('\n'));
    }
}

#[test]
fn a_folder_with_other_files_is_neither_used_nor_cleaned() {
    let folder = temporary();
    std::fs::write(folder.path().join("precious"), "x").expect("writable");
    let cache = Cache::at(folder.path()).expect("a usable path");
    assert!(matches!(
        cache.shelf(Shelf::Sources),
        Err(CacheError::NotOurs { .. })
    ));
    assert!(matches!(cache.clean(), Err(CacheError::NotOurs { .. })));
    // A marker of another program is not accepted.
    std::fs::write(folder.path().join(MARKER), "Signature: 8a47\n# by cargo").expect("writable");
    assert!(matches!(cache.clean(), Err(CacheError::NotOurs { .. })));
    assert!(folder.path().join("precious").exists());
}

#[test]
fn clean_removes_what_heapdrome_made_and_nothing_else() {
    let folder = temporary();
    let cache = cache_in(&folder);
    let sources = cache.shelf(Shelf::Sources).expect("writable");
    std::fs::write(sources.join("a"), [0; 1000]).expect("writable");
    std::fs::write(cache.root().join("mine"), "x").expect("writable");
    assert!(cache.clean().expect("can be cleaned") >= 1000);
    assert!(!sources.exists());
    assert!(cache.root().join("mine").exists());
    // The folder is still a cache.
    cache.shelf(Shelf::Sources).expect("usable again");
}

#[test]
fn a_cache_in_use_is_not_cleaned() {
    let folder = temporary();
    let cache = cache_in(&folder);
    let hold = cache.hold().expect("a hold");
    assert!(matches!(cache.clean(), Err(CacheError::InUse { .. })));
    drop(hold);
    cache.lock("thing").expect("a lock");
    cache.clean().expect("can be cleaned");
    let locks = std::fs::read_dir(cache.path(Shelf::Locks)).expect("a folder");
    let left: Vec<_> = locks.flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, [MAIN_LOCK]);
}

#[test]
fn a_lock_file_opened_before_cleaning_still_counts() {
    let folder = temporary();
    let cache = cache_in(&folder);
    let opened = cache.open_lock_file(MAIN_LOCK).expect("a lock file");
    cache.clean().expect("can be cleaned");
    assert!(lock::try_shared(&opened).expect("lockable"));
    assert!(matches!(cache.clean(), Err(CacheError::InUse { .. })));
}

#[test]
fn many_first_uses_at_once_find_one_cache() {
    for _ in 0..100 {
        let folder = temporary();
        let cache = cache_in(&folder);
        let barrier = std::sync::Barrier::new(4);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    barrier.wait();
                    cache.shelf(Shelf::Sources).expect("ours");
                });
            }
        });
    }
}

#[test]
fn a_marker_that_is_being_written_is_not_somebody_elses_file() {
    let folder = temporary();
    let cache = cache_in(&folder);
    std::fs::create_dir(cache.root()).expect("a folder");
    let other = cache.root().join(format!("{NEW_MARKER}1"));
    std::fs::write(other, "Signature").expect("writable");
    cache.shelf(Shelf::Sources).expect("ours");
    let marker = std::fs::read_to_string(cache.root().join(MARKER)).expect("a marker");
    assert_eq!(marker, MARKER_TEXT);
}

#[test]
fn what_is_kept_is_shared_in_one_process_and_with_no_other() {
    let folder = temporary();
    let cache = cache_in(&folder);
    let first = cache.keep("thing").expect("a lock");
    let again = cache.clone().keep("thing").expect("the same lock");
    assert!(Arc::ptr_eq(&first, &again));
    // A second instance of the cache simulates another process.
    let other = cache_in(&folder).interrupted_by(Arc::new(AtomicBool::new(true)));
    drop(first);
    assert!(matches!(
        other.keep("thing"),
        Err(CacheError::Interrupted { .. })
    ));
    drop(again);
    assert!(other.keep("thing").is_ok());
}

#[test]
fn a_lock_keeps_the_second_waiting_until_interrupted() {
    let folder = temporary();
    let cache = cache_in(&folder);
    let first = cache.lock("thing").expect("a lock");
    let interrupt = Arc::new(AtomicBool::new(true));
    let second = cache.clone().interrupted_by(interrupt);
    assert!(matches!(
        second.lock("thing"),
        Err(CacheError::Interrupted { .. })
    ));
    assert!(second.lock("another").is_ok());
    drop(first);
    assert!(second.lock("thing").is_ok());
}

#[test]
fn leftovers_of_a_killed_one_go_and_placing_replaces() {
    let folder = temporary();
    let cache = cache_in(&folder);
    let left = cache
        .shelf(Shelf::Staging)
        .expect("writable")
        .join("thing/new-old");
    std::fs::create_dir_all(&left).expect("writable");
    let lock = cache.lock("thing").expect("a lock");
    assert!(!left.exists());
    let to = cache
        .shelf(Shelf::Allocators)
        .expect("writable")
        .join("thing");
    for text in ["one", "two"] {
        let staging = lock.staging().expect("a folder");
        let made = staging.path().join("made");
        std::fs::create_dir(&made).expect("writable");
        std::fs::write(made.join("text"), text).expect("writable");
        lock.place(&made, &to).expect("can be placed");
        assert_eq!(
            std::fs::read_to_string(to.join("text")).expect("readable"),
            text
        );
    }
}

#[test]
fn an_unwritable_place_is_named() {
    let cache = Cache::at(Path::new("/proc/heapdrome")).expect("a usable path");
    let error = cache
        .shelf(Shelf::Sources)
        .expect_err("not writable")
        .to_string();
    assert!(
        error.contains("/proc/heapdrome") && error.contains("HEAPDROME_CACHE"),
        "{error}"
    );
}
