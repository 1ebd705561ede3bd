//! Random reads of one working set under several limits.

use heapdrome_paging::{
    Cell, Job, Strategy, beside, ratio, ratio_table, realloc_scaling_table, realloc_table,
    scaling_table, size,
};
use heapdrome_record::Table;

use super::{Measuring, Part, REGION, fitting, held_by, limit, named};
use crate::paging::holding::Holding;

/// In how many threads regions are taken again.
const AGAIN: [usize; 5] = [1, 2, 4, 8, 16];
/// The cell that needs no swap: where the limit is the working set, not quite all of that fits.
const FITS: &str = "all fits";

/// The settings of a sweep.
pub struct Sweep {
    /// Bytes of the working set.
    pub total: u64,
    /// The limits, each with its numbers of threads.
    pub limits: Vec<(u64, Vec<usize>)>,
}

/// The document's ratio sweep, each of `holdings` in turn, and under the widest limit a working set that fits.
pub fn sweep(sweep: &Sweep, holdings: &[Holding], measuring: Measuring) -> Part {
    const PART: &str = "ratio-sweep";
    let total = sweep.total;
    let mut cells = Vec::new();
    for (place, holding) in holdings.iter().enumerate() {
        let mut jobs = Vec::new();
        for (ram, threads) in &sweep.limits {
            jobs.extend(under(*ram, total, threads, holding, measuring));
        }
        if let Some((ram, threads)) = sweep.limits.iter().max_by_key(|(ram, _)| *ram) {
            let threads = threads.first().copied().unwrap_or(1);
            let job = measuring.reads(holding, fitting(*ram), threads, Strategy::Baseline);
            jobs.push((*ram, FITS.to_owned(), job));
        }
        cells.extend(jobs.into_iter().map(|(ram, name, job)| {
            let (name, under) = (named(&name, place, holding), Some(limit(ram, total)));
            holding.with(Cell::new(PART, name, job, under))
        }));
    }
    let least = sweep.limits.iter().map(|(ram, _)| *ram).min();
    let holdings = holdings.to_vec();
    Part::new(
        cells,
        total.saturating_sub(least.unwrap_or(total)),
        Box::new(move |cells| {
            let each = cells.len() / holdings.len().max(1);
            let of = holdings.iter().zip(cells.chunks(each.max(1)));
            of.flat_map(|(holding, cells)| tables(cells, total, holding))
                .collect()
        }),
    )
}

/// What is run under one limit: the limit, a name and a job for each.
fn under(
    ram: u64,
    total: u64,
    threads: &[usize],
    holding: &Holding,
    measuring: Measuring,
) -> Vec<(u64, String, Job)> {
    let set = ratio(ram, total);
    let reads = threads.iter().map(|threads| {
        let job = measuring.reads(holding, total, *threads, Strategy::Baseline);
        (ram, format!("{set} x {threads}"), job)
    });
    // Each thread holds one region, and half of the limit must be enough for all.
    let fits = |threads: &usize| *threads == 1 || *threads as u64 * REGION <= ram / 2;
    let counts: Vec<usize> = AGAIN.into_iter().filter(fits).collect();
    let again = measuring.regions(holding.holder, total, &counts);
    let again = (ram, format!("{set} regions again"), again);
    reads.chain([again]).collect()
}

fn tables(cells: &[Cell], total: u64, holding: &Holding) -> Vec<Table> {
    let set = format!("{}{}", size(total), held_by(holding));
    let (reads, again): (Vec<&Cell>, Vec<&Cell>) = cells
        .iter()
        .partition(|cell| matches!(cell.job, Job::Read(_)));
    let read = |cell: &Cell| match &cell.job {
        Job::Read(job) => (job.threads, job.total),
        _ => (0, 0),
    };
    let mut counts: Vec<usize> = reads.iter().map(|cell| read(cell).0).collect();
    counts.sort_unstable();
    counts.dedup();
    let mut tables = Vec::new();
    for threads in counts {
        let right = reads.iter().filter(|cell| read(cell).0 == threads);
        let these: Vec<&Cell> = right.copied().collect();
        let title = format!("Random reads, threads: {threads}, working set: {set}");
        let table = ratio_table(&title, &these);
        tables.push(match threads {
            1 => beside(table, "ratio", "ratio"),
            _ => table,
        });
    }
    let title = format!("Random reads per second by threads, working set: {set}");
    let pressed = reads.into_iter().filter(|cell| read(cell).1 == total);
    let table = scaling_table(&title, &pressed.collect::<Vec<_>>());
    tables.push(beside(table, "scaling", "ratio"));
    let title = format!("Realloc+touch from the pool, 1 thread, {set} in all");
    tables.push(beside(realloc_table(&title, &again), "realloc", "ratio"));
    let title = format!("Realloc+touch per second by threads, {set} in all");
    let table = realloc_scaling_table(&title, &again);
    tables.push(beside(table, "realloc-scaling", "ratio"));
    tables
}
