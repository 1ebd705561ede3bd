//! Tests that a lab removes the items of a killed one.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use heapdrome_paging::{Item, Ledger};

/// Environment variable with the working folder of the process that is killed.
const FOLDER: &str = "HEAPDROME_TEST_FOLDER";
const READY: &str = "ready to be killed";

fn group(home: &Path) -> Item {
    Item::Group {
        folder: home.join("heapdrome-paging-of-a-test"),
    }
}

/// The process that is killed. As an ordinary test, it does nothing.
#[test]
fn a_lab_that_makes_something_and_waits() {
    let Some(home) = std::env::var_os(FOLDER) else {
        return;
    };
    let home = Path::new(&home);
    let (ledger, _) = Ledger::open(&home.join("state")).expect("opened");
    let item = group(home);
    let _made = ledger.making(item.clone()).expect("written");
    let Item::Group { folder } = item else {
        unreachable!("it is a group");
    };
    std::fs::create_dir(folder).expect("made");
    println!("\n{READY}");
    std::thread::sleep(std::time::Duration::from_secs(60));
}

#[test]
fn what_a_killed_lab_made_is_removed_by_the_next() {
    let home = tempfile::Builder::new()
        .prefix("a folder ")
        .tempdir()
        .expect("a temporary folder");
    let mut child = Command::new(std::env::current_exe().expect("the test itself"))
        .args([
            "--exact",
            "a_lab_that_makes_something_and_waits",
            "--nocapture",
        ])
        .env(FOLDER, home.path())
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let out = BufReader::new(child.stdout.take().expect("piped"));
    let ready = out
        .lines()
        .map_while(Result::ok)
        .any(|line| line.contains(READY));
    assert!(ready, "the other process is at work");
    let Item::Group { folder } = group(home.path()) else {
        unreachable!("it is a group");
    };
    let state = home.path().join("state");
    let (ledger, leftovers) = Ledger::open(&state).expect("opened");
    assert!(leftovers.removed.is_empty(), "its owner lives");
    assert!(folder.exists());
    drop(ledger);
    child.kill().expect("killed");
    child.wait().expect("waited for");
    let (_, leftovers) = Ledger::open(&state).expect("opened");
    assert_eq!(leftovers.removed, [group(home.path())]);
    assert!(leftovers.failed.is_empty());
    assert!(!folder.exists());
}
