//! Tests that traces are read back as they were written, that invalid traces and operations are
//! refused, and that traces are small.

use crate::support::{generate, recording};
use heapdrome_trace::{Ending, Operation, Reader, Record, Step, Time, TraceError, VERSION, Writer};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

type Read = (Vec<Vec<Step>>, Vec<Record>, Option<Ending>);

fn read(bytes: &[u8], processes: u32) -> Result<Read, TraceError> {
    let mut reader = Reader::new(bytes)?;
    let mut steps = vec![Vec::new(); processes as usize];
    let mut records = Vec::new();
    while let Some(chunk) = reader.next_chunk()? {
        if let heapdrome_trace::Chunk::Records(some) = &chunk {
            records.extend(some.iter().cloned());
        }
        chunk.visit(|process, step| steps[process as usize].push(step))?;
    }
    Ok((steps, records, reader.ending()))
}

#[test]
fn generated_traces_come_back() {
    for (seed, processes, steps) in [(1, 1, 0), (2, 1, 5), (3, 3, 20_000), (4, 2, 400_000)] {
        let (bytes, written) = generate(seed, processes, steps);
        let (back, records, ending) = read(&bytes, processes).expect("a whole trace");
        assert!(back == written, "seed {seed}");
        let begun = records
            .iter()
            .filter(|it| matches!(it, Record::Process(_)))
            .count();
        assert_eq!(begun, processes as usize);
        let Some(Ending::Complete(totals)) = ending else {
            panic!("{ending:?}")
        };
        assert_eq!(totals.operations, steps as u64);
    }
}

/// 1, the largest number of each encoded length of up to three bytes, and its successor.
const BOUNDARIES: [u64; 7] = [
    1,
    (1 << 7) - 1,
    1 << 7,
    (1 << 14) - 1,
    1 << 14,
    (1 << 21) - 1,
    1 << 21,
];

#[test]
fn resizes_and_frees_come_back_whatever_their_numbers_take() {
    let mut writer = Writer::new(Vec::new(), &recording()).expect("memory");
    let mut expected = Vec::new();
    let mut step = Step {
        thread: 0,
        time: Time(0),
        operation: Operation::FreeNull { function: 1 },
        stack: None,
    };
    let mut add = |step: Step| {
        writer.operation(0, step).expect("in order");
        expected.push(step);
    };
    let mut made = 0;
    for size in 0..=BOUNDARIES[6] + 1000 {
        let (function, size, alignment) = (0, size % 100, 0);
        step.operation = Operation::Make {
            function,
            size,
            alignment,
        };
        add(step);
        made += 1;
    }
    for late in BOUNDARIES {
        for (place, distance) in BOUNDARIES.into_iter().enumerate() {
            for size in BOUNDARIES {
                step.time.0 += late * Time::STEP;
                let (function, block) = (1, made - distance);
                step.operation = Operation::Resize {
                    function,
                    size,
                    block,
                };
                add(step);
                made += 1;
            }
            step.time.0 += late * Time::STEP;
            let (function, block) = (2 + (place % 2) as u8, made - distance);
            step.operation = Operation::Free { function, block };
            add(step);
            step.time.0 += late * Time::STEP;
            step.operation = Operation::FreeNull { function: 3 };
            add(step);
        }
    }
    let bytes = writer.finish().expect("memory");
    let (back, ..) = read(&bytes, 1).expect("a whole trace");
    assert!(back[0] == expected);
}

#[test]
fn a_process_begins_before_its_operations_and_finishes_after_them() {
    let (bytes, _) = generate(5, 3, 50_000);
    let mut reader = Reader::new(&bytes[..]).expect("a trace");
    let (mut begun, mut ended) = ([false; 3], [false; 3]);
    while let Some(chunk) = reader.next_chunk().expect("a trace") {
        match chunk {
            heapdrome_trace::Chunk::Records(records) => {
                for record in records {
                    match record {
                        Record::Process(process) => begun[process.process as usize] = true,
                        Record::Finish(finish) => ended[finish.process as usize] = true,
                        _ => {}
                    }
                }
            }
            heapdrome_trace::Chunk::Operations(operations) => {
                let process = operations.process as usize;
                assert!(begun[process] && !ended[process]);
            }
        }
    }
    assert_eq!(ended, [true; 3]);
}

#[test]
fn a_trace_that_was_cut_off_is_read_to_its_last_complete_chunk() {
    let (bytes, written) = generate(6, 2, 100_000);
    let mut lengths = Vec::new();
    for cut in (0..bytes.len()).step_by(bytes.len() / 97) {
        match read(&bytes[..cut], 2) {
            Ok((steps, _, ending)) => {
                let Some(Ending::CutOff { offset }) = ending else {
                    panic!("{ending:?}")
                };
                assert!(offset <= cut as u64);
                for (back, all) in steps.iter().zip(&written) {
                    assert!(all.starts_with(back));
                }
                lengths.push(steps.iter().map(Vec::len).sum::<usize>());
            }
            Err(TraceError::NotATrace) => assert_eq!(cut, 0),
            Err(TraceError::CutOffAtStart) => assert!(cut < 400, "{cut}"),
            Err(error) => panic!("{error}"),
        }
    }
    assert!(
        lengths.is_sorted() && lengths.last() > Some(&50_000),
        "{lengths:?}"
    );
}

#[test]
fn a_byte_flipped_anywhere_is_noticed() {
    let (bytes, _) = generate(7, 2, 2_000);
    for place in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[place] ^= 1 << (place % 8);
        match read(&damaged, 2) {
            Err(TraceError::Damaged { offset, .. }) => assert!(offset <= place as u64),
            Err(TraceError::NotATrace) => assert!(place < 8),
            other => panic!("byte {place}: {:?}", other.map(|(_, _, ending)| ending)),
        }
    }
}

#[test]
fn a_newer_version_and_other_files_are_refused() {
    let (bytes, _) = generate(8, 1, 10);
    let mut newer = bytes.clone();
    newer[8..10].copy_from_slice(&(VERSION + 1).to_le_bytes());
    let sum = crc32fast::hash(&newer[..12]);
    newer[12..16].copy_from_slice(&sum.to_le_bytes());
    assert!(matches!(
        Reader::new(&newer[..]),
        Err(TraceError::Newer { found, known }) if found == VERSION + 1 && known == VERSION
    ));
    assert!(matches!(
        Reader::new(&b"#!/bin/sh\necho hello"[..]),
        Err(TraceError::NotATrace)
    ));
    assert!(matches!(Reader::new(&b""[..]), Err(TraceError::NotATrace)));
}

#[test]
fn operations_out_of_order_are_not_written() {
    let mut writer = Writer::new(Vec::new(), &recording()).expect("memory");
    let step = |time, operation| Step {
        thread: 0,
        time: Time(time),
        operation,
        stack: None,
    };
    let free = Operation::Free {
        function: 2,
        block: 0,
    };
    assert!(matches!(
        writer.operation(0, step(0, free)),
        Err(TraceError::Order(_))
    ));
    let make = Operation::Make {
        function: 0,
        size: 8,
        alignment: 0,
    };
    writer.operation(0, step(1600, make)).expect("in order");
    assert!(matches!(
        writer.operation(0, step(160, free)),
        Err(TraceError::Order(_))
    ));
    writer.operation(0, step(1600, free)).expect("in order");
}

#[test]
fn a_common_program_takes_less_than_four_bytes_an_operation_before_compression() {
    let mut writer = Writer::new(Vec::new(), &recording()).expect("memory");
    let mut random = ChaCha8Rng::seed_from_u64(9);
    let (mut live, mut made, mut time) = (Vec::new(), 0, 0);
    for _ in 0..100_000 {
        time += random.random_range(20..1_000);
        let operation = if live.len() > 500 || (random.random() && !live.is_empty()) {
            let block = live.swap_remove(random.random_range(0..live.len()));
            Operation::Free { function: 2, block }
        } else {
            live.push(made);
            made += 1;
            let size = random.random_range(1..40) * 16;
            Operation::Make {
                function: 0,
                size,
                alignment: 0,
            }
        };
        let step = Step {
            thread: 0,
            time: Time(time),
            operation,
            stack: None,
        };
        writer.operation(0, step).expect("in order");
    }
    let trace = writer.finish().expect("memory");
    assert!(trace.len() < 400_000, "{} bytes", trace.len());
}
