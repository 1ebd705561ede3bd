//! elfmalloc's statistics, which a program with the preloaded library prints at exit.

use std::path::Path;
use std::process::Output;

use heapdrome_conformance::Program;
use heapdrome_pages::system::processors;
use serde_json::Value;

use crate::libraries::{build, execute};

/// Runs a program with statistics. Its eight threads free each other's blocks.
fn run(form: &str, file: Option<&Path>) -> Output {
    let library = build("heapdrome-preload-elfmalloc", "libelfmalloc.so");
    let program = Program::generate(11, 8, 20_000);
    let file = file.map(|file| file.to_str().expect("a plain path"));
    let file = file.map(|file| ("ELFMALLOC_STATISTICS_FILE", file));
    let variables: Vec<_> = [("ELFMALLOC_STATISTICS", form)]
        .into_iter()
        .chain(file)
        .collect();
    let output = execute(&library, &program, &variables);
    assert!(output.status.success(), "{output:?}");
    output
}

fn number(value: &Value, name: &str) -> u64 {
    let number = value[name].as_u64();
    number.unwrap_or_else(|| panic!("no number {name} in {value}"))
}

#[test]
fn the_report_at_exit_is_one_line_of_json_whose_parts_add_up() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("statistics of it");
    let output = run("json", Some(&file));
    assert!(output.stderr.is_empty(), "{output:?}");
    run("json", Some(&file));
    let text = std::fs::read_to_string(&file).expect("the report was written");
    assert_eq!(text.lines().count(), 2, "each process appends a line");
    for line in text.lines() {
        let report: Value = serde_json::from_str(line).expect("it is JSON");
        assert_eq!(report["allocator"], "elfmalloc");
        let classes = report["classes"].as_array().expect("a list of classes");
        assert!(classes.len() > 20, "{line}");
        let sum = |name: &str| -> u64 { classes.iter().map(|class| number(class, name)).sum() };
        for name in ["cached", "refills", "remote_frees"] {
            assert_eq!(sum(name), number(&report, name), "{name}");
        }
        assert!(sum("refills") > 100, "{line}");
        // On one processor all threads share one shard, so no free is remote. On several
        // processors, threads beyond the number of shards use the shard of their current processor,
        // so the number of remote frees varies.
        if processors() == Some(1) {
            assert_eq!(sum("remote_frees"), 0, "{line}");
        }
        let blocks = number(&report, "large") + number(&report, "live_mapped");
        assert_eq!(sum("live") + blocks, number(&report, "live"));
        assert!(sum("mapped") <= number(&report, "mapped"));
        for class in classes {
            let parts = number(class, "live") + number(class, "cached") + number(class, "dirty");
            assert!(parts <= number(class, "mapped"), "{class}");
            assert_eq!(parts % number(class, "size"), 0, "{class}");
        }
    }
}

#[test]
fn the_report_for_people_goes_to_standard_error() {
    let output = run("text", None);
    let text = String::from_utf8(output.stderr).expect("it is text");
    assert!(text.starts_with("elfmalloc\n  live = "), "{text}");
    assert!(text.contains("\n         size         live       cached"));
    let output = run("something else", None);
    assert!(output.stderr.is_empty(), "{output:?}");
}
