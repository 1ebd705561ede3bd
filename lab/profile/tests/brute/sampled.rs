//! Tests estimates from sampled traces.

use heapdrome_profile::{ProcessProfile, Profile, Sampling};
use heapdrome_trace::{Beginning, Operation, Recording};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::trace::{Trace, free, make, resize};

const MEAN: u64 = 4096;
const SAMPLES: u64 = 400;

/// Size of a block, the step at which it is freed, and whether a resize made it.
struct Block {
    size: u64,
    until: Option<usize>,
    resized: bool,
}

/// Returns the blocks of a program that makes one block at each step. Most blocks are small, some
/// have a size near [`MEAN`], and a few are large.
fn blocks(draws: &mut ChaCha8Rng) -> Vec<Block> {
    let block = |at: usize| Block {
        size: match draws.random_range(0..10) {
            0..7 => draws.random_range(16..200),
            7..9 => draws.random_range(2000..8000),
            _ => draws.random_range(20_000..60_000),
        },
        until: (!at.is_multiple_of(3)).then(|| at + draws.random_range(1..300)),
        resized: at.is_multiple_of(7),
    };
    (0..10_000).map(block).collect()
}

/// Profiles a trace of the blocks for which `is_recorded` returns true, as the recorder would write
/// it. Without a recorded block to resize, a resize becomes an operation that makes a block.
fn trace(blocks: &[Block], sample_bytes: u64, mut is_recorded: impl FnMut(u64) -> bool) -> Profile {
    let mut trace = Trace::of(Recording {
        sample_bytes,
        ..Trace::recording()
    });
    trace.begin(0, 0, Beginning::Executed);
    let mut ends: Vec<(usize, u64)> = Vec::new();
    let mut number = 0;
    for (at, block) in blocks.iter().enumerate() {
        let time = at as u64 * 160;
        for (_, freed) in ends.extract_if(.., |(until, _)| *until == at) {
            trace.does(0, time, free(freed));
        }
        if is_recorded(block.size) {
            match ends.last().filter(|_| block.resized).copied() {
                Some((_, old)) => {
                    ends.pop();
                    trace.does(0, time, resize(old, block.size));
                }
                None => trace.does(0, time, make(block.size)),
            }
            ends.extend(block.until.map(|until| (until, number)));
            number += 1;
        }
    }
    trace.end(0, 1 << 20);
    trace.profile()
}

#[test]
fn intervals_hold_the_truth_as_often_as_they_say() {
    let mut draws = ChaCha8Rng::seed_from_u64(1);
    let mut blocks = blocks(&mut draws);
    blocks.iter_mut().for_each(|block| block.resized = false);
    let whole = trace(&blocks, 0, |_| true);
    let sampling = Sampling::of_blocks(&Recording {
        sample_bytes: MEAN,
        ..Recording::default()
    });
    let mut inside = [0_u64; 4];
    let mut sums = [0.0; 4];
    for seed in 0..SAMPLES {
        let mut draws = ChaCha8Rng::seed_from_u64(1000 + seed);
        let is_recorded = |size| draws.random_bool(sampling.probability(size));
        let sample = trace(&blocks, MEAN, is_recorded);
        let (sample, whole) = (&sample.all.counts, &whole.all.counts);
        let made = sample.made_variance.half_width();
        let left = sample.left_variance.half_width();
        let all = [
            (sample.made.blocks, whole.made.blocks, made.blocks),
            (sample.made.bytes, whole.made.bytes, made.bytes),
            (sample.left.blocks, whole.left.blocks, left.blocks),
            (sample.left.bytes, whole.left.bytes, left.bytes),
        ];
        for (place, (estimate, truth, half)) in all.into_iter().enumerate() {
            inside[place] += u64::from(estimate.abs_diff(truth) <= half);
            sums[place] += estimate as f64 / truth as f64;
        }
    }
    for (inside, sum) in inside.into_iter().zip(sums) {
        let mean = sum / SAMPLES as f64;
        assert!((mean - 1.0).abs() < 0.02, "the mean is {mean} of the truth");
        let share = inside as f64 / SAMPLES as f64;
        assert!((0.91..=0.985).contains(&share), "{share}");
    }
}

fn process(profile: &Profile) -> &ProcessProfile {
    &profile.processes[0]
}

#[test]
fn what_a_sample_does_not_show_is_left_out() {
    let mut draws = ChaCha8Rng::seed_from_u64(2);
    let blocks = blocks(&mut draws);
    let whole = trace(&blocks, 0, |_| true);
    assert!(process(&whole).counts.resizes.calls > 0);
    let sample = trace(&blocks, MEAN, |size| size > 3000);
    let counts = &process(&sample).counts;
    assert_eq!(counts.resizes.calls, 0);
    assert_eq!(counts.temporary.blocks, 0);
    assert_eq!(counts.lived_bytes.total().blocks, 0);
    assert!(counts.lived_time.total().blocks > 0);
    assert_eq!(counts.functions[2].calls, 0, "frees are not counted");
    assert_eq!(counts.calls(), counts.made.blocks);
    assert!(counts.recorded < counts.made.blocks);
}

#[test]
fn a_free_takes_away_what_its_block_added() {
    let mut trace = Trace::of(Recording {
        sample_bytes: 1000,
        ..Trace::recording()
    });
    for block in 0..500 {
        trace.does(0, block * 32, make(block * 7));
    }
    for block in 0..500 {
        trace.does(0, (500 + block) * 32, free(block));
    }
    trace.does(0, 1 << 20, Operation::FreeNull { function: 2 });
    let profile = trace.profile();
    let counts = &process(&profile).counts;
    assert_eq!(counts.made, counts.freed);
    assert_eq!(
        process(&profile)
            .timeline
            .points
            .last()
            .map(|it| it.bytes.last),
        Some(0)
    );
    assert!(process(&profile).peak.variance.half_width().bytes > 0);
}
