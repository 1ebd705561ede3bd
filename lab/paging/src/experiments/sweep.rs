//! Random reads of one working set under several limits.

use heapdrome_schema::{Bytes, Experiment, Job, PagingCell as Cell, Strategy, Table};

use super::{Holding, Measuring, REGION, by_holding, fitting, held_by, limit};
use crate::published::beside;
use crate::tables::{ratio_table, realloc_scaling_table, realloc_table, scaling_table};
use crate::words::{ratio, size};

/// Numbers of threads in the jobs that take regions again.
const AGAIN: [usize; 5] = [1, 2, 4, 8, 16];
/// Name of the cell that needs no swap, because its working set is half of the limit.
const FITS: &str = "all fits";

/// The settings of a sweep.
pub struct Sweep {
    /// Size of the working set.
    pub total: Bytes,
    /// The limits, and the numbers of threads under each.
    pub limits: Vec<(Bytes, Vec<usize>)>,
}

/// Returns the cells of the document's ratio sweep with each of `holdings`. One more cell for each
/// holding has a working set that fits under the largest limit.
#[must_use]
pub fn sweep(sweep: &Sweep, holdings: &[Holding], measuring: Measuring) -> Vec<Cell> {
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
            let under = Some(limit(ram, total));
            holding.cell(place, Experiment::RatioSweep, &name, job, under)
        }));
    }
    cells
}

/// Returns a size and its halves, down to a sixteenth, in whole regions.
#[must_use]
pub fn halves(total: Bytes) -> Vec<Bytes> {
    let half = |power| Bytes(total.0 >> power).rounded_up_to(REGION);
    (0..5).map(half).collect()
}

/// Returns the limit, the name and the job of each cell under one limit.
fn under(
    ram: Bytes,
    total: Bytes,
    threads: &[usize],
    holding: &Holding,
    measuring: Measuring,
) -> Vec<(Bytes, String, Job)> {
    let set = ratio(ram, total);
    let reads = threads.iter().map(|threads| {
        let job = measuring.reads(holding, total, *threads, Strategy::Baseline);
        (ram, format!("{set} x {threads}"), job)
    });
    // Each thread holds one region. The regions of several threads must together fit into half of
    // the limit.
    let fits = |threads: &usize| *threads == 1 || REGION * *threads as u64 * 2 <= ram;
    let counts: Vec<usize> = AGAIN.into_iter().filter(fits).collect();
    let again = measuring.regions(holding.holder, total, &counts);
    let again = (ram, format!("{set} regions again"), again);
    reads.chain([again]).collect()
}

pub fn tables(cells: &[&Cell]) -> Vec<Table> {
    let groups = by_holding(cells);
    groups.iter().flat_map(|group| of_holding(group)).collect()
}

fn of_holding(cells: &[&Cell]) -> Vec<Table> {
    let (reads, again): (Vec<&Cell>, Vec<&Cell>) = cells
        .iter()
        .partition(|cell| matches!(cell.job, Job::Read(_)));
    let total = again
        .first()
        .map_or(Bytes(0), |cell| cell.job.working_set());
    let set = format!(
        "{}{}",
        size(total),
        cells.first().map_or_else(String::new, |cell| held_by(cell))
    );
    let read = |cell: &Cell| match &cell.job {
        Job::Read(job) => (job.threads, job.total),
        _ => (0, Bytes(0)),
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
