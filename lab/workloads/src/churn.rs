//! Churn: a steady number of small blocks that fits into the processor's cache, replaced at random.

use heapdrome_schema::WorkloadReport;

use crate::account::Account;
use crate::array::Array;
use crate::description::{LATENCY, SEED, THREADS};
use crate::random_blocks::{Blocks, Kind, MAX, MIN, Sizes, Slot, TOUCH, check_sizes};
use crate::report::{FIGURES, Outcome};
use crate::threads::{self, Halt, Team};
use crate::{Description, Failure, Heap, Parameter, Parameters, Preset, Workload};

pub(crate) static DESCRIPTION: Description = Description {
    workload: Some(Workload::Churn),
    name: "churn",
    summary: "a steady number of small blocks that fits into the cache, replaced at random",
    models: "A program in its steady state, such as a server between two requests or an \
             interpreter: the number of blocks in use no longer changes, small sizes are far more \
             frequent than large ones, and every new block takes the place of another. Each \
             thread first fills its slots. Then every step frees the block of a slot drawn at \
             random and allocates another in its place. The density of sizes is inversely \
             proportional to the size, as in Zipf's law. By default a thread's blocks take about \
             240 KiB, so that they fit into the second-level cache of its processor.",
    origin: "heapdrome's own.",
    meaning: "One operation is one block allocated or one block freed. Every block is written at \
              both ends when allocated and checked when freed. With equal work, an allocator is \
              faster here if its calls run fewer instructions and its own data displace fewer \
              of the program's from the cache.",
    silence: "Nothing about page faults or fragmentation, because little memory is in use, nor \
              about blocks that another thread frees.",
    parameters: &[
        THREADS,
        Parameter::new(
            "blocks",
            "blocks",
            1024,
            [1, 1 << 32],
            "blocks that each thread keeps in use",
        ),
        Parameter::new(
            "steps",
            "steps",
            60_000_000,
            [1, 1 << 40],
            "blocks that each thread replaces",
        ),
        MIN,
        Parameter {
            default: 1024,
            ..MAX
        },
        TOUCH,
        SEED,
        LATENCY,
    ],
    presets: &[
        Preset::own("default", "1024 blocks of 16 bytes to 1 KiB", &[]),
        Preset::own("quick", "a tenth of the steps", &[("steps", 6_000_000)]),
    ],
    figures: FIGURES,
    check: check_sizes,
    needs,
};

fn needs(parameters: &Parameters) -> u64 {
    let of_each = Sizes::logarithmic(parameters).mean() + size_of::<Slot>() as f64;
    let blocks = parameters.value("blocks") as f64 * parameters.value("threads") as f64;
    // The conversion saturates: a number that is too large becomes the maximum.
    (blocks * of_each) as u64
}

/// Returns the number of operations of a run: blocks allocated plus blocks freed.
pub(crate) fn operations(parameters: &Parameters) -> u64 {
    let blocks = parameters
        .value("blocks")
        .saturating_add(parameters.value("steps"));
    blocks
        .saturating_mul(2)
        .saturating_mul(parameters.value("threads"))
}

/// Number of steps between two checks of whether another thread has failed.
const STRETCH: u64 = 1024;

struct Worker<'a, H: Heap> {
    blocks: Blocks<'a, H>,
    slots: Array<Slot>,
}

pub(crate) fn run<H: Heap>(parameters: &Parameters, heap: &H) -> Result<WorkloadReport, Failure> {
    let kind = Kind::new(Sizes::logarithmic(parameters), parameters);
    let account = Account::default();
    let finished = threads::run(
        parameters.value("threads") as usize,
        |number| {
            Ok(Worker {
                blocks: Blocks::new(&kind, heap, &account, number),
                slots: Array::new(parameters.value("blocks") as usize)?,
            })
        },
        |_, worker, team| worker.work(parameters.value("steps"), team),
        |worker| worker.blocks.finish(),
    )?;
    let array = parameters.value("blocks") * size_of::<Slot>() as u64;
    let bookkeeping = parameters.value("threads") * array;
    Ok(Outcome::of(finished, &account, bookkeeping).report(parameters))
}

impl<H: Heap> Worker<'_, H> {
    fn work(&mut self, steps: u64, team: &Team) -> Result<(), Halt> {
        for slot in self.slots.iter_mut() {
            *slot = self.blocks.allocate()?;
        }
        for step in 0..steps {
            if step % STRETCH == 0 {
                team.go_on()?;
            }
            self.replace()?;
        }
        for slot in self.slots.iter() {
            // SAFETY: every slot holds a block that was allocated above. Only this thread uses
            // these blocks, and it frees each only once.
            unsafe { self.blocks.free(*slot) }?;
        }
        Ok(())
    }

    /// Frees the block of a slot drawn at random and allocates another.
    #[inline]
    fn replace(&mut self) -> Result<(), Failure> {
        let place = self.blocks.below(self.slots.len() as u64) as usize;
        // SAFETY: every slot holds a block in use, which only this thread uses. If the allocation
        // below fails, the run ends, and the slot is not read again.
        unsafe { self.blocks.free(self.slots[place]) }?;
        self.slots[place] = self.blocks.allocate()?;
        Ok(())
    }
}
