//! Malloctest: all blocks allocated, then all freed in the same order.

mod text;

use heapdrome_record::WorkloadReport;

use crate::account::Account;
use crate::array::Array;
use crate::caller::Caller;
use crate::random::{Random, mix};
use crate::report::Outcome;
use crate::threads::{self, Halt, Team};
use crate::{Failure, Heap, Parameters, contents};

pub(crate) use text::DESCRIPTION;

/// What is the same for all threads.
#[derive(Clone, Copy)]
struct Plan {
    repeats: u64,
    lower: u64,
    upper: u64,
    touch: bool,
}

/// What one thread works with.
struct Worker<'a, H: Heap> {
    caller: Caller<'a, H>,
    /// Draws the sizes of a repeat. They are not stored: a copy draws them again for the frees.
    random: Random,
    key: u64,
    blocks: Array<*mut u8>,
}

fn check(parameters: &Parameters) -> Result<(), String> {
    let (lower, upper) = (parameters.value("lower"), parameters.value("upper"));
    match lower > upper {
        true => Err(format!("lower={lower} is above upper={upper}")),
        false => Ok(()),
    }
}

fn needs(parameters: &Parameters) -> u64 {
    let middle = parameters
        .value("lower")
        .midpoint(parameters.value("upper"));
    let of_thread = parameters
        .value("iterations")
        .saturating_mul(middle.saturating_add(size_of::<*mut u8>() as u64));
    of_thread.saturating_mul(parameters.value("threads"))
}

/// Blocks allocated and blocks freed, known beforehand.
pub(crate) fn operations(parameters: &Parameters) -> u64 {
    let factors = ["threads", "repeats", "iterations"];
    let blocks = factors.map(|name| parameters.value(name));
    blocks.into_iter().fold(2, u64::saturating_mul)
}

pub(crate) fn run<H: Heap>(parameters: &Parameters, heap: &H) -> Result<WorkloadReport, Failure> {
    let value = |name| parameters.value(name);
    let (threads, seed, timed) = (value("threads"), value("seed"), value("latency") == 1);
    let plan = Plan {
        repeats: value("repeats"),
        lower: value("lower"),
        upper: value("upper"),
        touch: value("touch") == 1,
    };
    let blocks = value("iterations");
    let account = Account::default();
    let finished = threads::run(
        threads as usize,
        |number| {
            Ok(Worker {
                caller: Caller::new(heap, &account, timed),
                random: Random::new(seed, number),
                key: mix(mix(seed) ^ number as u64),
                blocks: Array::new(blocks as usize)?,
            })
        },
        |_, worker, team| worker.work(plan, team),
        |worker| worker.caller.finish(),
    )?;
    let bookkeeping = threads * blocks * size_of::<*mut u8>() as u64;
    Ok(Outcome::of(finished, &account, bookkeeping).report(parameters))
}

impl<H: Heap> Worker<'_, H> {
    fn work(&mut self, plan: Plan, team: &Team) -> Result<(), Halt> {
        for _ in 0..plan.repeats {
            team.go_on()?;
            match plan.touch {
                true => self.repeat_touching(plan)?,
                false => self.repeat(plan)?,
            }
        }
        Ok(())
    }

    /// As the original: nothing is written into any block.
    fn repeat(&mut self, plan: Plan) -> Result<(), Failure> {
        let mut again = self.random.clone();
        for block in self.blocks.iter_mut() {
            let size = self.random.between(plan.lower, plan.upper) as usize;
            *block = self.caller.allocate_bare(size, 0)?;
        }
        for block in self.blocks.iter() {
            let size = again.between(plan.lower, plan.upper) as usize;
            // SAFETY: the block was allocated above with this size: both draw the same sizes.
            unsafe { self.caller.free_bare(*block, size) };
        }
        Ok(())
    }

    /// The same, with every byte written and the ends checked.
    fn repeat_touching(&mut self, plan: Plan) -> Result<(), Failure> {
        let mut again = self.random.clone();
        let mut key = self.key;
        for block in self.blocks.iter_mut() {
            let size = self.random.between(plan.lower, plan.upper) as usize;
            *block = self.caller.allocate(size, 0, self.key)?;
            self.key = self.key.wrapping_add(1);
            // SAFETY: the block was just allocated with this size.
            unsafe { contents::fill(*block, size, size as u8) };
        }
        for block in self.blocks.iter() {
            let size = again.between(plan.lower, plan.upper) as usize;
            // SAFETY: the block was allocated above with this size and key.
            unsafe { self.caller.free(*block, size, key) }?;
            key = key.wrapping_add(1);
        }
        Ok(())
    }
}
