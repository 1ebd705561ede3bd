//! Short threads: threads that allocate, hand one block over, free the others and end.

mod texts;

pub(crate) use texts::DESCRIPTION;

use std::collections::VecDeque;
use std::thread::{Builder, Scope, ScopedJoinHandle};

use heapdrome_schema::WorkloadReport;

use crate::account::Account;
use crate::array::Array;
use crate::caller::Tally;
use crate::random_blocks::{Blocks, Kind, Sizes, Slot};
use crate::report::Outcome;
use crate::threads;
use crate::{Failure, Heap, Parameters};

/// Estimates the peak memory: the blocks and arrays of all threads that are alive.
fn needs(parameters: &Parameters) -> u64 {
    let of_each = Sizes::logarithmic(parameters).mean() + size_of::<Slot>() as f64;
    let blocks = parameters.value("blocks") as f64 * parameters.value("threads") as f64;
    // The conversion saturates: a number that is too large becomes the maximum.
    (blocks * of_each) as u64
}

/// Returns the number of operations of a run: blocks allocated plus blocks freed.
pub(crate) fn operations(parameters: &Parameters) -> u64 {
    let blocks = parameters
        .value("count")
        .saturating_mul(parameters.value("blocks"));
    blocks.saturating_mul(2)
}

pub(crate) fn run<H: Heap>(parameters: &Parameters, heap: &H) -> Result<WorkloadReport, Failure> {
    let kind = Kind::new(Sizes::logarithmic(parameters), parameters);
    let account = Account::default();
    let alive = parameters.value("threads") as usize;
    let finished = threads::run(
        1,
        |_| {
            let arrays = (0..alive).map(|_| Array::new(parameters.value("blocks") as usize));
            Ok(Main {
                kind: &kind,
                heap,
                account: &account,
                blocks: Blocks::new(&kind, heap, &account, 0),
                arrays: arrays.collect::<Result<_, _>>()?,
                of_threads: Tally::default(),
            })
        },
        |_, main, _| Ok(main.work(parameters.value("count"))?),
        Main::finish,
    )?;
    let array = parameters.value("blocks") * size_of::<Slot>() as u64;
    let bookkeeping = parameters.value("threads") * array;
    Ok(Outcome::of(finished, &account, bookkeeping).report(parameters))
}

/// Thread that starts the short threads and frees the blocks that they hand over.
struct Main<'a, H: Heap> {
    kind: &'a Kind,
    heap: &'a H,
    account: &'a Account,
    blocks: Blocks<'a, H>,
    /// Arrays of threads that are not alive.
    arrays: Vec<Array<Slot>>,
    of_threads: Tally,
}

/// Result of a short thread: its array, whose first slot holds the block that it hands over, and
/// its work.
type Handed = Result<(Array<Slot>, Tally), Failure>;

/// Short thread that is alive.
type Handle<'scope> = ScopedJoinHandle<'scope, Handed>;

impl<'a, H: Heap> Main<'a, H> {
    fn work(&mut self, count: u64) -> Result<(), Failure> {
        std::thread::scope(|scope| {
            let mut alive = VecDeque::with_capacity(self.arrays.len());
            for number in 0..count {
                if self.arrays.is_empty() {
                    self.collect_oldest(&mut alive)?;
                }
                self.start(number, &mut alive, scope)?;
            }
            while !alive.is_empty() {
                self.collect_oldest(&mut alive)?;
            }
            Ok(())
        })
    }

    /// Starts a short thread with an array of a thread that is not alive.
    fn start<'scope>(
        &mut self,
        number: u64,
        alive: &mut VecDeque<Handle<'scope>>,
        scope: &'scope Scope<'scope, '_>,
    ) -> Result<(), Failure>
    where
        'a: 'scope,
    {
        let (kind, heap, account) = (self.kind, self.heap, self.account);
        let Some(slots) = self.arrays.pop() else {
            return Ok(());
        };
        let life = move || live(slots, Blocks::of_task(kind, heap, account, number));
        let started = Builder::new().spawn_scoped(scope, life);
        alive.push_back(started.map_err(|error| Failure::Thread(error.to_string()))?);
        Ok(())
    }

    /// Waits for the oldest thread and frees the block that it handed over.
    fn collect_oldest(&mut self, alive: &mut VecDeque<Handle<'_>>) -> Result<(), Failure> {
        let Some(oldest) = alive.pop_front() else {
            return Ok(());
        };
        let ended = oldest.join();
        let (slots, tally) = ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        // SAFETY: `live` stored a block in the first slot and did not free it. Its thread has
        // ended, so no other thread uses the block.
        unsafe { self.blocks.free(slots[0]) }?;
        self.blocks.flush();
        self.of_threads.merge(tally);
        self.arrays.push(slots);
        Ok(())
    }

    fn finish(self) -> Tally {
        Tally::sum([self.of_threads, self.blocks.finish()])
    }
}

/// Allocates a block for every slot, moves one drawn at random to the first slot, and frees the
/// others.
fn live<H: Heap>(mut slots: Array<Slot>, mut blocks: Blocks<'_, H>) -> Handed {
    for slot in slots.iter_mut() {
        *slot = blocks.allocate()?;
    }
    let handed = blocks.below(slots.len() as u64) as usize;
    slots.swap(0, handed);
    for slot in &slots[1..] {
        // SAFETY: every slot holds a block that `allocate` returned on this heap, and none has been
        // freed. Only this thread uses these blocks. Of all slots, only the first is read again,
        // and its block is not freed here.
        unsafe { blocks.free(*slot) }?;
    }
    Ok((slots, blocks.finish()))
}
