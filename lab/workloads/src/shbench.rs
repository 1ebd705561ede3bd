//! Shbench: blocks of varying sizes and lifetimes, all within one thread.

mod text;

use heapdrome_schema::WorkloadReport;

use crate::account::Account;
use crate::array::{Array, Zeroed};
use crate::caller::Caller;
use crate::random::{Random, mix};
use crate::report::Outcome;
use crate::threads::{self, Halt, Team};
use crate::{Failure, Heap, Parameters};

pub(crate) use text::DESCRIPTION;

/// Block in use with its size and key, or no block while `address` is null.
#[derive(Clone, Copy)]
struct Block {
    address: *mut u8,
    size: u32,
    key: u32,
}

// SAFETY: a null pointer and zeros are an empty entry.
unsafe impl Zeroed for Block {}

/// Time at which a block is freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// At the end of the round, newest first.
    Lifo,
    /// At the end of the round, oldest first.
    Fifo,
    /// When another block takes over its slot.
    Kept,
}

/// Returns the fates of a hundred consecutive blocks. Each fate is spread as evenly as its share
/// allows. The fates are fixed rather than drawn, because a mispredicted branch would cost more
/// than the malloc of a fast allocator.
fn fates(lifo: u64, fifo: u64) -> [Fate; 100] {
    let shares = [lifo as i64, fifo as i64, 100 - (lifo + fifo) as i64];
    let mut due = [0; 3];
    std::array::from_fn(|_| {
        (0..3).for_each(|fate| due[fate] += shares[fate]);
        let most = (0..3).max_by_key(|fate| due[*fate]).unwrap_or_default();
        due[most] -= 100;
        [Fate::Lifo, Fate::Fifo, Fate::Kept][most]
    })
}

/// Settings of all threads.
#[derive(Clone, Copy)]
struct Plan {
    blocks: u64,
    least: u64,
    greatest: u64,
    fates: [Fate; 100],
}

struct Worker<'a, H: Heap> {
    caller: Caller<'a, H>,
    random: Random,
    /// Number that is added to a block's number to form its key, so that threads and seeds have
    /// different keys.
    first_key: u64,
    /// Number of the next block; it may wrap, because keys need not be unique.
    number: u32,
    rounds: u64,
    /// Blocks of this round that are freed newest first: the first `stacked` are in use.
    stack: Array<Block>,
    stacked: usize,
    /// Blocks of this round that are freed oldest first: the first `queued` are in use.
    queue: Array<Block>,
    queued: usize,
    /// Blocks that live until another block takes over their slot.
    kept: Array<Block>,
}

fn check(parameters: &Parameters) -> Result<(), String> {
    let value = |name| parameters.value(name);
    if value("min") > value("max") {
        return Err(format!(
            "min={} is above max={}",
            value("min"),
            value("max")
        ));
    }
    if value("lifo") + value("fifo") > 100 {
        return Err("lifo and fifo together are more than 100%".to_owned());
    }
    if value("iterations") < value("threads") {
        return Err(format!(
            "{} iterations cannot be divided among {} threads",
            value("iterations"),
            value("threads")
        ));
    }
    Ok(())
}

fn needs(parameters: &Parameters) -> u64 {
    let value = |name| parameters.value(name);
    let middle = value("min").midpoint(value("max"));
    let blocks = value("blocks").saturating_add(value("kept"));
    let arrays = bookkeeping(value("blocks"), value("kept"));
    let of_thread = blocks.saturating_mul(middle).saturating_add(arrays);
    of_thread.saturating_mul(value("threads"))
}

/// Returns the number of operations of a run: blocks allocated plus blocks freed.
pub(crate) fn operations(parameters: &Parameters) -> u64 {
    let rounds = parameters.value("iterations");
    rounds
        .saturating_mul(parameters.value("blocks"))
        .saturating_mul(2)
}

/// Returns the size of one thread's arrays in bytes.
fn bookkeeping(blocks: u64, kept: u64) -> u64 {
    let records = blocks.saturating_mul(2).saturating_add(kept);
    records.saturating_mul(size_of::<Block>() as u64)
}

pub(crate) fn run<H: Heap>(parameters: &Parameters, heap: &H) -> Result<WorkloadReport, Failure> {
    let value = |name| parameters.value(name);
    let (threads, seed, timed) = (value("threads"), value("seed"), value("latency") == 1);
    let plan = Plan {
        blocks: value("blocks"),
        least: value("min"),
        greatest: value("max"),
        fates: fates(value("lifo"), value("fifo")),
    };
    let account = Account::default();
    let finished = threads::run(
        threads as usize,
        |number| {
            let share = value("iterations") / threads;
            let more = u64::from((number as u64) < value("iterations") % threads);
            Ok(Worker {
                caller: Caller::new(heap, &account, timed),
                random: Random::new(seed, number),
                first_key: mix(mix(seed) ^ number as u64),
                number: 0,
                rounds: share + more,
                stack: Array::new(plan.blocks as usize)?,
                stacked: 0,
                queue: Array::new(plan.blocks as usize)?,
                queued: 0,
                kept: Array::new(value("kept") as usize)?,
            })
        },
        |_, worker, team| worker.work(&plan, team),
        |worker| worker.caller.finish(),
    )?;
    let bookkeeping = threads * bookkeeping(plan.blocks, value("kept"));
    Ok(Outcome::of(finished, &account, bookkeeping).report(parameters))
}

impl<H: Heap> Worker<'_, H> {
    fn work(&mut self, plan: &Plan, team: &Team) -> Result<(), Halt> {
        for _ in 0..self.rounds {
            team.go_on()?;
            for number in 0..plan.blocks {
                self.allocate(plan, plan.fates[(number % 100) as usize])?;
            }
            self.end_round()?;
        }
        for slot in 0..self.kept.len() {
            let block = std::mem::replace(&mut self.kept[slot], NONE);
            self.free(block)?;
        }
        Ok(())
    }

    /// Allocates a block with a given fate.
    #[inline]
    fn allocate(&mut self, plan: &Plan, fate: Fate) -> Result<(), Failure> {
        let size = self.random.between(plan.least, plan.greatest) as u32;
        let key = self.number;
        self.number = key.wrapping_add(1);
        let full_key = self.first_key.wrapping_add(u64::from(key));
        let address = self.caller.allocate(size as usize, 0, full_key)?;
        let block = Block { address, size, key };
        match fate {
            Fate::Lifo => {
                self.stack[self.stacked] = block;
                self.stacked += 1;
            }
            Fate::Fifo => {
                self.queue[self.queued] = block;
                self.queued += 1;
            }
            Fate::Kept => {
                let slot = self.random.below(self.kept.len() as u64) as usize;
                let former = std::mem::replace(&mut self.kept[slot], block);
                self.free(former)?;
            }
        }
        Ok(())
    }

    /// Frees the blocks that do not outlive the round.
    fn end_round(&mut self) -> Result<(), Failure> {
        for place in (0..self.stacked).rev() {
            self.free(self.stack[place])?;
        }
        for place in 0..self.queued {
            self.free(self.queue[place])?;
        }
        (self.stacked, self.queued) = (0, 0);
        Ok(())
    }

    #[inline]
    fn free(&mut self, block: Block) -> Result<(), Failure> {
        if block.address.is_null() {
            return Ok(());
        }
        let key = self.first_key.wrapping_add(u64::from(block.key));
        // SAFETY: a block in an array was allocated with its size and key, and only this thread
        // uses it. It is removed from the array before it is freed, or the array's count is reset
        // before it is read again.
        unsafe { self.caller.free(block.address, block.size as usize, key) }
    }
}

const NONE: Block = Block {
    address: std::ptr::null_mut(),
    size: 0,
    key: 0,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_share_is_exact_in_a_hundred_blocks() {
        for lifo in 0..=100 {
            for fifo in 0..=100 - lifo {
                let fates = fates(lifo, fifo);
                let count = |fate| fates.iter().filter(|one| **one == fate).count() as u64;
                assert_eq!((count(Fate::Lifo), count(Fate::Fifo)), (lifo, fifo));
            }
        }
    }
}
