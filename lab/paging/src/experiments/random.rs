//! Random reads of a working set that does not fit in memory, and regions that return from swap.

use heapdrome_schema::{Bytes, Experiment, Holder, PagingCell as Cell, Strategy, Table};

use super::{Holding, Measuring, by_holding, fitting, held_by, limit, plain_name, setting};
use crate::published::beside;
use crate::tables::{ccdf_table, recycle_table, summary_table};
use crate::words::size;

const READS: &str = "random reads";
const FITS: &str = "random reads, all fits";
const AGAIN: &str = "regions again";

/// Returns the cells of the document's paging benchmark for `total` bytes under a limit of `ram`,
/// with each of `holdings`. Further cells take regions again from the published crate, from
/// mappings and from the C library.
#[must_use]
pub fn random(
    part: Experiment,
    [ram, total]: [Bytes; 2],
    threads: usize,
    holdings: &[Holding],
    measuring: Measuring,
) -> Vec<Cell> {
    let under = Some(limit(ram, total));
    let mut cells = Vec::new();
    for (place, holding) in holdings.iter().enumerate() {
        let reads = |total| measuring.reads(holding, total, threads, Strategy::Baseline);
        let again = measuring.regions(holding.holder, total, &[1]);
        // A working set that fits in memory shows the overhead of the harness.
        let jobs = [
            (READS, reads(total)),
            (AGAIN, again),
            (FITS, reads(fitting(ram))),
        ];
        cells.extend(jobs.map(|(name, job)| holding.cell(place, part, name, job, under)));
    }
    let others = others(holdings).into_iter().enumerate();
    cells.extend(others.map(|(place, other)| {
        let job = measuring.regions(other.holder, total, &[1]);
        other.cell(place + 1, part, AGAIN, job, under)
    }));
    cells
}

/// Returns the additional sources from which regions are taken again, except those in `holdings`.
fn others(holdings: &[Holding]) -> Vec<Holding> {
    let others = [
        Holder::Published,
        Holder::PublishedWorker,
        Holder::Mapped,
        Holder::Malloc,
    ];
    let asked = |other: &Holder| holdings.iter().any(|one| one.holder == *other);
    let others = others.into_iter().filter(|other| !asked(other));
    others.map(Holding::from).collect()
}

pub fn tables(part: Experiment, cells: &[&Cell]) -> Vec<Table> {
    let mut tables = Vec::new();
    let mut here = String::new();
    for (place, group) in by_holding(cells).iter().enumerate() {
        let named = |name: &str| group.iter().find(|cell| plain_name(cell) == name);
        let [Some(reads), Some(again), Some(fits)] = [READS, AGAIN, FITS].map(named) else {
            continue;
        };
        let Some((ram, total, threads)) = setting(reads) else {
            continue;
        };
        let plain = format!(
            "{} of memory, {} allocated, threads: {threads}",
            size(ram),
            size(total)
        );
        let held = format!("{plain}{}", held_by(reads));
        let mut summary = summary_table(&held, reads, again);
        if part == Experiment::Heavy {
            let told = "the document describes this run (128 MiB) and has no figures for it";
            summary.notes.push(told.to_owned());
        } else if place == 0 {
            summary = beside(summary, "paging", "metric");
        }
        tables.push(summary);
        tables.extend(distributions(&held, ram, [reads, again, fits]));
        here = plain;
    }
    let regions = |cell: &&&Cell| cell.name.starts_with(AGAIN);
    let again: Vec<&Cell> = cells.iter().filter(regions).copied().collect();
    let title = format!("First use after swap, and use again and again: {here}");
    tables.push(recycle_table(&title, &again));
    tables
}

fn distributions(here: &str, ram: Bytes, [reads, again, fits]: [&Cell; 3]) -> Vec<Table> {
    let fitting = size(fitting(ram));
    let one = |title: &str, cell: &Cell, name: &str| ccdf_table(title, &cell.distribution(name));
    vec![
        one(&format!("CCDF of random reads: {here}"), reads, "read"),
        one(
            &format!("CCDF of random reads where all fits: {fitting}"),
            fits,
            "read",
        ),
        one(&format!("CCDF of realloc+touch: {here}"), again, "hot"),
        one("CCDF of the clock alone", reads, "clock"),
    ]
}
