//! Tests that a Python script that follows `docs/trace-format.md` can read traces.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use heapdrome_trace::{Operation, Step, Time};

use crate::support::{chunks, generate, recording, stacks};

fn kind(operation: &Operation) -> &'static str {
    match operation {
        Operation::Make { .. } => "make",
        Operation::Free { .. } => "free",
        Operation::Resize { .. } => "resize",
        Operation::FreeNull { .. } => "free-null",
        Operation::FreeForeign { .. } => "free-foreign",
        Operation::Fail { .. } => "fail",
    }
}

/// Returns the number that the script adds to its checksum for a step.
fn parts(process: u64, step: &Step) -> u64 {
    let name = &recording().functions[usize::from(step.operation.function())];
    let (size, freed) = match step.operation {
        Operation::Make { size, .. } | Operation::Fail { size, .. } => (size, 0),
        Operation::Free { block, .. } => (0, block),
        Operation::Resize { size, block, .. } => (size, block),
        Operation::FreeForeign { size, .. } => (size.map_or(0, |size| size + 1), 0),
        Operation::FreeNull { .. } => (0, 0),
    };
    [
        process,
        name.len() as u64,
        freed,
        step.thread.into(),
        step.time.0 / Time::STEP,
        step.stack.map_or(0, |stack| u64::from(stack) + 1),
    ]
    .into_iter()
    .fold(size, u64::wrapping_add)
}

fn is_installed(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

#[test]
fn a_reader_in_python_reads_what_was_written() {
    for program in ["python3", "zstd"] {
        if !is_installed(program) {
            println!("skipped: the program {program} is not installed");
            return;
        }
    }
    // The trace has several chunks of one process, which the script reads as one sequence.
    let (trace, steps) = generate(11, 1, 150_000);
    assert!(chunks(&trace).filter(|chunk| chunk.kind == 2).count() > 2);
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python.trace");
    std::fs::write(&file, &trace).expect("a temporary file");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/read_trace.py");
    let output = Command::new("python3").arg(script).arg(&file).output();
    let output = output.expect("it is installed");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let mut kinds = BTreeMap::<_, u64>::new();
    let mut sum = 0_u64;
    for step in &steps[0] {
        *kinds.entry(kind(&step.operation)).or_default() += 1;
        sum = sum.wrapping_mul(31).wrapping_add(parts(0, step));
    }
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(found["kinds"], serde_json::json!(kinds));
    assert_eq!(found["sum"], sum);
    assert_eq!(found["records"], 4 + stacks().len());
    let counted: u32 = chunks(&trace).map(|chunk| chunk.operations).sum();
    assert_eq!(counted as usize, steps[0].len());
}
