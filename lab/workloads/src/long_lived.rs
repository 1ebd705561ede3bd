//! Long-lived: the memory of a heap whose blocks are replaced slowly, over many bursts.

mod texts;

pub(crate) use texts::DESCRIPTION;

use std::time::Duration;

use heapdrome_schema::WorkloadReport;

use crate::account::Account;
use crate::array::Array;
use crate::random_blocks::{Blocks, Kind, Sizes, Slot};
use crate::report::Outcome;
use crate::threads::{self, Halt, Team};
use crate::{Failure, Heap, Parameters};
use heapdrome_system::process::Memory;

/// Block counts of one thread.
#[derive(Clone, Copy, Debug)]
struct Counts {
    /// Number of blocks that the heap holds between bursts.
    live: u64,
    /// Number of blocks that are replaced in a period.
    replaced: u64,
    /// Number of blocks that are allocated and freed in a burst.
    burst: u64,
}

impl Counts {
    /// Returns the counts that follow from the size of the heap and the mean size of a block.
    fn of(parameters: &Parameters) -> Self {
        let bytes = (parameters.value("mebibytes") << 20) as f64;
        let live =
            bytes / Sizes::logarithmic(parameters).mean() / parameters.value("threads") as f64;
        let live = (live as u64).max(1);
        let percent = |name| live * parameters.value(name) / 100;
        Self {
            live,
            replaced: percent("turnover"),
            burst: percent("burst"),
        }
    }

    /// Returns the size of one thread's arrays in bytes.
    fn bookkeeping(self) -> u64 {
        (self.live + self.burst) * size_of::<Slot>() as u64
    }
}

fn needs(parameters: &Parameters) -> u64 {
    let counts = Counts::of(parameters);
    let blocks = (counts.live + counts.burst) as f64 * Sizes::logarithmic(parameters).mean();
    let of_each = blocks + counts.bookkeeping() as f64;
    // The conversion saturates: a number that is too large becomes the maximum.
    (of_each * parameters.value("threads") as f64) as u64
}

/// Returns the number of operations of a run: blocks allocated plus blocks freed.
pub(crate) fn operations(parameters: &Parameters) -> u64 {
    let counts = Counts::of(parameters);
    let of_period = counts.replaced + counts.burst;
    let of_thread = parameters.value("periods").saturating_mul(of_period);
    let of_thread = of_thread.saturating_add(counts.live).saturating_mul(2);
    of_thread.saturating_mul(parameters.value("threads"))
}

pub(crate) fn run<H: Heap>(parameters: &Parameters, heap: &H) -> Result<WorkloadReport, Failure> {
    let kind = Kind::new(Sizes::logarithmic(parameters), parameters);
    let account = Account::default();
    let counts = Counts::of(parameters);
    let finished = threads::run(
        parameters.value("threads") as usize,
        |number| {
            Ok(Worker {
                account: &account,
                pause: Duration::from_millis(parameters.value("pause")),
                leads: number == 0,
                replaced: counts.replaced,
                live: Array::new(counts.live as usize)?,
                burst: Array::new(counts.burst as usize)?,
                blocks: Blocks::new(&kind, heap, &account, number),
                start: 0,
                notes: Notes::default(),
            })
        },
        |_, worker, team| worker.work(parameters.value("periods"), team),
        |worker| (worker.notes, worker.blocks.finish()),
    )?;
    let own = finished.results.first().map(|(notes, _)| notes.figures());
    let bookkeeping = parameters.value("threads") * counts.bookkeeping();
    let outcome = Outcome {
        own: own.unwrap_or_default(),
        ..Outcome::of(finished.map(|(_, tally)| tally), &account, bookkeeping)
    };
    Ok(outcome.report(parameters))
}

/// Ratios of the growth of resident memory to the requested bytes in use, at the ends of the
/// periods, read by the leading thread.
#[derive(Clone, Copy, Debug, Default)]
struct Notes {
    first: f64,
    last: f64,
    sum: f64,
    count: f64,
}

impl Notes {
    fn add(&mut self, overhead: f64) {
        if self.count == 0.0 {
            self.first = overhead;
        }
        self.last = overhead;
        self.sum += overhead;
        self.count += 1.0;
    }

    fn figures(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("overhead_first", self.first),
            ("overhead_last", self.last),
            ("overhead_mean", self.sum / self.count.max(1.0)),
        ]
    }
}

struct Worker<'a, H: Heap> {
    account: &'a Account,
    pause: Duration,
    /// Whether this thread reads the resident memory at the end of each period.
    leads: bool,
    replaced: u64,
    live: Array<Slot>,
    burst: Array<Slot>,
    blocks: Blocks<'a, H>,
    /// Resident memory at the start of the measured part, including the arrays of all threads. Only
    /// the leading thread sets it.
    start: u64,
    notes: Notes,
}

impl<H: Heap> Worker<'_, H> {
    fn work(&mut self, periods: u64, team: &Team) -> Result<(), Halt> {
        if self.leads {
            self.start = Memory::read().resident;
        }
        team.meet()?;
        for slot in self.live.iter_mut() {
            *slot = self.blocks.allocate()?;
        }
        for _ in 0..periods {
            self.period(team)?;
        }
        for slot in self.live.iter() {
            // SAFETY: every slot holds a block in use. Only this thread uses these blocks, and it
            // frees each only once.
            unsafe { self.blocks.free(*slot) }?;
        }
        Ok(())
    }

    /// Replaces some blocks, allocates and frees a burst, and pauses.
    fn period(&mut self, team: &Team) -> Result<(), Halt> {
        for _ in 0..self.replaced {
            let place = self.blocks.below(self.live.len() as u64) as usize;
            // SAFETY: every slot holds a block in use, which only this thread uses. If the
            // allocation below fails, the run ends, and the slot is not read again.
            unsafe { self.blocks.free(self.live[place]) }?;
            self.live[place] = self.blocks.allocate()?;
        }
        for slot in self.burst.iter_mut() {
            *slot = self.blocks.allocate()?;
        }
        team.meet()?;
        for slot in self.burst.iter() {
            // SAFETY: every slot holds a block that was allocated above. Only this thread uses
            // these blocks, and it frees each only once.
            unsafe { self.blocks.free(*slot) }?;
        }
        self.blocks.flush();
        team.meet()?;
        if self.leads {
            std::thread::sleep(self.pause);
            // The account is exact, because every thread has published its count before the
            // meeting.
            let grown = Memory::read().resident as f64 - self.start as f64;
            self.notes.add(grown / self.account.current().max(1) as f64);
        }
        team.meet()
    }
}
