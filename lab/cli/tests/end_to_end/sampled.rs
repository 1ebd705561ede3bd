//! Traces that are samples, and traces with stacks.

use heapdrome_trace::{Frame, Module, Operation, Record, Recording, Stack, Step, Time, Writer};

use crate::support::Site;

/// A trace with one stack, of one block for every so many bytes requested.
fn trace(sample_bytes: u64, stack_bytes: u64) -> Vec<u8> {
    let recording = Recording {
        functions: vec!["malloc".to_owned(), "free".to_owned()],
        command: vec!["./app".to_owned()],
        page_bytes: 4096,
        sample_bytes,
        stack_bytes,
        ..Recording::default()
    };
    let mut writer = Writer::new(Vec::new(), &recording).expect("begun");
    let module = Module {
        module: 0,
        path: "/nowhere/libapp.so".to_owned(),
        build_id: "00ff".to_owned(),
    };
    writer.record(Record::Module(module)).expect("recorded");
    let frame = |address| Frame {
        module: Some(0),
        address,
    };
    let stack = Stack {
        stack: 0,
        frames: vec![frame(0x1234), frame(0x5678)],
    };
    writer.record(Record::Stack(stack)).expect("recorded");
    for place in 0..1000 {
        let operation = Operation::Make {
            function: 0,
            size: 100,
            alignment: 0,
        };
        let step = Step {
            thread: 0,
            time: Time(place * 160),
            operation,
            stack: (stack_bytes > 0).then_some(0),
        };
        writer.operation(0, step).expect("written");
    }
    writer.finish().expect("finished")
}

#[test]
fn a_sample_is_not_replayed() {
    let site = Site::new();
    site.file("app.trace", trace(524_288, 0));
    for line in [
        &["replay", "app.trace"][..],
        &["race", "--rounds", "1", "--trace", "app.trace"],
    ] {
        let words = [
            "app.trace: the trace is a sample, of one block for every 524288 bytes requested",
            "record the program again without sampling",
        ];
        site.run(line).complains(2, &words);
    }
}

#[test]
fn info_prints_the_sample_and_the_stacks() {
    let site = Site::new();
    site.file("app.trace", trace(4096, 524_288));
    let outcome = site.run(&["trace", "info", "app.trace"]);
    outcome.ends_with(0);
    outcome.tells("sample one block for every 4.00 KiB requested");
    outcome.tells(
        "stacks 1,000 operations have one of 1 stacks, in code of 1 files; one block for every 512 KiB",
    );
    site.file("plain.trace", trace(0, 0));
    let plain = site.run(&["trace", "info", "plain.trace"]);
    assert!(!plain.ends_with(0).stdout.contains("sample"));
}

#[test]
fn figures_of_a_sample_are_estimates() {
    let site = Site::new();
    site.file("app.trace", trace(4096, 0));
    let outcome = site.run(&["profile", "app.trace"]);
    outcome.ends_with(0);
    // 100 bytes have the probability 1 - exp(-100 / 4096) = 0.024118.
    outcome.tells("Sampled: 1,000 blocks of");
    outcome.tells("the program requested about 3.95 MiB (");
    outcome.tells("estimates, with 95% intervals in parentheses");
}
