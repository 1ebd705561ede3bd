//! Stack use of allocation: a signal handler may run on a small stack.

use std::path::Path;
use std::process::Command;

use crate::libraries::{build, compile};

/// Maximum number of stack bytes that a library may use beyond those of the C library's allocator.
const LIMIT: usize = 512;

/// Returns the number of bytes of the handler's stack that were used. Idle memory is purged without
/// delay, so that the handler also purges.
fn used(program: &Path, library: &Path) -> usize {
    let mut command = Command::new(program);
    command.env("LD_PRELOAD", library);
    command.env("ELFMALLOC_DECAY_MS", "0");
    let output = command.output().expect("the program can be run");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().expect("a number")
}

#[test]
fn a_signal_handler_allocates_on_a_small_stack() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = compile(folder.path(), Path::new("tests/suite/stack.c"));
    let system = used(&program, Path::new(""));
    for (package, file) in [
        ("heapdrome-preload-elfmalloc", "libelfmalloc.so"),
        ("heapdrome-preload-elfmalloc-l", "libelfmalloc_l.so"),
        (
            "heapdrome-preload-elfmalloc-hardened",
            "libelfmalloc_hardened.so",
        ),
    ] {
        let with_it = used(&program, &build(package, file));
        let more = with_it.saturating_sub(system);
        assert!(more <= LIMIT, "{file}: {more} bytes beyond {system}");
    }
}
