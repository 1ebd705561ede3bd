//! Tests that failing programs are shortened to the calls on which the failure depends, that an
//! error ends the search, and that writing a program that was read from a trace keeps its calls.

use std::fs::File;

use heapdrome_replay::{Script, Speed, compile, shrink};
use heapdrome_trace::{Operation, Reader};

use crate::program::Program;

/// Returns a program of several threads, in memory.
fn wandering(threads: u32, steps: u64) -> Script {
    let mut program = Program::new(11);
    program.wander(0..threads, steps);
    let (trace, _) = program.finish();
    Script::read(&trace, None, &|| true).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the operations of a program, each with its thread.
fn operations(script: &Script) -> Vec<(u32, Operation)> {
    let bytes = script.write(Vec::new()).expect("a trace");
    let mut reader = Reader::new(&bytes[..]).expect("a trace");
    let mut operations = Vec::new();
    while let Some(chunk) = reader.next_chunk().expect("a chunk") {
        chunk
            .visit(|_, step| operations.push((step.thread, step.operation)))
            .expect("operations");
    }
    operations
}

/// Shortens a program. `rule` returns whether a program with these operations fails. Returns the
/// shortened program and the number of programs that were tried.
fn shortened(script: Script, rule: fn(&[(u32, Operation)]) -> bool) -> (Script, u64) {
    let mut fails = |script: &Script| Ok::<_, ()>(rule(&operations(script)));
    assert!(fails(&script) == Ok(true), "the whole fails");
    let shrunk = shrink(script, &mut fails);
    assert!(shrunk.stopped.is_none());
    (shrunk.script, shrunk.tried)
}

fn frees(operations: &[(u32, Operation)]) -> usize {
    let frees = operations
        .iter()
        .filter(|(_, operation)| matches!(operation, Operation::Free { .. }));
    frees.count()
}

#[test]
fn of_a_failure_after_two_frees_two_blocks_and_their_frees_remain() {
    let (script, tried) = shortened(wandering(4, 5000), |operations| frees(operations) >= 2);
    assert_eq!(script.len(), 4, "{script}");
    assert!(tried < 200, "{tried}");
    let text = script.to_string();
    assert!(text.contains("block1 = malloc(1)"), "{text}");
    assert!(!text.contains("thread 1"), "{text}");
}

#[test]
fn what_a_failure_needs_stays() {
    // Fails if different threads make the first resize to more than 5000 bytes and the last free.
    fn rule(operations: &[(u32, Operation)]) -> bool {
        let large = operations
            .iter()
            .find_map(|(thread, operation)| match operation {
                Operation::Resize { size, .. } if *size > 5000 => Some(*thread),
                _ => None,
            });
        let last = operations
            .iter()
            .rev()
            .find_map(|(thread, operation)| match operation {
                Operation::Free { .. } => Some(*thread),
                _ => None,
            });
        large.is_some() && last.is_some() && large != last
    }
    let (script, _) = shortened(wandering(3, 3000), rule);
    assert!(script.len() <= 4, "{script}");
    assert!(rule(&operations(&script)));
}

#[test]
fn an_error_ends_the_search_with_the_shortest_until_then() {
    let mut left = 5;
    let mut fails = |_: &Script| {
        left -= 1;
        match left {
            0 => Err("time is over"),
            _ => Ok(true),
        }
    };
    let shrunk = shrink(wandering(2, 1000), &mut fails);
    assert_eq!(shrunk.stopped, Some("time is over"));
    assert!(shrunk.script.len() < 100, "{}", shrunk.script.len());
}

#[test]
fn a_script_is_the_trace_that_it_came_from() {
    let mut program = Program::new(12);
    program.wander(0..3, 500);
    let (trace, _) = program.finish();
    let script = Script::read(&trace, None, &|| true).unwrap_or_else(|error| panic!("{error}"));
    let copy: File = script
        .write(tempfile::tempfile().expect("a file"))
        .expect("a trace");
    let header = |trace: &File| {
        let program = tempfile::tempfile().expect("a file");
        let compiled = compile(trace, None, Speed::Locked, &program, &|| true);
        let header = compiled.unwrap_or_else(|error| panic!("{error}")).header;
        let counts = [header.operations, header.live, header.floor];
        (counts, header.slots, header.left_out)
    };
    let (counts, slots, left_out) = header(&trace);
    assert!(left_out > 0);
    assert_eq!(header(&copy), (counts, slots, 0));
}
