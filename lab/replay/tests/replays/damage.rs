//! Tests that unusable traces and replay programs are refused, and that a trace that was cut off is
//! compiled up to the cut.

use std::io::Write as _;
use std::os::unix::fs::FileExt as _;

use heapdrome_replay::{Speed, compile, header};
use heapdrome_trace::{Operation, Process, Record, Recording, Step, Time, Writer};
use std::fs::File;

use crate::program::{Program, recording};

/// Compiles a trace from bytes. Returns the value of `cut_off`, or the error, and checks that the
/// error is one line.
fn outcome(trace: &[u8], process: Option<u32>) -> Result<Option<u64>, String> {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(trace).expect("it can be written");
    let program = tempfile::tempfile().expect("a file");
    let compiled = compile(&file, process, Speed::Paced, &program, &|| true);
    let told = compiled.map_err(|error| error.to_string());
    if let Err(line) = &told {
        assert_eq!(line.lines().count(), 1, "{line}");
    }
    Ok(told?.cut_off)
}

fn bytes(file: &File) -> Vec<u8> {
    let mut bytes = vec![0; file.metadata().expect("a file").len() as usize];
    file.read_exact_at(&mut bytes, 0).expect("it can be read");
    bytes
}

fn trace() -> Vec<u8> {
    let mut program = Program::new(9);
    program.wander(0..3, 2000);
    bytes(&program.finish().0)
}

#[test]
fn damaged_newer_and_foreign_files_are_refused_in_one_line() {
    let mut damaged = trace();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 0x10;
    let told = outcome(&damaged, None).expect_err("refused");
    assert!(told.contains("damaged at byte"), "{told}");
    let mut newer = trace();
    newer[8] = 0xff;
    assert!(outcome(&newer, None).is_err());
    for other in [&b""[..], b"not a trace at all, but some text"] {
        let told = outcome(other, None).expect_err("refused");
        assert!(told.contains("not a trace"), "{told}");
    }
}

#[test]
fn what_was_recorded_before_a_cut_is_replayed() {
    let mut writer = Writer::new(Vec::new(), &recording()).expect("a trace");
    let make = Operation::Make {
        function: 0,
        size: 8,
        alignment: 0,
    };
    let step = |time, operation| Step {
        thread: 0,
        time: Time(time),
        operation,
        stack: None,
    };
    writer.operation(0, step(16, make)).expect("a step");
    writer.flush().expect("a chunk");
    writer.operation(0, step(32, make)).expect("a step");
    let whole = writer.finish().expect("a trace");
    assert_eq!(outcome(&whole, None), Ok(None));
    // Cut at any length, the trace yields an error or a program with a cut-off position, and
    // compiling never panics.
    for length in 0..whole.len() {
        match outcome(&whole[..length], None) {
            Ok(cut_off) => assert!(cut_off.is_some_and(|offset| offset <= length as u64)),
            Err(line) => assert!(!line.is_empty()),
        }
    }
    assert!(outcome(&whole[..whole.len() - 1], None).is_ok());
}

#[test]
fn a_process_that_is_not_there_and_an_empty_trace_are_refused() {
    let told = outcome(&trace(), Some(7)).expect_err("refused");
    assert!(told.contains("process 7; it has those of 0"), "{told}");
    let mut writer = Writer::new(Vec::new(), &recording()).expect("a trace");
    let process = Process {
        process: 0,
        pid: 1,
        program: String::new(),
        allocator: String::new(),
        time: Time(0),
        beginning: heapdrome_trace::Beginning::Executed,
    };
    writer.record(Record::Process(process)).expect("a record");
    let empty = writer.finish().expect("a trace");
    assert_eq!(
        outcome(&empty, None),
        Err("the trace has no operations to replay".to_owned())
    );
}

#[test]
fn a_sample_is_refused() {
    let sampled = Recording {
        sample_bytes: 4096,
        ..recording()
    };
    let writer = Writer::new(Vec::new(), &sampled).expect("a trace");
    let trace = writer.finish().expect("a trace");
    let told = outcome(&trace, None).expect_err("refused");
    assert!(
        told.contains("a sample, of one block for every 4096 bytes"),
        "{told}"
    );
}

#[test]
fn a_block_that_is_freed_twice_is_damage() {
    let mut program = Program::new(10);
    let block = program.make(0);
    program.free(0, block);
    program.step(1, Operation::Free { function: 1, block });
    let told = outcome(&bytes(&program.finish().0), None).expect_err("refused");
    assert!(told.contains("frees block 0 twice"), "{told}");
}

#[test]
fn a_file_that_is_no_program_is_refused() {
    let mut file = tempfile::tempfile().expect("a file");
    assert!(header(&file).is_err());
    file.write_all(&[7; 5000]).expect("it can be written");
    assert!(header(&file).is_err());
}
