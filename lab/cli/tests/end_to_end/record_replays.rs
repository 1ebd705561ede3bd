//! Tests that record the replays of generated traces. The recorded operations must equal the
//! generated ones.

use std::collections::HashMap;
use std::path::PathBuf;

use heapdrome_trace::{Operation, Reader, Recording, Step, Time, Writer};

use crate::record::Trace;
use crate::support::Site;

/// The functions of generated traces.
const FUNCTIONS: [&str; 5] = ["malloc", "calloc", "realloc", "posix_memalign", "free"];
const MALLOC: u8 = 0;
const CALLOC: u8 = 1;
const REALLOC: u8 = 2;
const POSIX_MEMALIGN: u8 = 3;
const FREE: u8 = 4;

/// Minimum size in bytes of generated blocks. The replaying companion's own blocks are smaller.
const LEAST: u64 = 100_000;

/// Number of operations of a generated trace.
const OPERATIONS: u64 = 5000;

/// Number of threads of a generated trace.
const THREADS: u64 = 3;

/// Returns the next pseudo-random number (Marsaglia's xorshift).
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Returns operations of several threads, which free and resize each other's blocks.
fn generated(mut state: u64) -> Vec<Step> {
    let (mut steps, mut live, mut blocks) = (Vec::new(), Vec::new(), 0);
    for place in 0..OPERATIONS {
        let (word, size) = (next(&mut state), LEAST + next(&mut state) % 50_000);
        let thread = (word >> 32) % THREADS;
        let taken = (word >> 16) as usize % live.len().max(1);
        let operation = match word % 8 {
            0 | 1 if !live.is_empty() => Operation::Resize {
                function: REALLOC,
                size,
                block: live.swap_remove(taken),
            },
            2..=4 if !live.is_empty() => Operation::Free {
                function: FREE,
                block: live.swap_remove(taken),
            },
            kind => Operation::Make {
                function: [MALLOC, CALLOC, POSIX_MEMALIGN][kind as usize % 3],
                size,
                alignment: if kind % 3 == 2 { 64 } else { 0 },
            },
        };
        if operation.makes_block() {
            live.push(blocks);
            blocks += 1;
        }
        steps.push(Step {
            thread: thread as u32,
            time: Time(place * 1600),
            operation,
            stack: None,
        });
    }
    steps
}

fn written(steps: &[Step]) -> Vec<u8> {
    let functions = FUNCTIONS.map(str::to_owned).to_vec();
    let recording = Recording {
        functions,
        ..Recording::default()
    };
    let mut writer = Writer::new(Vec::new(), &recording).expect("written");
    for &step in steps {
        writer.operation(0, step).expect("a sound trace");
    }
    writer.finish().expect("written")
}

/// Returns the operations on generated blocks, with blocks and threads numbered in the order of
/// their appearance: the function, the size, the alignment, the block that is freed or resized, and
/// the thread.
fn comparable(functions: &[String], steps: &[Step]) -> Vec<(String, u64, u64, Option<u64>, u32)> {
    let (mut blocks, mut threads) = (HashMap::new(), HashMap::new());
    let (mut operations, mut next) = (Vec::new(), 0);
    for step in steps {
        let number = next;
        next += u64::from(step.operation.makes_block());
        let (size, alignment, freed) = match step.operation {
            Operation::Make {
                size, alignment, ..
            } if size >= LEAST => (size, alignment, None),
            Operation::Resize { size, block, .. } if blocks.contains_key(&block) => {
                (size, 0, blocks.remove(&block))
            }
            Operation::Free { block, .. } if blocks.contains_key(&block) => {
                (0, 0, blocks.remove(&block))
            }
            _ => continue,
        };
        let place = operations.len() as u64;
        if step.operation.makes_block() {
            blocks.insert(number, place);
        }
        let others = threads.len() as u32;
        let thread = *threads.entry(step.thread).or_insert(others);
        let function = functions[usize::from(step.operation.function())].clone();
        operations.push((function, size, alignment, freed, thread));
    }
    operations
}

/// Returns the path of the compiled trace of the only replay.
fn compiled(site: &Site) -> PathBuf {
    let shelf = std::fs::read_dir(site.path(".cache/heapdrome/workloads")).expect("a cache");
    let folders = shelf.flatten().map(|entry| entry.path());
    let mut programs = folders.map(|folder| folder.join("program"));
    let program = programs.find(|program| program.is_file());
    program.expect("a compiled trace")
}

#[test]
fn a_recorded_replay_says_what_the_replayed_trace_says() {
    for seed in 1..=3 {
        let site = Site::new();
        let steps = generated(seed);
        site.file("generated.trace", written(&steps));
        let replay = ["replay", "generated.trace", "--speed", "locked"];
        site.run(&replay).ends_with(0);
        let program = compiled(&site);
        let program = program.to_str().expect("plain");
        let companion = env!("CARGO_BIN_EXE_heapdrome-replay");
        let record = ["record", "-o", "again.trace", "--", companion, program];
        let outcome = site.run(&[&record[..], &["--touch", "none"]].concat());
        outcome.ends_with(0);
        let again = Trace::read(&site.path("again.trace"));
        let file = std::fs::File::open(site.path("again.trace")).expect("the trace is there");
        let reader = Reader::new(file).expect("a trace");
        let recorded = comparable(&reader.recording().functions, &again.steps[&0]);
        let functions = FUNCTIONS.map(str::to_owned);
        let expected = comparable(&functions, &steps);
        assert_eq!(expected.len() as u64, OPERATIONS);
        let differs = (0..expected.len()).find(|&place| recorded.get(place) != expected.get(place));
        if let Some(place) = differs {
            panic!(
                "operation {place}: {:?} became {:?}",
                expected.get(place),
                recorded.get(place)
            );
        }
        assert_eq!(recorded.len(), expected.len());
    }
}
