//! Resident memory of small processes, compared with the C library's allocator.

use std::path::Path;
use std::process::Command;

use crate::libraries::{build, compile};

/// Number of pairs of runs. Runs differ, because the addresses of libraries are random, and so is
/// the number of pages that a page fault maps around the faulting page.
const RUNS: usize = 11;

/// Resident KiB of a process: in total, and on pages that belong to no file.
#[derive(Clone, Copy, Debug)]
struct Resident {
    all: i64,
    anonymous: i64,
}

/// Runs the program; `library` is preloaded, unless it is empty.
fn resident(program: &Path, kibibytes: &str, library: &Path) -> Resident {
    let output = Command::new(program)
        .arg(kibibytes)
        .env("LD_PRELOAD", library)
        .output()
        .expect("the program can be run");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("a text");
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|line| line.split_whitespace().next());
        number.and_then(|number| number.parse().ok())
    };
    Resident {
        all: field("Rss:").expect("Linux 4.14 or later"),
        anonymous: field("Anonymous:").expect("Linux 4.14 or later"),
    }
}

fn median(mut values: Vec<i64>) -> i64 {
    values.sort_unstable();
    values[values.len() / 2]
}

/// Returns the resident KiB that the library adds: the medians of the differences between a run
/// with it and a run without it.
fn excess(program: &Path, kibibytes: &str, library: &Path) -> Resident {
    let runs: Vec<_> = (0..RUNS)
        .map(|_| {
            let system = resident(program, kibibytes, Path::new(""));
            (resident(program, kibibytes, library), system)
        })
        .collect();
    let over = |part: fn(Resident) -> i64| {
        let differences = runs
            .iter()
            .map(|&(library, system)| part(library) - part(system));
        median(differences.collect())
    };
    Resident {
        all: over(|resident| resident.all),
        anonymous: over(|resident| resident.anonymous),
    }
}

/// Arguments of the program in KiB, each with two limits. A limit is the number of KiB by which the
/// resident memory with elfmalloc may exceed that with the C library's allocator. The first applies
/// to all pages, the second to pages that belong to no file.
const LIMITS: [(&str, i64, i64); 4] = [
    ("0", 330, 45),
    ("100", 440, 100),
    ("1024", 430, 75),
    ("2048", 430, 75),
];

#[test]
fn a_small_process_takes_little_more_than_with_the_c_library() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = compile(folder.path(), Path::new("tests/suite/small.c"));
    let library = build("heapdrome-preload-elfmalloc", "libelfmalloc.so");
    for (kibibytes, all, anonymous) in LIMITS {
        let found = excess(&program, kibibytes, &library);
        eprintln!("{kibibytes} KiB in small blocks: {found:?} KiB more than the C library");
        assert!(
            found.all <= all && found.anonymous <= anonymous,
            "{kibibytes} KiB: {found:?}, allowed are {all} and {anonymous}"
        );
    }
}
