//! Random reads of one working set under several limits.

use heapdrome_paging::{
    Cell, Job, Strategy, beside, ratio, ratio_table, realloc_scaling_table, realloc_table,
    scaling_table, size,
};
use heapdrome_record::Table;

use super::{Measuring, Part, REGION, held_by, limit, named};
use crate::paging::holding::Holding;

/// In how many threads regions are taken again.
const AGAIN: [usize; 5] = [1, 2, 4, 8, 16];

/// The settings of a sweep.
pub struct Sweep {
    /// Bytes of the working set.
    pub total: u64,
    /// The limits, each with its numbers of threads.
    pub limits: Vec<(u64, Vec<usize>)>,
}

/// The document's ratio sweep, each of `holdings` in turn.
pub fn sweep(sweep: &Sweep, holdings: &[Holding], measuring: Measuring) -> Part {
    const PART: &str = "ratio-sweep";
    let total = sweep.total;
    let mut cells = Vec::new();
    for (place, holding) in holdings.iter().enumerate() {
        for (ram, threads) in &sweep.limits {
            let (under, set) = (Some(limit(*ram, total)), ratio(*ram, total));
            let reads = threads.iter().map(|threads| {
                let job = measuring.reads(holding, total, *threads, Strategy::Baseline);
                (format!("{set} x {threads}"), job)
            });
            // Each thread holds one region, and half of the limit must be enough for all.
            let fits = |threads: &usize| *threads == 1 || *threads as u64 * REGION <= ram / 2;
            let counts: Vec<usize> = AGAIN.into_iter().filter(fits).collect();
            let again = measuring.regions(holding.holder, total, &counts);
            let all = reads.chain([(format!("{set} regions again"), again)]);
            cells.extend(all.map(|(name, job)| {
                holding.with(Cell::new(PART, named(&name, place, holding), job, under))
            }));
        }
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

fn tables(cells: &[Cell], total: u64, holding: &Holding) -> Vec<Table> {
    let set = format!("{}{}", size(total), held_by(holding));
    let (reads, again): (Vec<&Cell>, Vec<&Cell>) = cells
        .iter()
        .partition(|cell| matches!(cell.job, Job::Read(_)));
    let count = |cell: &Cell| match &cell.job {
        Job::Read(job) => job.threads,
        _ => 0,
    };
    let mut counts: Vec<usize> = reads.iter().map(|cell| count(cell)).collect();
    counts.sort_unstable();
    counts.dedup();
    let mut tables = Vec::new();
    for threads in counts {
        let right = reads.iter().filter(|cell| count(cell) == threads);
        let these: Vec<&Cell> = right.copied().collect();
        let title = format!("Random reads, threads: {threads}, working set: {set}");
        let table = ratio_table(&title, &these);
        tables.push(match threads {
            1 => beside(table, "ratio", "ratio"),
            _ => table,
        });
    }
    let title = format!("Random reads per second by threads, working set: {set}");
    tables.push(beside(scaling_table(&title, &reads), "scaling", "ratio"));
    let title = format!("Realloc+touch from the pool, 1 thread, {set} in all");
    tables.push(beside(realloc_table(&title, &again), "realloc", "ratio"));
    let title = format!("Realloc+touch per second by threads, {set} in all");
    let table = realloc_scaling_table(&title, &again);
    tables.push(beside(table, "realloc-scaling", "ratio"));
    tables
}
