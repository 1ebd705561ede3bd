//! rptest, the rpmalloc benchmark. Each thread frees and allocates blocks of random sizes in random
//! slots, and passes other blocks to the next thread.

mod mapped;
mod presets;
mod scatter;
mod texts;
mod worker;

pub(crate) use texts::DESCRIPTION;

use heapdrome_schema::WorkloadReport;

use crate::account::Account;
use crate::caller::Tally;
use crate::hand_over::Post;
use crate::random_blocks::{Blocks, Kind, Shape, Sizes, Slot, check_align, check_sizes};
use crate::report::Outcome;
use crate::threads;
use crate::{Failure, Heap, Parameters};
use heapdrome_system::process::{Elapsed, Memory};
use mapped::Fixed;
use worker::{Notes, PASSES, Plan, Worker, larger};

/// Number of times that threads are started and ended.
const STARTS: u64 = 2;

/// Maximum number of parcels per thread in transit.
const PARCELS: usize = 4;

pub(crate) fn check(parameters: &Parameters) -> Result<(), String> {
    check_sizes(parameters)?;
    check_align(parameters)
}

/// Returns the number of operations of a run: blocks allocated plus blocks freed.
pub(crate) fn operations(parameters: &Parameters) -> u64 {
    let value = |name| parameters.value(name);
    let hand_overs = value("loops").checked_div(value("cross")).unwrap_or(0);
    let batches = value("loops").saturating_add(hand_overs);
    [value("ops"), value("threads"), STARTS * PASSES * 2]
        .into_iter()
        .fold(batches, u64::saturating_mul)
}

/// Estimates the peak memory: the blocks in use after many loops, one parcel in transit per thread,
/// and the workload's arrays.
pub(crate) fn needs(parameters: &Parameters) -> u64 {
    let value = |name| parameters.value(name) as f64;
    let (blocks, ops) = (value("blocks"), value("ops"));
    // A block stays in its slot for one to `blocks / ops` loops, with equal probability.
    let lasting = ((blocks + ops) / 2.0).min(blocks).min(value("loops") * ops);
    let (under_way, parcels) = match parameters.value("cross") {
        0 => (0.0, 0.0),
        _ => (ops, PARCELS as f64 * ops),
    };
    let requested = (lasting + under_way) * sizes(parameters).mean();
    let arrays = (blocks + parcels) * size_of::<Slot>() as f64;
    // The conversion saturates: a number that is too large becomes the maximum.
    (value("threads") * (requested + arrays)) as u64
}

fn sizes(parameters: &Parameters) -> Sizes {
    let shape = Shape::of(parameters.value("mode"), parameters.value("distribution"));
    Sizes::of(shape, parameters)
}

pub(crate) fn run<H: Heap>(parameters: &Parameters, heap: &H) -> Result<WorkloadReport, Failure> {
    let plan = Plan {
        threads: parameters.value("threads"),
        cross: parameters.value("cross"),
        loops: parameters.value("loops"),
        blocks: parameters.value("blocks") as usize,
        ops: parameters.value("ops") as usize,
    };
    let fixed = Fixed::read();
    let threads = plan.threads as usize;
    let parcels = if plan.cross == 0 { 0 } else { PARCELS };
    let post = Post::new(threads, threads, parcels, plan.ops)?;
    let kind = Kind::new(sizes(parameters), parameters);
    let account = Account::default();
    let slots = plan.threads * parameters.value("blocks") * size_of::<Slot>() as u64;
    let bookkeeping = post.bytes() + slots;
    let mut whole = Whole::default();
    for start in 0..STARTS as usize {
        let notes = Notes::default();
        let finished = threads::run(
            threads,
            |number| {
                let blocks = Blocks::new(&kind, heap, &account, start * threads + number);
                Worker::new(plan, number, &notes, &post, blocks)
            },
            |_, worker, team| worker.work(team),
            Worker::finish,
        )?;
        let at_end = notes.at_end();
        let mapped = fixed.rest(at_end, bookkeeping + notes.stacks());
        whole.add(finished, at_end, mapped);
    }
    Ok(whole
        .outcome(account.peak(), bookkeeping)
        .report(parameters))
}

/// Outcome of all starts.
#[derive(Default)]
struct Whole {
    tally: Tally,
    elapsed: Elapsed,
    before: Option<Memory>,
    at_end: Memory,
    mapped: u64,
    after: Memory,
}

impl Whole {
    fn add(&mut self, finished: threads::Finished<Tally>, at_end: Memory, mapped: u64) {
        self.tally.merge(Tally::sum(finished.results));
        self.elapsed = self.elapsed + finished.elapsed;
        self.before.get_or_insert(finished.before);
        self.at_end = larger(self.at_end, at_end);
        self.mapped = self.mapped.max(mapped);
        self.after = finished.after;
    }

    fn outcome(self, peak_requested: u64, bookkeeping: u64) -> Outcome {
        let before = self.before.unwrap_or_default();
        let mapped = self.mapped as f64;
        let resident = self.at_end.resident.saturating_sub(before.resident) as f64;
        let mut own = vec![
            ("mapped_at_end_bytes", mapped),
            ("resident_at_end_bytes", resident),
        ];
        if peak_requested > 0 {
            let requested = peak_requested as f64;
            let peak = self.after.peak_resident as f64;
            own.push(("overhead", resident / requested));
            own.push(("overhead_mapped", mapped / requested));
            own.push(("overhead_peak", peak / requested));
        }
        Outcome {
            tally: self.tally,
            elapsed: self.elapsed,
            peak_requested,
            bookkeeping,
            before,
            after: self.after,
            own,
        }
    }
}
