//! Tests the grouping of blocks by stack, and frames whose code is missing.

use heapdrome_profile::{Amount, Profile, StackUse};
use heapdrome_trace::{Frame, Module, Record, Recording, Stack, Step, Time};

use crate::trace::{Trace, free, make};

/// Number of stacks in a trace from [`with_stacks`].
pub const STACKS: u32 = 3;

/// Returns a trace with a module and [`STACKS`] stacks, each of two frames.
pub fn with_stacks(sample_bytes: u64, stack_bytes: u64) -> Trace {
    let mut trace = Trace::of(Recording {
        sample_bytes,
        stack_bytes,
        ..Trace::recording()
    });
    let module = Module {
        module: 0,
        path: "/nowhere/app".to_owned(),
        build_id: String::new(),
    };
    trace.record(Record::Module(module));
    for stack in 0..STACKS {
        let frame = |address| Frame {
            module: Some(0),
            address,
        };
        let frames = vec![frame(100 + u64::from(stack)), frame(7)];
        trace.record(Record::Stack(Stack { stack, frames }));
    }
    trace
}

/// Returns a step of thread 0.
pub fn step(time: u64, operation: heapdrome_trace::Operation, stack: Option<u32>) -> Step {
    Step {
        thread: 0,
        time: Time(time),
        operation,
        stack,
    }
}

fn of(profile: &Profile, stack: Option<u32>) -> Option<&StackUse> {
    let mut stacks = profile.all.counts.stacks.iter();
    stacks.find(|one| one.stack == stack)
}

#[test]
fn frames_of_code_that_is_not_there_have_a_note_and_no_names() {
    let mut trace = with_stacks(0, 1);
    trace.step(0, step(16, make(10), Some(2)));
    let mut profile = trace.profile();
    assert!(profile.has_stacks());
    profile.name_code(std::path::Path::new("/nowhere"));
    assert_eq!(profile.symbols.notes.len(), 1);
    assert!(profile.symbols.places(profile.code.stacks[2][0]).is_empty());
}

#[test]
fn stacks_of_a_sample_of_the_blocks_stand_for_the_others() {
    let mut trace = with_stacks(0, 1000);
    for block in 0..3000 {
        // The recorder would take the stack of such a block with the probability 0.63212, so 632 of
        // 1000 blocks have one.
        let stack = (block * 7919 % 1000 < 632).then_some(1);
        trace.step(0, step(block * 160, make(1000), stack));
    }
    for block in 0..100 {
        trace.step(0, step((3000 + block) * 160, free(block), None));
    }
    let profile = trace.profile();
    assert_eq!(
        of(&profile, None),
        None,
        "blocks without a stack are stood for"
    );
    let one = of(&profile, Some(1)).expect("a stack");
    assert!((2_950_000..3_050_000).contains(&one.made.bytes), "{one:?}");
    assert!((2_900..3_100).contains(&one.made.blocks), "{one:?}");
    assert!(one.at_peak_variance.half_width().bytes > 0);
    assert!(one.left.bytes < one.at_peak.bytes);
    // The blocks themselves are all recorded.
    assert_eq!(profile.all.counts.made.blocks, 3000);
    assert_eq!(
        profile.processes[0].peak.variance.half_width(),
        Amount::default()
    );
}

#[test]
fn stacks_of_a_sampled_trace_have_the_weights_of_its_blocks() {
    let mut trace = with_stacks(1000, 1);
    for block in 0..100 {
        trace.step(
            0,
            step(block * 160, make(1000), (block % 2 == 0).then_some(0)),
        );
    }
    let profile = trace.profile();
    let counts = &profile.all.counts;
    let [with, without] = [Some(0), None].map(|stack| of(&profile, stack).expect("a stack").made);
    assert_eq!(with.bytes + without.bytes, counts.made.bytes);
    assert_eq!(with.blocks + without.blocks, counts.made.blocks);
}
