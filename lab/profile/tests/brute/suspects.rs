//! Tests that stacks that leak are suspected, and that other stacks rarely are.

use std::collections::BTreeSet;

use heapdrome_profile::{Profile, Suspect};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::stacks::{step, with_stacks};
use crate::trace::{Trace, free, make};

const SECOND: u64 = 1_000_000_000;

/// A program whose blocks have lifetimes. The caller decides which blocks each stack makes.
struct Program {
    trace: Trace,
    draws: ChaCha8Rng,
    /// Times at which blocks are freed, with the numbers of the blocks.
    ends: BTreeSet<(u64, u64)>,
    made: u64,
}

impl Program {
    fn new(seed: u64, sample_bytes: u64) -> Self {
        let mut trace = with_stacks(sample_bytes, 1);
        trace.begin(0, 0, heapdrome_trace::Beginning::Executed);
        Self {
            trace,
            draws: ChaCha8Rng::seed_from_u64(seed),
            ends: BTreeSet::new(),
            made: 0,
        }
    }

    /// Frees the blocks whose lifetime has ended by this time.
    fn pass(&mut self, time: u64) {
        while self.ends.first().is_some_and(|(end, _)| *end <= time) {
            let (end, block) = self.ends.pop_first().expect("there is one");
            self.trace.step(0, step(end, free(block), None));
        }
    }

    /// Makes a block that is freed after `lives` nanoseconds, or never.
    fn make(&mut self, time: u64, stack: u32, size: u64, lives: Option<u64>) {
        self.pass(time);
        self.trace.step(0, step(time, make(size), Some(stack)));
        self.ends
            .extend(lives.map(|lives| (time + lives, self.made)));
        self.made += 1;
    }

    /// Draws an exponentially distributed number with this mean.
    fn exponential(&mut self, mean: f64) -> u64 {
        let part: f64 = self.draws.random();
        (-(1.0 - part).ln() * mean) as u64
    }

    fn end(mut self, time: u64) -> Profile {
        self.pass(time);
        self.trace.end(0, time);
        self.trace.profile()
    }
}

fn suspects(profile: &Profile) -> &[Suspect] {
    &profile.processes[0].suspects
}

/// Profiles the requests of a server over ten seconds. Stack 0 uses memory briefly, stack 1 fills a
/// cache of 400 entries, and stack 2 leaks one block in `leaks`, if that is set.
fn server(seed: u64, leaks: Option<u64>) -> Profile {
    let mut program = Program::new(seed, 0);
    for request in 0..4000_u64 {
        let time = request * 2_500_000;
        let lives = program.exponential(20e6);
        program.make(time, 0, 1000, Some(lives));
        if request < 400 {
            program.make(time + 160, 1, 5000, None);
        }
        let is_forgotten = leaks.is_some_and(|leaks| request.is_multiple_of(leaks));
        let lives = program.exponential(5e6);
        program.make(time + 320, 2, 800, (!is_forgotten).then_some(lives));
    }
    program.end(10 * SECOND)
}

#[test]
fn a_leak_is_found_with_its_rate_and_a_cache_is_none() {
    let mut wrong = 0;
    for seed in 0..20 {
        let profile = server(seed, None);
        assert!(
            suspects(&profile).iter().all(|one| one.stack != 1),
            "the cache"
        );
        wrong += suspects(&profile).len();
        let profile = server(seed, Some(10));
        let [suspect] = suspects(&profile) else {
            panic!("{:?}", suspects(&profile));
        };
        assert_eq!(suspect.stack, 2);
        // Forty blocks of 800 bytes leak each second.
        let [low, high] = suspect.interval;
        assert!(
            low > 0.0 && low < 33_000.0 && high > 31_000.0,
            "{suspect:?}"
        );
        assert!(
            (suspect.per_second / 32_000.0 - 1.0).abs() < 0.05,
            "{suspect:?}"
        );
        assert!((400..420).contains(&suspect.left.blocks), "{suspect:?}");
    }
    assert!(wrong <= 1, "{wrong} of 20");
}

#[test]
fn a_leak_is_found_in_a_sample() {
    let (mut found, mut inside) = (0, 0);
    for seed in 0..20 {
        let mut program = Program::new(seed, 10_000);
        let sampling = heapdrome_profile::Sampling::of_blocks(&heapdrome_trace::Recording {
            sample_bytes: 10_000,
            ..Trace::recording()
        });
        for block in 0..20_000_u64 {
            // One block in ten leaks: 1.6 MB in ten seconds.
            let (size, time) = (800, block * 500_000);
            let lives = (block % 10 > 0).then_some(30_000_000);
            if program.draws.random_bool(sampling.probability(size)) {
                program.make(time, 2, size, lives);
            }
        }
        let profile = program.end(10 * SECOND);
        found += suspects(&profile).len();
        for suspect in suspects(&profile) {
            let [low, high] = suspect.interval;
            inside += usize::from((low..=high).contains(&160_000.0));
        }
    }
    assert!(found >= 18, "{found} of 20");
    assert!(inside + 1 >= found, "{inside} of {found}");
}

#[test]
fn programs_that_only_use_memory_are_suspected_rarely() {
    const TRACES: u64 = 200;
    let mut suspected = 0;
    for seed in 0..TRACES {
        let mut program = Program::new(1_000_000 + seed, 0);
        // The mean lifetime of the blocks of stack 0 is between a thousandth and a twentieth of the
        // program's run time. Those of the other two stacks are twice and three times as long.
        let lifetime = 10e6 * 50_f64.powf(program.draws.random());
        let mut time = 0;
        while time < 10 * SECOND {
            time += program.exponential(4e6);
            let stack = program.draws.random_range(0..3);
            let size = 1 << program.draws.random_range(4..14);
            let lives = program.exponential(lifetime * f64::from(1 + stack));
            program.make(time, stack, size, Some(lives));
        }
        let profile = program.end(time);
        suspected += u64::from(!suspects(&profile).is_empty());
    }
    assert!(suspected * 20 <= TRACES, "{suspected} of {TRACES}");
}

#[test]
fn a_short_trace_has_no_suspects() {
    let mut program = Program::new(0, 0);
    for block in 0..20 {
        program.make(block * 50_000_000, 0, 1000, None);
    }
    assert_eq!(suspects(&program.end(SECOND - 1)), []);
}
