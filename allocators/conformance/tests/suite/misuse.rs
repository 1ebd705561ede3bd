//! Misuse of elfmalloc: the message before it aborts the program, the fault at an inaccessible
//! page, and reads of freed blocks.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::libraries::{build, compile};

const TWICE: &str = "elfmalloc: free of a block that is free already: ";
const NO_BLOCK: &str = "elfmalloc: free of an address that is no block: ";
const OVERFLOW: &str = "elfmalloc: write beyond the end of the block at ";
const AROUND: &str = "elfmalloc: write before the beginning or beyond the end of the block at ";
const OTHER_SIZE: &str = "elfmalloc: sized delete of a block of another size: ";
const WRITTEN: &str = "elfmalloc: write to a block after it was freed: ";

const SAID: &[(&str, &str)] = &[
    ("twice", TWICE),
    ("twice-later", TWICE),
    ("twice-medium", TWICE),
    ("twice-large", NO_BLOCK),
    ("zero-twice", TWICE),
    ("interior", NO_BLOCK),
    ("interior-odd", NO_BLOCK),
    ("interior-medium", NO_BLOCK),
    ("interior-large", NO_BLOCK),
    ("frame", NO_BLOCK),
    ("foreign", NO_BLOCK),
    ("overflow-by-zero", OVERFLOW),
    ("overflow-full", OVERFLOW),
    ("overflow-medium", OVERFLOW),
    ("overflow-realloc", OVERFLOW),
    ("overflow-realloc-by-many", OVERFLOW),
    ("underflow-small", OVERFLOW),
    ("underflow-large-by-one", AROUND),
    ("overflow-grown-by-one", AROUND),
    ("size-of-delete", OTHER_SIZE),
    ("write-after-free", WRITTEN),
    ("write-after-realloc", WRITTEN),
];

/// Kinds of misuse that the default variant detects at once, with its messages.
const SAID_BY_DEFAULT: &[(&str, &str)] = &[
    ("twice", TWICE),
    ("twice-later", TWICE),
    ("twice-medium", TWICE),
    ("twice-large", NO_BLOCK),
    ("interior", NO_BLOCK),
    ("interior-odd", NO_BLOCK),
    ("interior-large", NO_BLOCK),
    ("frame", NO_BLOCK),
    ("foreign", NO_BLOCK),
];

fn compiled(folder: &Path) -> PathBuf {
    compile(folder, Path::new("tests/suite/misuse.c"))
}

fn run(program: &Path, library: &Path, what: &str) -> Output {
    let mut command = Command::new(program);
    command.arg(what).env("LD_PRELOAD", library);
    command.output().expect("the program can be run")
}

/// Asserts that each misuse ends the program with its message and the address.
fn all_end(program: &Path, library: &Path, said: &[(&str, &str)]) {
    for (what, said) in said {
        let output = run(program, library, what);
        assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{what}");
        let address = String::from_utf8_lossy(&output.stdout);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(text, format!("{said}{address}\n"), "{what}");
    }
}

#[test]
fn the_hardened_variant_ends_every_misuse_and_names_the_address() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = compiled(folder.path());
    let library = build(
        "heapdrome-preload-elfmalloc-hardened",
        "libelfmalloc_hardened.so",
    );
    all_end(&program, &library, SAID);
    for what in [
        "overflow-large",
        "overflow-grown",
        "underflow-large",
        "zero-write",
        "zero-read",
    ] {
        let output = run(&program, &library, what);
        assert_eq!(output.status.signal(), Some(libc::SIGSEGV), "{what}");
    }
    for what in ["read-after-free", "read-after-realloc", "order", "zero-use"] {
        let output = run(&program, &library, what);
        assert_eq!(output.status.code(), Some(0), "{what}");
    }
}

// Proves that the checks above can fail: they fail with the default variant, which reuses a freed
// block at once and does not overwrite it.
#[test]
fn the_default_variant_reuses_at_once_and_leaves_contents() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = compiled(folder.path());
    let library = build("heapdrome-preload-elfmalloc", "libelfmalloc.so");
    for what in ["read-after-free", "read-after-realloc", "order"] {
        let output = run(&program, &library, what);
        assert_eq!(output.status.code(), Some(1), "{what}");
    }
}

#[test]
fn the_default_variant_ends_a_free_that_no_program_needs() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = compiled(folder.path());
    let library = build("heapdrome-preload-elfmalloc", "libelfmalloc.so");
    all_end(&program, &library, SAID_BY_DEFAULT);
}
