//! Background thread that purges while the program is idle.

use std::path::Path;
use std::process::{Command, Output};

use crate::libraries::{build, compile};

/// Short decay time in milliseconds, for tests that purge.
const SHORT: &str = "20";
/// Decay time that is practically infinite.
const LONG: &str = "18446744073709551615";

fn run(what: &str, wanted: &str, decay: &str) -> Output {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = compile(folder.path(), Path::new("tests/suite/background.c"));
    let library = build("heapdrome-preload-elfmalloc", "libelfmalloc.so");
    Command::new(program)
        .arg(what)
        .env("LD_PRELOAD", library)
        .env("ELFMALLOC_BACKGROUND_PURGE", wanted)
        .env("ELFMALLOC_DECAY_MS", decay)
        .output()
        .expect("the program can be run")
}

#[test]
fn it_purges_in_silence_and_is_started_anew_in_the_child_of_a_fork() {
    let output = run("fork", "1", SHORT);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn it_ends_with_the_last_other_thread() {
    for decay in [SHORT, LONG] {
        let output = run("end", "1", decay);
        assert!(output.status.success(), "{decay}: {output:?}");
    }
}

// Proves that the checks above can fail: without the thread, the programs report that it is
// missing.
#[test]
fn there_is_none_unless_it_is_asked_for() {
    for (what, wanted) in [("fork", "0"), ("end", "0"), ("end", "yes")] {
        let output = run(what, wanted, SHORT);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains("not so: threads() == 2"), "{text}");
    }
}
