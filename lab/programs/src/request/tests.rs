use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use super::*;
use crate::{Settings, find};

fn request(cache: &Cache) -> Request<'_> {
    let program = find("sqlite").expect("the program is known");
    Request {
        program,
        values: program.values(&Settings::new()).expect("defaults"),
        cache,
        tools: Vec::new(),
        versions: Vec::new(),
    }
}

fn names(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let name = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    entries.map(name).collect()
}

/// Returns the error of an attempt to write an input of 8 MiB.
fn refused(cache: &Cache) -> String {
    let made = request(cache).input(&["large"], &mut |_| {}, &|folder| {
        stream_file(&folder.join("large"), |file| {
            (0..8192).try_for_each(|_| file.write_all(&[1; 1024]))
        })
    });
    made.err().expect("it cannot be written").to_string()
}

#[test]
fn an_input_is_made_once_and_another_stamp_is_another_input() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let cache = Cache::at(folder.path()).expect("a cache");
    let made = std::cell::Cell::new(0);
    let make = |stamp: &str| {
        let fill = |folder: &Path| {
            made.set(made.get() + 1);
            write_file(&folder.join("text"), "text")
        };
        let input = request(&cache).input(&[stamp], &mut |_| {}, &fill);
        input.expect("written").directory
    };
    let first = make("one");
    assert!(first.join("text").is_file());
    assert_eq!(make("one"), first);
    assert_eq!(made.get(), 1);
    assert_ne!(make("two"), first);
    assert_eq!(made.get(), 2);
}

#[test]
fn an_input_that_fails_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let cache = Cache::at(folder.path()).expect("a cache");
    let failed = request(&cache).input(&["x"], &mut |_| {}, &|folder| {
        write_file(&folder.join("half"), "half of it")?;
        Err(ProgramError::Interrupted)
    });
    assert!(failed.is_err());
    assert_eq!(names(&cache.path(Shelf::Workloads)), [""; 0]);
    assert_eq!(names(&cache.path(Shelf::Staging)), [""; 0]);
}

#[test]
fn a_generator_that_fails_is_told_with_its_last_line() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let cache = Cache::at(folder.path()).expect("a cache");
    let error = request(&cache).generate("sh".as_ref(), &|command| {
        command.args([
            "-c",
            "echo first; echo database or disk is full >&2; exit 1",
        ]);
    });
    assert_eq!(
        error.expect_err("it fails").to_string(),
        "cannot generate the input of sqlite: sh ended with exit status: 1: database or disk is full"
    );
}

#[test]
fn a_cache_that_may_not_be_written_to_is_told() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    if heapdrome_system::rights::is_root() {
        eprintln!("skipped: root may write everywhere");
        return;
    }
    let mode = std::fs::Permissions::from_mode(0o500);
    std::fs::set_permissions(folder.path(), mode).expect("one's own folder");
    let cache = Cache::at(&folder.path().join("cache")).expect("a cache");
    let message = refused(&cache);
    assert!(message.contains("ermission denied"), "{message}");
    assert!(!message.contains('\n'), "{message}");
}

/// A mounted file system, which dropping this value unmounts.
struct Mounted<'a>(&'a Path);

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}

#[test]
fn a_full_disk_is_told_and_nothing_stays() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=2m", "heapdrome-test"]);
    let mounted = mount.arg(folder.path()).output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: a small disk cannot be mounted here");
        return;
    }
    let _mounted = Mounted(folder.path());
    let cache = Cache::at(&folder.path().join("cache")).expect("a cache");
    let message = refused(&cache);
    assert!(message.contains("No space left on device"), "{message}");
    assert!(
        message.contains("free some space, or set HEAPDROME_CACHE"),
        "{message}"
    );
    assert!(!message.contains('\n'), "{message}");
    assert_eq!(names(&cache.path(Shelf::Workloads)), [""; 0]);
    assert_eq!(names(&cache.path(Shelf::Staging)), [""; 0]);
}
