use std::path::{Path, PathBuf};
use std::process::Command;

use heapdrome_conformance::{Check, Library, Suite, checks};
use object::{Object, ObjectSection, ObjectSymbol};

use crate::libraries::build;

/// Every check, with a fault that it must detect. A check with several faults has several entries.
const FAULTS: &[(&str, &str)] = &[
    ("C", "REALLOC_LOSES"),
    ("C++", "NEW_ALIGNS_NOT"),
    ("threads", "FEW_PER_THREAD"),
    ("aligned", "MISALIGNED"),
    ("fork", "FEW_PER_THREAD"),
    ("exhaustion", "HUGE_GRANTED"),
    // Even without a fault, the library does not export most names, so the C library's functions
    // are used, and the check fails.
    ("exports", "NONE"),
    ("errno-kept", "ERRNO_LOST"),
    ("overflow", "OVERFLOWS"),
    ("too-large", "HUGE_GRANTED"),
    ("unique-empty", "EMPTY_SHARED"),
    ("posix-memalign-errors", "WRITES_ON_ERROR"),
    ("realloc-to-nothing", "REALLOC_KEEPS"),
    ("alignment", "MISALIGNED"),
    ("zeroing", "NOT_ZEROED"),
    ("usable-size", "TOO_USABLE"),
    ("usable-empty", "UNUSABLE"),
    ("extreme-alignment", "ALIGNMENT_REFUSED"),
    ("extreme-alignment", "MISALIGNED"),
    ("realloc-boundaries", "REALLOC_LOSES"),
    ("information", "UNINFORMED"),
    ("page-aligned", "NOT_PAGES"),
    ("no-cxx-runtime", "WITH_CXX"),
    ("new-handler", "NOTHROW_IGNORES"),
    ("new-handler", "NEW_IS_NULL"),
    ("bad-alloc", "NEW_IS_NULL"),
    ("handler-throws", "NEW_IS_NULL"),
    ("nothrow", "NOTHROW_DIES"),
    ("nothrow-handler-throws", "NOTHROW_IGNORES"),
    ("aligned-new", "NEW_ALIGNS_NOT"),
    ("extreme-new", "NEW_ALIGNS_NOT"),
    ("static-lifetime", "FEW"),
    ("tls-destructors", "FEW_PER_THREAD"),
    ("key-destructors", "THREAD_END"),
    ("many-threads", "LEAKS"),
    ("silent-threads", "KEEPS_FOR_FREE"),
    ("outliving-blocks", "LEAKS"),
    ("fork-busy", "FORK_LOCK"),
    ("fork-handlers", "FORK_HANDLER"),
    ("fork-locked", "FORK_LOCK"),
    ("fork-stdio", "FORK_HOLDS"),
    ("fork-streams", "FORK_HOLDS"),
    ("signals", "INTERRUPTED"),
    ("exhaustion-small", "DIES"),
    ("exhaustion-large", "DIES"),
    ("exhaustion-sizes", "DIES"),
    ("exhaustion-small", "SHRINKS_BY_COPYING"),
    ("exhaustion-large", "SHRINKS_BY_COPYING"),
    ("committed-mixed", "SHRINKS_BY_COPYING"),
    ("exhaustion-threads", "DIES"),
    ("exhaustion-throws", "DIES"),
    ("exhaustion-aligned", "DIES"),
    ("exhaustion-throws-aligned", "DIES"),
    ("start-in-little", "RESERVES"),
    ("committed-start", "COMMITS"),
    ("committed-small", "DIES"),
    ("committed-large", "DIES"),
    ("committed-mixed", "DIES"),
    ("limit-set", "RESERVES"),
    ("limit-filled", "DIES"),
    ("limit-returned", "RETAINS"),
    ("loaded-late", "UNLOADED"),
    ("loads-others", "REFUSES"),
];

/// Faults that generated programs must detect.
const PROGRAM_FAULTS: &[&str] = &[
    "OVERLAP",
    "NOT_ZEROED",
    "TOO_USABLE",
    "REALLOC_LOSES",
    "REALLOC_KEEPS",
    "MISALIGNED",
];

pub(crate) fn faulty(folder: &Path, fault: &str) -> PathBuf {
    let library = folder.join(format!("{fault}.so"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/faulty.c");
    let mut compiler = Command::new("gcc");
    compiler.args([
        "-O1",
        "-fPIC",
        "-shared",
        "-fno-builtin",
        "-pthread",
        "-Wl,--no-as-needed",
    ]);
    compiler
        .arg(format!("-D{fault}"))
        .arg("-o")
        .arg(&library)
        .arg(source);
    if fault == "WITH_CXX" {
        compiler.arg("-lstdc++");
    }
    let status = compiler.status().expect("gcc runs");
    assert!(status.success(), "{fault} does not compile");
    library
}

fn check_named(name: &str) -> &'static Check {
    let check = checks().iter().find(|check| check.name == name);
    check.expect("a known check")
}

fn suite(library: PathBuf) -> Suite {
    Suite {
        library: Library::File(library),
        executable: env!("CARGO_BIN_EXE_heapdrome-conformance").into(),
        seed: 1,
        programs: 1,
        steps: 20_000,
        threads: 4,
    }
}

#[test]
fn every_check_notices_a_fault() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut missed = Vec::new();
    for (name, fault) in FAULTS {
        let suite = suite(faulty(folder.path(), fault));
        if suite.check_in(check_named(name), folder.path()).is_ok() {
            missed.push(format!("{name} does not notice {fault}"));
        }
    }
    for check in checks() {
        if !FAULTS.iter().any(|(name, _)| *name == check.name) {
            missed.push(format!("{} is tested with no fault", check.name));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn without_a_fault_the_same_library_passes() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut failures = suite(faulty(folder.path(), "NONE"))
        .run()
        .expect("a temporary folder");
    failures.retain(|failure| failure.check != "exports");
    let texts: Vec<String> = failures.iter().map(ToString::to_string).collect();
    assert!(texts.is_empty(), "{}", texts.join("\n"));
}

/// Size in bytes of an entry in a library's symbol table. The entry has a name, two properties, a
/// section, and from offset [`ADDRESS`] on an address and a size.
const SYMBOL: usize = 24;
const SECTION: usize = 6;
const ADDRESS: usize = 8;

/// Returns the names of a library's exported symbols, and the positions of their entries in the
/// file.
fn exports(library: &[u8]) -> Vec<(String, usize)> {
    let file = object::File::parse(library).expect("it is an object");
    let table = file
        .section_by_name(".dynsym")
        .and_then(|table| table.file_range());
    let (start, _) = table.expect("it has a table of symbols");
    file.dynamic_symbols()
        .filter(ObjectSymbol::is_definition)
        .map(|symbol| {
            let name = symbol.name().expect("it has a name").to_owned();
            (name, start as usize + symbol.index().0 * SYMBOL)
        })
        .collect()
}

#[test]
fn each_name_that_is_missing_or_does_something_else_is_noticed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let whole = build("heapdrome-preload-elfmalloc", "libelfmalloc.so");
    let whole = std::fs::read(whole).expect("it was built");
    let exports = exports(&whole);
    assert!(exports.len() > 40, "{exports:?}");
    let address = |name: &str| {
        let (_, at) = exports
            .iter()
            .find(|(known, _)| known == name)
            .expect("a name of the ABI");
        whole[at + ADDRESS..at + SYMBOL].to_vec()
    };
    let check = check_named("exports");
    let notices = |bytes: &[u8]| {
        let library = folder.path().join("changed.so");
        std::fs::write(&library, bytes).expect("the folder is writable");
        suite(library).check_in(check, folder.path()).is_err()
    };
    assert!(!notices(&whole));
    for (name, at) in &exports {
        let mut changed = whole.clone();
        // Turn the entry into an undefined symbol, like an imported one.
        changed[at + SECTION..at + SYMBOL].fill(0);
        assert!(notices(&changed), "{name} missing");
        // Redirect the symbol to `malloc_info`, which only returns an error for any block or size.
        // Redirect `malloc_info` itself to `malloc_trim`.
        let other = if name == "malloc_info" {
            "malloc_trim"
        } else {
            "malloc_info"
        };
        changed.copy_from_slice(&whole);
        changed[at + ADDRESS..at + SYMBOL].copy_from_slice(&address(other));
        assert!(notices(&changed), "{name} doing what {other} does");
    }
}

#[test]
fn generated_programs_notice_faults_and_shrink() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for fault in PROGRAM_FAULTS {
        // With one thread, the same steps fail in every run, so that shrinking succeeds.
        let suite = Suite {
            threads: 1,
            steps: 4_000,
            ..suite(faulty(folder.path(), fault))
        };
        let failure = suite
            .program(1)
            .expect_err(&format!("{fault} goes unnoticed"));
        let left = failure.program.expect("a program that fails").0.len();
        assert!(
            left < 800,
            "{fault}: {left} steps of 4000 are left: {}",
            failure.what
        );
    }
}
