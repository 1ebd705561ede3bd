//! Malloctest: all blocks allocated, then all freed in the same order.

mod text;

use heapdrome_schema::WorkloadReport;

use crate::account::{self, Account};
use crate::array::Array;
use crate::caller::Caller;
use crate::random::{Random, mix};
use crate::report::Outcome;
use crate::threads::{self, Halt, Team};
use crate::{Failure, Heap, Parameters, contents};

pub(crate) use text::DESCRIPTION;

/// Settings of all threads.
#[derive(Clone, Copy)]
struct Plan {
    repeats: u64,
    lower: u64,
    upper: u64,
    touch: bool,
}

struct Worker<'a, H: Heap> {
    caller: Caller<'a, H>,
    /// Draws the sizes of a repeat. Sizes are not stored: a copy draws them again for the frees.
    random: Random,
    key: u64,
    blocks: Array<*mut u8>,
    /// Total size of the blocks of each stretch. Empty if `touch` is set.
    sums: Array<usize>,
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

/// Returns the number of operations of a run: blocks allocated plus blocks freed.
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
    let blocks = value("iterations") as usize;
    let sums = match plan.touch {
        true => 0,
        false => blocks.div_ceil(plan.stretch()),
    };
    let account = Account::default();
    let finished = threads::run(
        threads as usize,
        |number| {
            Ok(Worker {
                caller: Caller::new(heap, &account, timed),
                random: Random::new(seed, number),
                key: mix(mix(seed) ^ number as u64),
                blocks: Array::new(blocks)?,
                sums: Array::new(sums)?,
            })
        },
        |_, worker, team| worker.work(plan, team),
        |worker| worker.caller.finish(),
    )?;
    let bookkeeping = threads * ((blocks + sums) * size_of::<usize>()) as u64;
    Ok(Outcome::of(finished, &account, bookkeeping).report(parameters))
}

impl Plan {
    /// Returns the maximum number of blocks that are counted together.
    fn stretch(self) -> usize {
        account::stretch(self.upper)
    }

    /// Draws the size of the next block.
    #[inline]
    fn size(self, random: &mut Random) -> usize {
        random.between(self.lower, self.upper) as usize
    }
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

    /// Runs a repeat like the original, which writes nothing into the blocks. The work beside the
    /// calls must be small compared with an allocator that does almost nothing. The generators are
    /// therefore copies on the stack that no call can reach, so that they stay in registers. If the
    /// heap ignores the size of a freed block, the compiler removes the draws for the frees.
    fn repeat(&mut self, plan: Plan) -> Result<(), Failure> {
        let (mut first, mut again) = (self.random.clone(), self.random.clone());
        let mut sizes = [0; account::LONGEST];
        let stretches = self.blocks.chunks_mut(plan.stretch());
        for (blocks, sum) in stretches.zip(self.sums.iter_mut()) {
            let sizes = &mut sizes[..blocks.len()];
            sizes.fill_with(|| plan.size(&mut first));
            *sum = self.caller.allocate_stretch(blocks, sizes)?;
        }
        let stretches = self.blocks.chunks(plan.stretch());
        for (blocks, sum) in stretches.zip(self.sums.iter()) {
            // SAFETY: the blocks were allocated above with these sizes, because both generators
            // draw equal sizes. They are in use, and are not used afterwards.
            unsafe {
                self.caller
                    .free_stretch(blocks, *sum, || plan.size(&mut again));
            }
        }
        self.random = first;
        Ok(())
    }

    /// Runs a repeat that writes every byte and checks both ends.
    fn repeat_touching(&mut self, plan: Plan) -> Result<(), Failure> {
        let mut again = self.random.clone();
        let mut key = self.key;
        for block in self.blocks.iter_mut() {
            let size = plan.size(&mut self.random);
            *block = self.caller.allocate(size, 0, self.key)?;
            self.key = self.key.wrapping_add(1);
            // SAFETY: the block was just allocated with this size, and no other thread uses it.
            unsafe { contents::fill(*block, size, size as u8) };
        }
        for block in self.blocks.iter() {
            let size = plan.size(&mut again);
            // SAFETY: the block was allocated above with this size and key. Only this thread uses
            // it, and it is not used afterwards.
            unsafe { self.caller.free(*block, size, key) }?;
            key = key.wrapping_add(1);
        }
        Ok(())
    }
}
