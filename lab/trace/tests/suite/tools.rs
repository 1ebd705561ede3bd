//! Tests of the functions that summarize, cut, merge and export traces.

use heapdrome_trace::{
    Beginning, Chunk, Ending, Foreign, Operation, Process, Reader, Record, Recording, Step,
    Summary, Time, TraceError, Writer, cut, export, merge, summarize, text,
};

use crate::support::{finish, generate, process, recording, stacks};

fn reader(trace: &[u8]) -> Reader<&[u8]> {
    Reader::new(trace).expect("a trace")
}

#[test]
fn inherited_blocks_count_until_they_are_freed() {
    let functions = vec!["malloc".into(), "free".into()];
    let recording = Recording {
        functions,
        ..Recording::default()
    };
    let mut writer = Writer::new(Vec::new(), &recording).expect("written");
    let beginning = Beginning::Forked {
        parent: 0,
        blocks: 2,
        bytes: 1000,
    };
    let process = Process {
        process: 1,
        pid: 1,
        program: String::new(),
        allocator: String::new(),
        time: Time(0),
        beginning,
    };
    writer.record(Record::Process(process)).expect("written");
    let made = Operation::Make {
        function: 0,
        size: 50,
        alignment: 0,
    };
    let freed = Operation::FreeForeign {
        function: 1,
        size: Some(900),
    };
    for operation in [made, freed, made, made] {
        let (thread, time, stack) = (0, Time(0), None);
        let step = Step {
            thread,
            time,
            operation,
            stack,
        };
        writer.operation(1, step).expect("written");
    }
    let summary = summary(&writer.finish().expect("written"));
    let process = &summary.processes[&1];
    assert_eq!(process.peak_live_bytes, 1050);
    assert_eq!((process.live_blocks, process.live_bytes), (3, 150));
}

fn summary(trace: &[u8]) -> Summary {
    let summary = summarize(&mut reader(trace)).expect("a whole trace");
    assert!(matches!(summary.ending, Ending::Complete(totals)
        if totals.operations == summary.operations));
    summary
}

fn part(trace: &[u8], from: u64, to: u64) -> Vec<u8> {
    cut(&mut reader(trace), Time(from), Time(to), Vec::new()).expect("a whole trace")
}

/// Returns the numbers of live blocks and live bytes of all processes at the end of the trace.
fn live(summary: &Summary) -> (u64, u128) {
    let all = summary.processes.values();
    (
        all.clone().map(|it| it.live_blocks).sum(),
        all.map(|it| u128::from(it.live_bytes)).sum(),
    )
}

#[test]
fn a_summary_has_what_was_written() {
    let (trace, steps) = generate(21, 3, 30_000);
    let summary = summary(&trace);
    assert_eq!(summary.operations, 30_000);
    assert_eq!(summary.bytes, trace.len() as u64);
    assert!(summary.operation_bytes < summary.operation_content);
    assert_eq!(summary.last, Time(1 << 40));
    for (number, process) in &summary.processes {
        let own = &steps[*number as usize];
        let makes = own.iter().filter(|step| step.operation.makes_block());
        assert_eq!(process.operations, own.len() as u64);
        assert_eq!(process.blocks, makes.count() as u64);
        assert!(process.finish.is_some() && process.process.is_some());
        let count = |kind: fn(&Operation) -> bool| {
            own.iter().filter(|step| kind(&step.operation)).count() as u64
        };
        let made = count(|it| matches!(it, Operation::Make { .. }));
        let freed = count(|it| matches!(it, Operation::Free { .. }));
        assert_eq!(process.live_blocks, made - freed);
        assert!(process.peak_live_bytes >= process.live_bytes);
    }
}

#[test]
fn what_is_cut_in_two_has_the_operations_and_the_live_blocks_of_the_whole() {
    let (trace, steps) = generate(22, 2, 10_000);
    let whole = summary(&trace);
    let end = steps
        .iter()
        .filter_map(|steps| steps.last())
        .map(|step| step.time.0);
    let end = end.max().expect("steps");
    for at in [0, 16, end / 3, end / 2, end, end + 16] {
        let (first, second) = (part(&trace, 0, at), part(&trace, at, u64::MAX));
        let (before, after) = (summary(&first), summary(&second));
        let (blocks, _) = live(&before);
        assert_eq!(
            before.operations + after.operations,
            whole.operations + blocks,
            "at {at}"
        );
        assert_eq!(live(&after), live(&whole), "at {at}");
        for (number, process) in &before.processes {
            let own = steps[*number as usize].iter();
            let before = own.filter(|step| step.time.0 < at).count() as u64;
            assert_eq!(process.operations, before);
        }
        let merged = merge(&mut [reader(&first), reader(&second)], Vec::new());
        let merged = summary(&merged.expect("two traces"));
        assert_eq!(merged.operations, before.operations + after.operations);
        let count = before.processes.len() + after.processes.len();
        assert_eq!(merged.processes.len(), count);
        assert!(merged.processes.keys().copied().eq(0..count as u32));
    }
}

#[test]
fn a_part_makes_what_was_live_at_its_beginning_and_ends_where_it_was_told_to() {
    let (trace, _) = generate(23, 1, 20_000);
    let (from, to) = (1_000_000_000, 3_000_000_000);
    let before = summary(&part(&trace, 0, from));
    let trace = part(&trace, from, to);
    let mut steps = Vec::new();
    let mut records = Vec::new();
    let mut reader = reader(&trace);
    while let Some(chunk) = reader.next_chunk().expect("a trace") {
        if let Chunk::Records(some) = &chunk {
            records.extend(some.iter().cloned());
        }
        chunk.visit(|_, step| steps.push(step)).expect("a trace");
    }
    let (blocks, bytes) = live(&before);
    let (makes, rest) = steps.split_at(blocks as usize);
    let size = |step: &Step| match step.operation {
        Operation::Make { size, .. } if step.time == Time(0) => u128::from(size),
        other => panic!("{other:?}"),
    };
    // A summary counts in 64 bits, which the sum of the sizes may exceed.
    let sum: u128 = makes.iter().map(size).sum();
    assert!(bytes == sum || sum > u128::from(u64::MAX));
    assert!(!rest.is_empty() && rest.iter().all(|step| step.time.0 < to - from));
    let Some(Record::Finish(last)) = records.iter().rev().nth(1) else {
        panic!("{records:?}")
    };
    assert!(last.gave_up && last.time == Time(to - from));
    assert_eq!(reader.recording().began, from);
}

/// Returns a trace of one process with one block, recorded at this time.
fn small(began: u64, names: [&str; 2]) -> Vec<u8> {
    let recording = Recording {
        functions: names.map(String::from).to_vec(),
        began,
        ..recording()
    };
    let mut writer = Writer::new(Vec::new(), &recording).expect("memory");
    writer.record(process(7)).expect("memory");
    let step = |time, operation| Step {
        thread: 0,
        time: Time(time),
        operation,
        stack: None,
    };
    let make = Operation::Make {
        function: 0,
        size: 8,
        alignment: 0,
    };
    let free = Operation::Free {
        function: 1,
        block: 0,
    };
    writer.operation(7, step(160, make)).expect("in order");
    writer.operation(7, step(320, free)).expect("in order");
    writer.record(finish(7)).expect("memory");
    writer.finish().expect("memory")
}

#[test]
fn merged_traces_have_one_clock_and_one_list_of_functions() {
    let early = small(1_000, ["malloc", "free"]);
    let late = small(2_600, ["_Znwm", "free"]);
    let merged = merge(&mut [reader(&late), reader(&early)], Vec::new()).expect("two traces");
    let mut merged = reader(&merged);
    assert_eq!(merged.recording().began, 1_000);
    let functions = merged.recording().functions.clone();
    assert_eq!(functions, ["_Znwm", "free", "malloc"]);
    let mut found = Vec::new();
    while let Some(chunk) = merged.next_chunk().expect("a trace") {
        let add = |process, step: Step| {
            let function = &functions[usize::from(step.operation.function())];
            found.push((process, step.time.0, function.clone()));
        };
        chunk.visit(add).expect("a trace");
    }
    found.sort();
    let expected = [
        (0, 1760, "_Znwm"),
        (0, 1920, "free"),
        (1, 160, "malloc"),
        (1, 320, "free"),
    ];
    let expected = expected.map(|(process, time, name)| (process, time, name.to_owned()));
    assert_eq!(found, expected);
}

#[test]
fn traces_of_different_machines_are_not_merged() {
    let one = small(0, ["malloc", "free"]);
    let other = Recording {
        page_bytes: 65_536,
        ..recording()
    };
    let writer = Writer::new(Vec::new(), &other).expect("memory");
    let other = writer.finish().expect("memory");
    let merged = merge(&mut [reader(&one), reader(&other)], Vec::new());
    assert!(matches!(merged, Err(TraceError::Merge(_))));
}

fn exported(trace: &[u8], format: Foreign) -> (Vec<u8>, heapdrome_trace::Exported) {
    let mut bytes = Vec::new();
    let exported = export(&mut reader(trace), 0, format, &mut bytes).expect("a trace");
    (bytes, exported)
}

#[test]
fn text_has_a_line_for_each_operation_and_record() {
    let (trace, steps) = generate(24, 2, 5_000);
    let mut bytes = Vec::new();
    let all = text(&mut reader(&trace), None, &mut bytes).expect("a trace");
    assert_eq!(all.operations, 5_000);
    let lines = String::from_utf8(bytes).expect("text");
    let (records, operations): (Vec<_>, Vec<_>) =
        lines.lines().partition(|line| line.starts_with("# {"));
    assert_eq!(
        (records.len(), operations.len()),
        (6 + stacks().len(), 5_000)
    );
    let one = text(&mut reader(&trace), Some(1), std::io::sink()).expect("a trace");
    assert_eq!(one.operations, steps[1].len() as u64);
    let mut bytes = Vec::new();
    text(&mut reader(&small(0, ["malloc", "free"])), None, &mut bytes).expect("a trace");
    let lines = String::from_utf8(bytes).expect("text");
    let lines: Vec<_> = lines
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    assert_eq!(lines, ["160 7 0 make malloc 0 8 0", "320 7 0 free free 0"]);
}

#[test]
fn lines_for_android_allocate_before_they_free_and_no_address_twice() {
    let (trace, steps) = generate(25, 1, 5_000);
    let (bytes, exported) = exported(&trace, Foreign::Android);
    let left = exported.failed + exported.foreign;
    assert!(left > 0 && exported.operations + left == steps[0].len() as u64);
    let lines = String::from_utf8(bytes).expect("text");
    assert_eq!(lines.lines().count() as u64, exported.operations);
    let (mut live, mut used) = (std::collections::HashSet::new(), 0);
    for line in lines.lines() {
        let words: Vec<_> = line.split(' ').collect();
        let (tid, call) = (words[0].strip_suffix(':').expect(line), words[1]);
        assert!(tid.parse::<u32>().is_ok_and(|tid| tid > 0), "{line}");
        let address = |word: &str| u64::from_str_radix(&word[2..], 16).expect("an address");
        let count = match call {
            "malloc" => 4,
            "realloc" | "calloc" | "memalign" => 5,
            "free" => 3,
            other => panic!("{other}"),
        };
        assert_eq!(words.len(), count, "{line}");
        let freed = match call {
            "free" => words[2],
            "realloc" => words[3],
            _ => "0x0",
        };
        assert!(freed == "0x0" || live.remove(&address(freed)), "{line}");
        if call != "free" {
            assert!(live.insert(address(words[2])), "{line}");
            used += 1;
        }
    }
    let makes = steps[0].iter().filter(|step| step.operation.makes_block());
    assert_eq!(used, makes.count());
}

/// Decodes a protocol buffer message. Returns each field's number, with its integer or its bytes.
fn fields(mut bytes: &[u8]) -> Vec<(u8, u64, &[u8])> {
    fn number(bytes: &mut &[u8]) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let (byte, rest) = bytes.split_first().expect("a number");
            *bytes = rest;
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if *byte < 0x80 {
                return value;
            }
        }
    }
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = number(&mut bytes);
        let value = number(&mut bytes);
        let content = if tag & 7 == 2 { value as usize } else { 0 };
        let (content, rest) = bytes.split_at(content);
        fields.push(((tag >> 3) as u8, value, content));
        bytes = rest;
    }
    fields
}

/// Returns the maximum number of live blocks.
fn most_blocks(steps: &[Step]) -> u64 {
    let (mut live, mut most) = (0_u64, 0);
    for step in steps {
        match step.operation {
            Operation::Make { .. } => live += 1,
            Operation::Free { .. } => live -= 1,
            _ => {}
        }
        most = most.max(live);
    }
    most
}

#[test]
fn a_file_for_malloc_bench_frees_every_block_and_uses_few_numbers() {
    let (trace, steps) = generate(26, 1, 5_000);
    let peak = most_blocks(&steps[0]);
    let (bytes, exported) = exported(&trace, Foreign::MallocBench);
    let file = fields(&bytes);
    let (&(field, names, _), lines) = file.split_last().expect("fields");
    assert!(
        field == 2 && names > 0 && names <= peak,
        "{names} names, {peak} blocks"
    );
    assert!(lines.len() as u64 >= exported.operations);
    let mut live = vec![false; names as usize];
    for (field, _, line) in lines {
        let call = fields(line);
        let &[(kind, _, content)] = &call[..] else {
            panic!("{call:?}")
        };
        assert_eq!(*field, 1);
        let content = fields(content);
        let get = |field| {
            content
                .iter()
                .find(|it| it.0 == field)
                .map(|it| it.1 as usize)
        };
        let (made, freed) = match kind {
            1 | 4 => (get(1), None),
            2 => (None, get(1)),
            3 => (get(1), get(2)),
            other => panic!("{other}"),
        };
        if let Some(freed) = freed {
            assert!(std::mem::take(&mut live[freed]));
        }
        if let Some(made) = made {
            assert!(!std::mem::replace(&mut live[made], true));
        }
    }
    assert!(live.iter().all(|live| !live));
}
