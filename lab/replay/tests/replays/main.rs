//! Tests replays, most of them at every speed. Each block is freed at most once, after it was made;
//! the right blocks are live at the end; and no replay hangs. Some tests also limit the slots, the
//! memory or the time that a replay uses.

mod damage;
mod grown;
mod heap;
mod program;
mod shrink;

use std::fs::File;
use std::sync::mpsc;
use std::time::Duration;

use heapdrome_replay::{Compiled, Outcome, Speed, Touch, compile, replay};
use heapdrome_trace::Operation;

use heap::Recorder;
use program::Program;

/// Time after which a replay counts as hung, even on a busy machine.
const LONGEST: Duration = Duration::from_secs(120);

fn compiled(trace: &File, speed: Speed) -> (Compiled, File) {
    let program = tempfile::tempfile().expect("a file");
    let compiled = compile(trace, None, speed, &program, &|| true);
    (compiled.unwrap_or_else(|error| panic!("{error}")), program)
}

/// Replays in a separate thread, so that a replay that hangs fails the test.
fn replayed(program: File, touch: Touch) -> (Outcome, Vec<usize>) {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let heap = Recorder::default();
        // SAFETY: `compile` wrote the program just now, and only this test knows the file.
        let outcome = unsafe { replay(&program, touch, &heap) };
        let outcome = outcome.unwrap_or_else(|error| panic!("{error}"));
        let (sizes, strange) = heap.finish();
        assert_eq!(strange, 0, "calls for blocks that do not live");
        let _ = sender.send((outcome, sizes));
    });
    receiver.recv_timeout(LONGEST).expect("the replay ends")
}

/// Replays a program at every speed, and compares the live blocks at the end of the replay with
/// those of the program. Returns the number of slots at each speed.
///
/// The first 16 slots hold no blocks.
fn check(make: impl Fn() -> Program) -> [u32; 3] {
    Speed::ALL.map(|speed| {
        let (trace, sizes) = make().finish();
        let (compiled, program) = compiled(&trace, speed);
        let touch = match speed {
            Speed::Dependencies => Touch::None,
            Speed::Paced => Touch::Pages,
            Speed::Locked => Touch::Check,
        };
        let (outcome, live) = replayed(program, touch);
        assert_eq!(live, sizes, "{speed}");
        assert_eq!(compiled.header.live, sizes.len() as u64);
        assert_eq!(outcome.header, compiled.header);
        compiled.header.slots
    })
}

#[test]
fn threads_that_do_everything_end_with_the_right_blocks() {
    for threads in [1, 2, 7] {
        check(|| {
            let mut program = Program::new(u64::from(threads));
            program.wander(0..threads, 3000);
            program
        });
    }
}

#[test]
fn blocks_change_threads_both_ways() {
    check(|| {
        let mut program = Program::new(1);
        for _ in 0..2000 {
            let there = program.make(0);
            let back = program.make(1);
            program.free(1, there);
            let again = program.resize(0, back);
            program.free(1, again);
        }
        program
    });
}

#[test]
fn a_producer_that_runs_ahead_uses_few_slots() {
    let slots = check(|| {
        let mut program = Program::new(2);
        for _ in 0..30_000 {
            let block = program.make(0);
            program.free(1, block);
        }
        program
    });
    assert!(slots.iter().all(|slots| *slots < 10_000), "{slots:?}");
    assert_eq!(
        slots[2], 17,
        "in the order of the recording one block lives at a time"
    );
}

#[test]
fn chains_of_realloc_stay_in_their_slot() {
    let slots = check(|| {
        let mut program = Program::new(3);
        let mut block = program.make(0);
        for step in 0..500 {
            block = program.resize(step % 3, block);
        }
        program
    });
    assert_eq!(slots, [17; 3]);
}

#[test]
fn many_short_threads_follow_each_other() {
    let slots = check(|| {
        let mut program = Program::new(4);
        let mut left = program.make(0);
        for thread in 1..600 {
            program.free(thread, left);
            let own = program.make(thread);
            program.free(thread, own);
            left = program.make(thread);
        }
        program
    });
    assert!(slots.iter().all(|slots| *slots < 80), "{slots:?}");
}

#[test]
fn threads_that_overlap_start_and_end_in_their_order() {
    check(|| {
        let mut program = Program::new(5);
        for first in 0..200 {
            program.wander(first..first + 5, 20);
        }
        program
    });
}

#[test]
fn a_paced_replay_takes_as_long_as_the_recording() {
    let paused = || {
        let mut program = Program::new(6);
        program.pause = 2_000_000;
        program.wander(0..3, 200);
        program.finish().0
    };
    let seconds = |speed| {
        let (_, program) = compiled(&paused(), speed);
        let (outcome, _) = replayed(program, Touch::First);
        outcome.elapsed.wall.as_secs_f64()
    };
    let (paced, fast) = (seconds(Speed::Paced), seconds(Speed::Dependencies));
    assert!(paced > 0.15, "200 pauses of 1 ms on average: {paced}");
    assert!(fast < paced, "{fast}");
}

#[test]
fn large_blocks_and_pieces_come_through() {
    let make = || {
        let mut program = Program::new(7);
        let (function, size, alignment) = (0, 5 << 30, 0);
        for function in [function, 3, 4] {
            program.step(
                0,
                Operation::Make {
                    function,
                    size,
                    alignment,
                },
            );
        }
        program.step(
            0,
            Operation::Resize {
                function: 2,
                size: 6 << 30,
                block: 0,
            },
        );
        for block in 1..4 {
            program.step(0, Operation::Free { function: 1, block });
        }
        program
    };
    for speed in Speed::ALL {
        let (compiled, program) = compiled(&make().finish().0, speed);
        assert_eq!(compiled.header.floor, 16 << 30);
        let (_, live) = replayed(program, Touch::First);
        assert!(live.is_empty());
    }
}

#[test]
fn a_long_replay_holds_a_small_part_of_its_program() {
    let mut program = Program::new(13);
    for _ in 0..200_000 {
        let make = Operation::Make {
            function: 0,
            size: 64,
            alignment: 0,
        };
        program.step(0, make);
        let block = program.lives(64);
        program.free(0, block);
    }
    let (_, program) = compiled(&program.finish().0, Speed::Dependencies);
    let whole = program.metadata().expect("a file").len();
    let (outcome, _) = replayed(program, Touch::First);
    // Two pieces of 128 KiB, and tables for one block and one thread.
    assert!(outcome.own < 300 << 10, "{}", outcome.own);
    assert!(whole > 10 * outcome.own, "{whole}");
}

#[test]
fn what_cannot_be_replayed_is_counted() {
    let mut program = Program::new(8);
    let foreign = Operation::FreeForeign {
        function: 1,
        size: None,
    };
    program.step(0, foreign);
    let block = program.make(0);
    program.free(0, block);
    let (compiled, _) = compiled(&program.finish().0, Speed::Dependencies);
    assert_eq!(
        (compiled.header.operations, compiled.header.left_out),
        (2, 1)
    );
}
