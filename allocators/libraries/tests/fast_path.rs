//! Limits of the number of instructions that `malloc`, `free`, `operator new` and `operator delete`
//! execute for a small block, from the entry point through the return. The instructions are counted
//! in the shipped libraries (`heapdrome_conformance::steps`).
//!
//! If the system forbids ptrace, a test that counts executed instructions only prints a line. It
//! fails if `HEAPDROME_REQUIRE_PTRACE` is set, as in `.ci/run`.

#![cfg(target_arch = "x86_64")]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use heapdrome_conformance::steps::{Pair, Steps, StepsError, count};
use heapdrome_libraries::{GOLDENS, find};

const REQUIRED: &str = "HEAPDROME_REQUIRE_PTRACE";

const C: Pair<'_> = Pair {
    give: "malloc",
    take: "free",
};
/// `operator new` and `operator delete`.
const CXX: Pair<'_> = Pair {
    give: "_Znwm",
    take: "_ZdlPv",
};

/// Returns the steps of a pair; `None` if this process may not count steps and the count is not
/// required.
fn counted(library: &Path, pair: Pair<'_>) -> Option<Steps> {
    match count(library, pair) {
        Ok(steps) => Some(steps),
        Err(error @ StepsError::Forbidden) if std::env::var_os(REQUIRED).is_none() => {
            // Written directly to standard error, because the test's output is captured.
            let _ = writeln!(std::io::stderr(), "skipped: {error}");
            None
        }
        Err(error) => panic!("{}, {pair:?}: {error}", library.display()),
    }
}

/// Returns the steps of a pair in an embedded library, as [`counted`] does.
fn counted_in(library: &str, pair: Pair<'_>) -> Option<Steps> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join(library);
    let carried = find(library).expect("heapdrome carries it");
    std::fs::write(&file, carried.bytes).expect("the folder is writable");
    counted(&file, pair)
}

/// Maximum numbers of instructions in each library: of `malloc` and `operator new`, then of `free`
/// and `operator delete`.
const LIMITS: [(&str, usize, usize); 4] = [
    ("elfmalloc", 16, 24),
    ("elfmalloc-l", 16, 24),
    ("elfmalloc-hardened", 84, 103),
    ("bumpmalloc", 20, 12),
];

#[test]
fn what_runs_keeps_to_its_limit() {
    for (allocator, give, take) in LIMITS {
        for pair in [C, CXX] {
            let library = format!("lib{allocator}.so");
            if let Some(found) = counted_in(&library, pair) {
                assert!(
                    found.give <= give && found.take <= take,
                    "{library}, {pair:?}: {found:?}"
                );
            }
        }
    }
}

// `heapdrome suite own-allocators` reports counts without executing the functions. They must equal
// the counts of executed instructions.
#[test]
fn what_the_goldens_count_is_what_runs() {
    for golden in GOLDENS {
        let library = format!("lib{}.so", golden.allocator);
        let Some(Steps { give, take }) = counted_in(&library, C) else {
            return;
        };
        let runs = if golden.function == C.give {
            give
        } else {
            take
        };
        assert_eq!(golden.instructions(), Some(runs), "{golden:?}");
    }
}

#[test]
fn every_golden_is_kept() {
    for golden in GOLDENS {
        let found = golden.instructions().expect("a way leads to a return");
        assert!(found <= golden.at_most, "{golden:?} takes {found}");
    }
}

/// Compiles a library whose function names end with the functions' numbers of instructions.
fn known(folder: &Path) -> PathBuf {
    let library = folder.join("known.so");
    let status = Command::new("gcc")
        .args(["-shared", "-nostdlib", "-o"])
        .arg(&library)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fast_path.s"))
        .status()
        .expect("gcc runs");
    assert!(status.success(), "fast_path.s does not compile");
    library
}

// Proves that the limits above can fail: one more instruction changes the count, and a shorter path
// that is not taken does not.
#[test]
fn what_runs_is_counted_to_the_instruction_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let library = known(folder.path());
    for (pair, steps) in [
        (("give_4", "take_6"), (4, 6)),
        (("give_5", "take_8"), (5, 8)),
    ] {
        let (give, take) = pair;
        if let Some(found) = counted(&library, Pair { give, take }) {
            assert_eq!((found.give, found.take), steps, "{pair:?}");
        }
    }
    let missing = Pair {
        give: "give_4",
        take: "take_7",
    };
    let error = count(&library, missing).expect_err("there is no such function");
    assert!(error.to_string().contains("take_7"), "{error}");
}
