//! Tests that stacks are read back as they were written, that the tools keep stacks, and that
//! invalid stacks are refused. Also tests traces of version 1, and the merging of sampled traces.

use heapdrome_trace::{
    Chunk, Damage, Module, Operation, Reader, Record, Recording, Stack, Step, Time, TraceError,
    Writer, cut, merge, summarize, text,
};

use crate::support::{chunks, generate, module, process, recording, stack, stacks};

const MAKE: Operation = Operation::Make {
    function: 0,
    size: 8,
    alignment: 0,
};

fn step(time: u64, operation: Operation, stack: Option<u32>) -> Step {
    Step {
        thread: 0,
        time: Time(time),
        operation,
        stack,
    }
}

type Read = (Vec<Step>, Vec<Record>);

fn read(trace: &[u8]) -> Result<Read, TraceError> {
    let mut reader = Reader::new(trace)?;
    let (mut steps, mut records) = (Vec::new(), Vec::new());
    while let Some(chunk) = reader.next_chunk()? {
        if let Chunk::Records(some) = &chunk {
            records.extend(some.iter().cloned());
        }
        chunk.visit(|_, step| steps.push(step))?;
    }
    Ok((steps, records))
}

fn damage(trace: &[u8]) -> Damage {
    match read(trace) {
        Err(TraceError::Damaged { damage, .. }) => damage,
        other => panic!("{other:?}"),
    }
}

/// Returns the modules' paths and the stacks, both in the order of their numbers.
fn code(records: &[Record]) -> (Vec<&str>, Vec<&Stack>) {
    let modules = records.iter().filter_map(|it| match it {
        Record::Module(Module { path, .. }) => Some(&path[..]),
        _ => None,
    });
    let stacks = records.iter().filter_map(|it| match it {
        Record::Stack(stack) => Some(stack),
        _ => None,
    });
    (modules.collect(), stacks.collect())
}

/// Returns a trace of this version whose chunks have these contents. Contents without a number of
/// operations are records.
fn raw(version: u16, contents: &[(Option<u32>, &[u8])]) -> Vec<u8> {
    let mut trace = b"hdtrace\n".to_vec();
    trace.extend(version.to_le_bytes());
    trace.extend([1, 0]);
    trace.extend(crc32fast::hash(&trace).to_le_bytes());
    for (operations, content) in contents {
        let compressed = zstd::bulk::compress(content, 1).expect("memory");
        let start = trace.len();
        trace.extend([1 + u8::from(operations.is_some()), 0, 0, 0]);
        let (length, count) = (content.len() as u32, operations.unwrap_or(0));
        let sum = crc32fast::hash(&compressed);
        for word in [compressed.len() as u32, length, count, sum] {
            trace.extend(word.to_le_bytes());
        }
        trace.extend(crc32fast::hash(&trace[start..]).to_le_bytes());
        trace.extend(compressed);
    }
    trace
}

/// Returns a trace of this version with these records, then the operations of one chunk.
fn with(version: u16, records: &[Record], count: u32, operations: &[u8]) -> Vec<u8> {
    let first = serde_json::to_vec(&[Record::Recording(recording())]).expect("JSON");
    let records = serde_json::to_vec(records).expect("JSON");
    let contents = [
        (None, &first[..]),
        (None, &records),
        (Some(count), operations),
    ];
    raw(version, &contents)
}

#[test]
fn a_stack_stands_between_the_thread_and_the_call() {
    // A make by thread 1 with stack 300, a make without a stack, and a failed call with stack 0.
    let bytes = [
        0, 0, 0, 10, 0xe6, 1, 0xe7, 0xac, 2, 0xe0, 0, 8, 0, 0, 0, 0, 0xe7, 0, 0xe4, 0, 8, 0, 0,
    ];
    let many: Vec<_> = (0..301).map(|number| stack(number, &[])).collect();
    let (steps, _) = read(&with(2, &many, 3, &bytes)).expect("a trace");
    let fail = Operation::Fail {
        function: 0,
        size: 8,
        alignment: 0,
    };
    let expected = [(MAKE, Some(300)), (MAKE, None), (fail, Some(0))];
    let expected = expected.map(|(operation, stack)| Step {
        thread: 1,
        ..step(160, operation, stack)
    });
    assert_eq!(steps, expected);
}

#[test]
fn a_stack_that_is_unknown_or_of_a_call_that_has_none_is_damage() {
    let known = [stack(0, &[])];
    let start = [0, 0, 0, 10];
    let (make, free): (&[u8], &[u8]) = (&[0xe0, 0, 8, 0, 0], &[0xe1, 2, 1, 0]);
    let cases: [(&[&[u8]], u32, Damage); 8] = [
        (&[&[0xe7, 1], make], 1, Damage::Reference),
        (&[make, &[0xe7, 0], free], 2, Damage::Code(0xe1)),
        (
            &[make, free, &[0xe0, 0, 8, 0, 0, 0xe7, 0, 0xe8, 1, 0]],
            4,
            Damage::Code(0xe8),
        ),
        (&[&[0xe7, 0, 0xe3, 0, 0]], 1, Damage::Code(0xe3)),
        (&[&[0xe7, 0, 0xe5, 0, 0, 0]], 1, Damage::Code(0xe5)),
        (&[&[0xe7, 0, 0xe6, 1], make], 1, Damage::Code(0xe6)),
        (&[&[0xe7, 0, 0xe7, 0], make], 1, Damage::Code(0xe7)),
        (&[&[0xe7]], 1, Damage::End),
    ];
    for (parts, count, expected) in cases {
        let operations = [&start[..], &parts.concat()].concat();
        let found = damage(&with(2, &known, count, &operations));
        assert_eq!(found, expected, "{parts:?}");
    }
    let whole = [&start[..], &[0xe7, 0], make].concat();
    assert_eq!(damage(&with(2, &[], 1, &whole)), Damage::Reference);
    read(&with(2, &known, 1, &whole)).expect("a trace");
}

#[test]
fn a_module_or_stack_out_of_order_is_damage() {
    let frames: Vec<_> = (0..=Stack::MAX_FRAMES as u64)
        .map(|at| (None, at))
        .collect();
    let cases: [(&[Record], Damage); 5] = [
        (&[module(1, "a")], Damage::Reference),
        (&[module(0, "a"), module(0, "a")], Damage::Reference),
        (&[stack(1, &[])], Damage::Reference),
        (
            &[module(0, "a"), stack(0, &[(Some(1), 5)])],
            Damage::Reference,
        ),
        (&[stack(0, &frames)], Damage::Length(129)),
    ];
    for (records, expected) in cases {
        let trace = with(2, records, 1, &[0, 0, 0, 0, 0xe3, 0, 0]);
        assert_eq!(damage(&trace), expected, "{records:?}");
        let mut writer = Writer::new(Vec::new(), &recording()).expect("memory");
        let outcome = records.iter().try_for_each(|it| writer.record(it.clone()));
        assert!(matches!(outcome, Err(TraceError::Order(_))), "{records:?}");
    }
}

#[test]
fn version_1_is_read_and_has_no_stacks() {
    let make = [0, 0, 0, 10, 0xe0, 0, 8, 0, 0];
    let (steps, _) = read(&with(1, &[process(0)], 1, &make)).expect("a trace");
    assert_eq!(steps, [step(160, MAKE, None)]);
    let with_stack = [0, 0, 0, 10, 0xe7, 0, 0xe0, 0, 8, 0, 0];
    assert_eq!(damage(&with(1, &[], 1, &with_stack)), Damage::Reference);
    for record in [module(0, "a"), stack(0, &[])] {
        assert_eq!(damage(&with(1, &[record], 1, &make)), Damage::Record);
    }
    let old = br#"[{"recording":{"functions":[],"command":[],"allocator":"","began":0,
        "heapdrome":"0.1.0","page_bytes":4096}}]"#;
    let trace = raw(1, &[(None, old)]);
    let reader = Reader::new(&trace[..]).expect("a trace");
    let recording = reader.recording();
    assert_eq!((recording.sample_bytes, recording.stack_bytes), (0, 0));
}

#[test]
fn a_stack_that_cannot_stand_there_is_not_written() {
    let mut writer = Writer::new(Vec::new(), &recording()).expect("memory");
    let refused = |outcome| assert!(matches!(outcome, Err(TraceError::Order(_))), "{outcome:?}");
    refused(writer.operation(0, step(0, MAKE, Some(0))));
    writer.record(stack(0, &[])).expect("in order");
    refused(writer.operation(0, step(0, Operation::FreeNull { function: 2 }, Some(0))));
    writer
        .operation(0, step(0, MAKE, Some(0)))
        .expect("in order");
    let trace = writer.finish().expect("memory");
    assert_eq!(read(&trace).expect("a trace").0, [step(0, MAKE, Some(0))]);
}

#[test]
fn a_stack_that_is_added_late_stands_before_the_operations_that_have_it() {
    let mut writer = Writer::new(Vec::new(), &recording()).expect("memory");
    let mut steps = Vec::new();
    for number in 0..200_000_u64 {
        let known = (number / 1_000) as u32;
        if number % 1_000 == 0 {
            writer
                .record(stack(known, &[(None, number)]))
                .expect("in order");
        }
        let size = number * 7_919 % 10_000;
        let make = Operation::Make {
            function: 0,
            size,
            alignment: 0,
        };
        steps.push(step(number * Time::STEP, make, Some(known)));
        writer
            .operation(0, steps[number as usize])
            .expect("in order");
    }
    let trace = writer.finish().expect("memory");
    assert!(chunks(&trace).filter(|chunk| chunk.kind == 2).count() > 2);
    assert!(read(&trace).expect("a trace").0 == steps);
}

#[test]
fn a_summary_counts_stacks_and_text_has_their_numbers() {
    let (trace, steps) = generate(31, 2, 5_000);
    let summary = summarize(&mut Reader::new(&trace[..]).expect("a trace")).expect("a trace");
    let with_stack = steps.iter().flatten().filter(|step| step.stack.is_some());
    assert_eq!(summary.with_stack, with_stack.count() as u64);
    let counted = (summary.stacks + summary.modules) as usize;
    assert_eq!(counted, stacks().len());
    let mut writer = Writer::new(Vec::new(), &recording()).expect("memory");
    writer.record(stack(0, &[])).expect("in order");
    let resize = Operation::Resize {
        function: 1,
        size: 9,
        block: 0,
    };
    writer
        .operation(0, step(0, MAKE, Some(0)))
        .expect("in order");
    writer
        .operation(0, step(160, resize, Some(0)))
        .expect("in order");
    let trace = writer.finish().expect("memory");
    let mut lines = Vec::new();
    text(
        &mut Reader::new(&trace[..]).expect("a trace"),
        None,
        &mut lines,
    )
    .expect("a trace");
    let lines = String::from_utf8(lines).expect("text");
    let found: Vec<_> = lines.lines().filter(|it| !it.starts_with('#')).collect();
    let expected = [
        "0 0 0 make malloc 0 8 0 0",
        "160 0 0 resize realloc 1 9 0 0",
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_part_keeps_the_stacks_of_the_blocks_that_are_live_at_its_beginning() {
    let mut writer = Writer::new(Vec::new(), &recording()).expect("memory");
    writer.record(module(0, "a")).expect("in order");
    for number in 0..3 {
        let frames = [(Some(0), u64::from(number))];
        writer.record(stack(number, &frames)).expect("in order");
        let time = u64::from(number) * 1_600;
        writer
            .operation(0, step(time, MAKE, Some(number)))
            .expect("in order");
    }
    let resize = Operation::Resize {
        function: 1,
        size: 9,
        block: 1,
    };
    writer
        .operation(0, step(4_800, resize, Some(0)))
        .expect("in order");
    let trace = writer.finish().expect("memory");
    let mut reader = Reader::new(&trace[..]).expect("a trace");
    let part = cut(&mut reader, Time(3_200), Time(u64::MAX), Vec::new()).expect("a trace");
    let (steps, records) = read(&part).expect("a trace");
    let own: Vec<_> = steps.iter().map(|step| (step.time.0, step.stack)).collect();
    let expected = [(0, Some(0)), (0, Some(1)), (0, Some(2)), (1_600, Some(0))];
    assert_eq!(own, expected);
    assert_eq!(code(&records).1.len(), 3);
}

/// Returns a trace with these modules, and with a stack of one frame in each of the modules
/// `frames`.
fn small(modules: &[&str], frames: &[u32], rates: (u64, u64)) -> Vec<u8> {
    let recording = Recording {
        sample_bytes: rates.0,
        stack_bytes: rates.1,
        ..recording()
    };
    let mut writer = Writer::new(Vec::new(), &recording).expect("memory");
    for (number, path) in modules.iter().enumerate() {
        writer
            .record(module(number as u32, path))
            .expect("in order");
    }
    for (number, place) in frames.iter().enumerate() {
        let number = number as u32;
        writer
            .record(stack(number, &[(Some(*place), 7)]))
            .expect("in order");
        writer
            .operation(0, step(0, MAKE, Some(number)))
            .expect("in order");
    }
    writer.finish().expect("memory")
}

fn merged(traces: [&[u8]; 2]) -> Result<Vec<u8>, TraceError> {
    let mut readers = traces.map(|trace| Reader::new(trace).expect("a trace"));
    merge(&mut readers, Vec::new())
}

#[test]
fn merged_traces_number_modules_and_stacks_anew_and_keep_equal_ones_once() {
    let one = small(&["a", "b"], &[1, 0], (0, 1));
    let other = small(&["c", "b"], &[0, 1], (0, 1));
    let merged = merged([&one, &other]).expect("two traces");
    let (steps, records) = read(&merged).expect("a trace");
    let (paths, stacks) = code(&records);
    assert_eq!(paths, ["a", "b", "c"]);
    let path = |step: &Step| {
        let stack = stacks[step.stack.expect("a stack") as usize];
        paths[stack.frames[0].module.expect("a module") as usize]
    };
    let found: Vec<_> = steps.iter().map(path).collect();
    assert_eq!(found, ["b", "a", "c", "b"]);
    assert_eq!(stacks.len(), 3);
}

#[test]
fn traces_that_were_sampled_at_different_rates_are_not_merged() {
    let plain = small(&["a"], &[0], (0, 1));
    for rates in [(512, 1), (0, 512)] {
        let other = small(&["a"], &[0], rates);
        let outcome = merged([&plain, &other]);
        assert!(matches!(outcome, Err(TraceError::Merge(_))), "{rates:?}");
    }
    let without = small(&[], &[], (0, 0));
    for traces in [[&plain[..], &without], [&without, &plain]] {
        let both = merged(traces).expect("two traces");
        let reader = Reader::new(&both[..]).expect("a trace");
        assert_eq!(reader.recording().stack_bytes, 1);
    }
}
