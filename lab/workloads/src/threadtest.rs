//! Threadtest: rounds of many equal blocks, freed by the thread that allocated them.

use heapdrome_schema::WorkloadReport;

use crate::account::Account;
use crate::array::Array;
use crate::caller::Caller;
use crate::description::{LATENCY, SEED, THREADS};
use crate::random::mix;
use crate::report::{FIGURES, Outcome};
use crate::threads::{self, Halt, Team};
use crate::{Description, Failure, Heap, Parameter, Parameters, Preset, Workload};

pub(crate) static DESCRIPTION: Description = Description {
    workload: Some(Workload::Threadtest),
    name: "threadtest",
    summary: "rounds of many equal small blocks, each freed by the thread that allocated it",
    models: "Threads that work independently: in each round every thread allocates its share of \
             the objects, then frees all of them in the same order. Far more blocks are in use \
             than a thread-local cache holds, so that the caches repeatedly overflow and run \
             empty.",
    origin: "Written for Hoard (Berger, McKinley, Blumofe and Wilson, ASPLOS 2000); its parameters \
             in their order. The elfmalloc performance evaluation of 2017 uses it for \
             objects of at most 64 bytes and of a few KB. Written from the descriptions.",
    meaning: "One operation is one block allocated or one block freed. Every block is written at \
              both ends when allocated and checked when freed. The objects are divided among the \
              threads without the remainder, so that the work does not grow with the threads.",
    silence: "Nothing about mixed sizes, long-lived blocks, blocks that another thread frees, or \
              fragmentation: all blocks have one size and none outlives its round. Starting and \
              ending threads is not measured.",
    parameters: &[
        THREADS,
        Parameter::new("iterations", "rounds", 100, [1, 1_000_000_000], "rounds"),
        Parameter::new(
            "objects",
            "blocks",
            100_000,
            [1, 1 << 40],
            "blocks in a round, divided among the threads",
        ),
        Parameter::new(
            "work",
            "steps",
            0,
            [0, 1_000_000_000],
            "steps of computation after each allocation and after each free",
        ),
        Parameter::new("size", "bytes", 64, [1, 1 << 40], "size of every block"),
        SEED,
        LATENCY,
    ],
    presets: &[
        Preset::own("small", "objects of 64 bytes", &[]),
        Preset::own("small8", "objects of 8 bytes", &[("size", 8)]),
        Preset::own(
            "medium",
            "objects of 4 KiB",
            &[("size", 4096), ("objects", 5000), ("iterations", 40)],
        ),
        Preset::own(
            "quick-small",
            "the small preset with a tenth of the rounds",
            &[("iterations", 10)],
        ),
        Preset::own(
            "quick-medium",
            "the medium preset with 6 rounds",
            &[("size", 4096), ("objects", 5000), ("iterations", 6)],
        ),
        Preset {
            name: "published",
            meaning: "10,000 rounds of 100,000 objects of 64 bytes, as published",
            values: &[("iterations", 10_000)],
            published: Some("scalloc (arXiv 1503.09006), used by the elfmalloc evaluation"),
        },
    ],
    figures: FIGURES,
    check,
    needs,
};

fn check(parameters: &Parameters) -> Result<(), String> {
    let (threads, objects) = (parameters.value("threads"), parameters.value("objects"));
    match objects < threads {
        true => Err(format!(
            "{objects} objects cannot be divided among {threads} threads"
        )),
        false => Ok(()),
    }
}

fn needs(parameters: &Parameters) -> u64 {
    let of_each = parameters.value("size").saturating_add(8);
    parameters.value("objects").saturating_mul(of_each)
}

/// Returns the number of operations of a run: blocks allocated plus blocks freed.
pub(crate) fn operations(parameters: &Parameters) -> u64 {
    let threads = parameters.value("threads");
    let blocks = parameters.value("objects") / threads * threads;
    blocks
        .saturating_mul(parameters.value("iterations"))
        .saturating_mul(2)
}

struct Worker<'a, H: Heap> {
    caller: Caller<'a, H>,
    blocks: Array<*mut u8>,
    first_key: u64,
}

/// Settings of all threads.
#[derive(Clone, Copy)]
struct Plan {
    rounds: u64,
    work: u64,
    size: usize,
}

pub(crate) fn run<H: Heap>(parameters: &Parameters, heap: &H) -> Result<WorkloadReport, Failure> {
    let threads = parameters.value("threads");
    let share = parameters.value("objects") / threads;
    let plan = Plan {
        rounds: parameters.value("iterations"),
        work: parameters.value("work"),
        size: parameters.value("size") as usize,
    };
    let (seed, timed) = (parameters.value("seed"), parameters.value("latency") == 1);
    let account = Account::default();
    let finished = threads::run(
        threads as usize,
        |number| {
            Ok(Worker {
                caller: Caller::new(heap, &account, timed),
                blocks: Array::new(share as usize)?,
                first_key: mix(mix(seed) ^ number as u64),
            })
        },
        |_, worker, team| plan.work(worker, team),
        |worker| worker.caller.finish(),
    )?;
    let bookkeeping = threads * share * size_of::<*mut u8>() as u64;
    Ok(Outcome::of(finished, &account, bookkeeping).report(parameters))
}

impl Plan {
    fn work<H: Heap>(self, worker: &mut Worker<'_, H>, team: &Team) -> Result<(), Halt> {
        let mut key = worker.first_key;
        for _ in 0..self.rounds {
            team.go_on()?;
            let first = key;
            for block in worker.blocks.iter_mut() {
                *block = worker.caller.allocate(self.size, 0, key)?;
                key = key.wrapping_add(1);
                compute(self.work);
            }
            key = first;
            for block in worker.blocks.iter() {
                // SAFETY: the block was allocated above with this size and key. Only this thread
                // uses it, and it is not used afterwards.
                unsafe { worker.caller.free(*block, self.size, key) }?;
                key = key.wrapping_add(1);
                compute(self.work);
            }
        }
        Ok(())
    }
}

/// Runs `steps` steps that the compiler cannot remove.
#[inline]
fn compute(steps: u64) {
    for step in 0..steps {
        std::hint::black_box(step);
    }
}
