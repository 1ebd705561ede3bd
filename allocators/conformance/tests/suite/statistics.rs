//! elfmalloc's statistics, as a program that is preloaded with it writes them when it ends.

use std::path::Path;
use std::process::{Command, Output};

use heapdrome_conformance::Program;
use heapdrome_pages::system::processors;
use serde_json::Value;

use crate::libraries::build;

/// Runs a program of eight threads that free each other's blocks, and asks for statistics.
fn run(form: &str, file: Option<&Path>, folder: &Path) -> Output {
    let library = build("heapdrome-preload-elfmalloc", "libelfmalloc.so");
    let program = folder.join("program");
    let text = Program::generate(11, 8, 20_000).to_string();
    std::fs::write(&program, text).expect("the folder is writable");
    let mut command = Command::new(env!("CARGO_BIN_EXE_heapdrome-conformance"));
    command.arg("execute").arg(program);
    command
        .env("LD_PRELOAD", library)
        .env("ELFMALLOC_STATISTICS", form);
    if let Some(file) = file {
        command.env("ELFMALLOC_STATISTICS_FILE", file);
    }
    let output = command.output().expect("the program can be run");
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
    let output = run("json", Some(&file), folder.path());
    assert!(output.stderr.is_empty(), "{output:?}");
    run("json", Some(&file), folder.path());
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
        // On one processor all threads share slabs, and none is remote.
        match processors() {
            Some(1) => assert_eq!(sum("remote_frees"), 0, "{line}"),
            _ => assert!(sum("remote_frees") > 100, "{line}"),
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
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = run("text", None, folder.path());
    let text = String::from_utf8(output.stderr).expect("it is text");
    assert!(text.starts_with("elfmalloc\n  live = "), "{text}");
    assert!(text.contains("\n         size         live       cached"));
    let output = run("something else", None, folder.path());
    assert!(output.stderr.is_empty(), "{output:?}");
}
