//! Large blocks: blocks of megabytes that come and go among others that stay.

mod texts;

pub(crate) use texts::DESCRIPTION;

use heapdrome_schema::WorkloadReport;

use crate::account::Account;
use crate::array::Array;
use crate::random_blocks::{Blocks, Kind, Sizes, Slot, check_sizes};
use crate::report::Outcome;
use crate::threads::{self, Halt, Team};
use crate::{Failure, Heap, Parameters};

fn check(parameters: &Parameters) -> Result<(), String> {
    check_sizes(parameters)?;
    let (max, share) = (parameters.value("max"), share(parameters));
    match max > share {
        true => Err(format!(
            "max {max} is greater than a thread's share of live, which is {share} bytes"
        )),
        false => Ok(()),
    }
}

/// Returns the maximum total size in bytes of the blocks that a thread keeps.
fn share(parameters: &Parameters) -> u64 {
    (parameters.value("live") << 20) / parameters.value("threads")
}

/// Returns the number of slots of a thread: one for each block that it may keep, and one for the
/// block that exceeds its share.
fn slots(parameters: &Parameters) -> u64 {
    share(parameters) / parameters.value("min") + 1
}

/// Estimates the peak memory: all threads' shares, and for each thread its array and one more block
/// of maximum size.
fn needs(parameters: &Parameters) -> u64 {
    let threads = parameters.value("threads");
    let arrays = slots(parameters).saturating_mul(size_of::<Slot>() as u64);
    let more = parameters.value("max").saturating_add(arrays);
    (parameters.value("live") << 20).saturating_add(more.saturating_mul(threads))
}

/// Returns the number of operations of a run: blocks allocated plus blocks freed.
pub(crate) fn operations(parameters: &Parameters) -> u64 {
    let each = parameters.value("blocks").saturating_mul(2);
    each.saturating_mul(parameters.value("threads"))
}

struct Worker<'a, H: Heap> {
    blocks: Blocks<'a, H>,
    /// Blocks in use: the first `kept` slots, of `bytes` bytes together.
    slots: Array<Slot>,
    kept: usize,
    bytes: u64,
    share: u64,
}

pub(crate) fn run<H: Heap>(parameters: &Parameters, heap: &H) -> Result<WorkloadReport, Failure> {
    let kind = Kind::new(Sizes::logarithmic(parameters), parameters);
    let account = Account::default();
    let finished = threads::run(
        parameters.value("threads") as usize,
        |number| {
            Ok(Worker {
                blocks: Blocks::new(&kind, heap, &account, number),
                slots: Array::new(slots(parameters) as usize)?,
                kept: 0,
                bytes: 0,
                share: share(parameters),
            })
        },
        |_, worker, team| worker.work(parameters.value("blocks"), team),
        |worker| worker.blocks.finish(),
    )?;
    let array = slots(parameters) * size_of::<Slot>() as u64;
    let bookkeeping = parameters.value("threads") * array;
    Ok(Outcome::of(finished, &account, bookkeeping).report(parameters))
}

impl<H: Heap> Worker<'_, H> {
    fn work(&mut self, blocks: u64, team: &Team) -> Result<(), Halt> {
        for _ in 0..blocks {
            team.go_on()?;
            let slot = self.blocks.allocate()?;
            self.slots[self.kept] = slot;
            self.kept += 1;
            self.bytes += u64::from(slot.size);
            while self.bytes > self.share {
                self.free_one()?;
            }
        }
        while self.kept > 0 {
            self.free_one()?;
        }
        Ok(())
    }

    /// Frees a block drawn at random.
    fn free_one(&mut self) -> Result<(), Failure> {
        let place = self.blocks.below(self.kept as u64) as usize;
        self.kept -= 1;
        let slot = self.slots[place];
        self.slots[place] = self.slots[self.kept];
        self.bytes -= u64::from(slot.size);
        // SAFETY: the first `kept` slots hold blocks that `work` allocated. Only this thread uses
        // them. This block's slot was removed from them above, so the block is not freed again.
        unsafe { self.blocks.free(slot) }
    }
}
