//! elfmalloc's settings, except those of statistics and of the background thread, which have their
//! own tests. The allocator must work with each setting. Each must have a visible effect, which
//! proves that its name is right.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use heapdrome_conformance::Program;
use serde_json::Value;

use crate::libraries::{build, compile, execute};

/// Setting that makes the allocator print statistics to standard error at exit.
const COUNTS: (&str, &str) = ("ELFMALLOC_STATISTICS", "json");

fn elfmalloc() -> PathBuf {
    build("heapdrome-preload-elfmalloc", "libelfmalloc.so")
}

fn elfmalloc_l() -> PathBuf {
    build("heapdrome-preload-elfmalloc-l", "libelfmalloc_l.so")
}

fn elfmalloc_hardened() -> PathBuf {
    build(
        "heapdrome-preload-elfmalloc-hardened",
        "libelfmalloc_hardened.so",
    )
}

#[test]
fn generated_programs_pass_with_every_setting_at_its_ends() {
    let program = Program::generate(13, 4, 5_000);
    for library in [elfmalloc(), elfmalloc_l(), elfmalloc_hardened()] {
        for setting in [
            ("ELFMALLOC_DECAY_MS", "0"),
            ("ELFMALLOC_DECAY_MS", "18446744073709551615"),
            ("ELFMALLOC_MAGAZINE_KIB", "0"),
            ("ELFMALLOC_MAGAZINE_KIB", "18446744073709551615"),
            ("ELFMALLOC_HUGE_PAGES", "0"),
            ("ELFMALLOC_HUGE_PAGES", "1"),
            ("ELFMALLOC_OVERWRITE", "1"),
        ] {
            let output = execute(&library, &program, &[setting]);
            assert!(output.status.success(), "{setting:?}: {output:?}");
        }
    }
}

#[test]
fn an_invalid_value_is_ignored_and_named_if_wanted() {
    let program = Program::generate(13, 1, 10);
    let invalid = [
        ("ELFMALLOC_DECAY_MS", "8k"),
        ("ELFMALLOC_STATISTICS", "xml"),
    ];
    for library in [elfmalloc(), elfmalloc_l(), elfmalloc_hardened()] {
        for (verbose, lines) in [
            ("0", ""),
            (
                "1",
                "elfmalloc: ignored ELFMALLOC_STATISTICS: expected text or json, got \"xml\"\n\
                 elfmalloc: ignored ELFMALLOC_DECAY_MS: expected a decimal number, got \"8k\"\n",
            ),
        ] {
            let [decay, statistics] = invalid;
            let settings = [decay, statistics, ("ELFMALLOC_VERBOSE", verbose)];
            let output = execute(&library, &program, &settings);
            assert!(output.status.success(), "{settings:?}: {output:?}");
            assert_eq!(
                String::from_utf8_lossy(&output.stderr),
                lines,
                "{settings:?}"
            );
        }
    }
}

/// Runs the load `what` of `settings.c`.
fn load(program: &Path, what: &str, library: &Path, settings: &[(&str, &str)]) -> Output {
    let mut command = Command::new(program);
    command.arg(what).env("LD_PRELOAD", library);
    command.envs(settings.iter().copied());
    let output = command.output().expect("the program can be run");
    assert!(output.status.success(), "{what}, {settings:?}: {output:?}");
    output
}

/// Runs a load, and returns the value `name` from the statistics that the allocator prints at exit.
fn counted(program: &Path, what: &str, setting: Option<(&str, &str)>, name: &str) -> u64 {
    let settings: Vec<_> = setting.into_iter().chain([COUNTS]).collect();
    let output = load(program, what, &elfmalloc(), &settings);
    let report: Value = serde_json::from_slice(&output.stderr).expect("it is JSON");
    let number = report[name].as_u64();
    number.unwrap_or_else(|| panic!("no number {name} in {report}"))
}

fn compiled(folder: &Path) -> PathBuf {
    compile(folder, Path::new("tests/suite/settings.c"))
}

#[test]
fn magazines_of_no_kibibytes_hold_a_block_each() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = compiled(folder.path());
    let refills = |value: Option<&str>| {
        let setting = value.map(|value| ("ELFMALLOC_MAGAZINE_KIB", value));
        counted(&program, "refills", setting, "refills")
    };
    // The load allocates 10,000 blocks before it frees any.
    let (none, unset) = (refills(Some("0")), refills(None));
    assert!(none >= 10_000, "{none}");
    assert!(unset <= 2_500, "{unset}");
    for same in ["64", "64k", ""] {
        let refills = refills(Some(same));
        assert!(refills <= 2_500, "{same}: {refills}");
    }
}

#[test]
fn memory_is_purged_at_once_or_never_as_the_decay_time_says() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = compiled(folder.path());
    let purges = |value: &str| {
        let setting = Some(("ELFMALLOC_DECAY_MS", value));
        counted(&program, "purges", setting, "purges")
    };
    assert_ne!(purges("0"), 0);
    assert_eq!(purges("18446744073709551615"), 0);
}

#[test]
fn freed_blocks_are_overwritten_wholly_where_that_is_asked_for() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = compiled(folder.path());
    let stale = |value| {
        number(
            &program,
            "stale",
            &elfmalloc_hardened(),
            &[("ELFMALLOC_OVERWRITE", value)],
        )
    };
    assert_ne!(stale("0"), 0);
    assert_eq!(stale("1"), 0);
}

/// Runs a load, and returns the number that it prints.
fn number(program: &Path, what: &str, library: &Path, settings: &[(&str, &str)]) -> usize {
    let output = load(program, what, library, settings);
    let text = String::from_utf8(output.stdout).expect("it is text");
    text.trim_end().parse().expect("it is a number")
}

/// Runs the load `what`: `touched` or `untouched` small blocks, or one large block that is a `run`
/// of units or a `mapping`. Returns whether the allocator requested huge pages for any mapping.
fn asked_for_huge(program: &Path, what: &str, library: &Path, value: Option<&str>) -> bool {
    let setting = value.map(|value| ("ELFMALLOC_HUGE_PAGES", value));
    let settings: Vec<_> = setting.into_iter().collect();
    number(program, what, library, &settings) != 0
}

#[test]
fn huge_pages_are_asked_for_as_the_setting_or_else_the_library_says() {
    if !Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
        println!("not run: this kernel has no transparent huge pages");
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = compiled(folder.path());
    for (library, by_itself) in [(elfmalloc(), true), (elfmalloc_l(), false)] {
        for (value, expected) in [
            (None, by_itself),
            (Some("off"), by_itself),
            (Some("0"), false),
            (Some("1"), true),
        ] {
            let asked = |what| asked_for_huge(&program, what, &library, value);
            let which = format!("{}, {value:?}", library.display());
            assert_eq!(asked("touched"), expected, "{which}");
            // Large blocks request huge pages in the arena and in mappings of their own, before the
            // program can have touched any page.
            assert_eq!(asked("run"), expected, "{which}");
            assert_eq!(asked("mapping"), expected, "{which}");
            assert!(!asked("untouched"), "{which}");
        }
    }
}
