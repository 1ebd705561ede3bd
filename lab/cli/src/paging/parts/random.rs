//! Random reads of a working set that does not fit, and regions that come back from swap.

use heapdrome_paging::{
    Cell, Holder, Strategy, beside, ccdf_table, recycle_table, size, summary_table,
};
use heapdrome_record::Table;

use super::{Measuring, Part, fitting, held_by, limit, named};
use crate::paging::holding::Holding;

/// The document's paging benchmark.
pub const PAGING: &str = "paging";
/// The same under heavier pressure, of which the document has no figures.
pub const HEAVY: &str = "heavy";

const READS: &str = "random reads";
const FITS: &str = "random reads, all fits";
const AGAIN: &str = "regions again";

/// The document's paging benchmark for `total` bytes under a limit of `ram`, each of `holdings` in
/// turn. Regions are also taken again from the published crate, from mappings and from the C library.
pub fn random(
    part: &'static str,
    [ram, total]: [u64; 2],
    threads: usize,
    holdings: &[Holding],
    measuring: Measuring,
) -> Part {
    let under = Some(limit(ram, total));
    let mut cells = Vec::new();
    for (place, holding) in holdings.iter().enumerate() {
        let reads = |total| measuring.reads(holding, total, threads, Strategy::Baseline);
        let again = measuring.regions(holding.holder, total, &[1]);
        // A working set that fits tells what the harness itself costs.
        let jobs = [
            (READS, reads(total)),
            (AGAIN, again),
            (FITS, reads(fitting(ram))),
        ];
        cells.extend(jobs.map(|(name, job)| {
            let name = named(name, place, holding);
            holding.with(Cell::new(part, name, job, under))
        }));
    }
    cells.extend(others(holdings).into_iter().map(|other| {
        let job = measuring.regions(other.holder, total, &[1]);
        let name = format!("{AGAIN}, {}", other.name);
        other.with(Cell::new(part, name, job, under))
    }));
    let holdings = holdings.to_vec();
    Part::new(
        cells,
        total.saturating_sub(ram),
        Box::new(move |cells| tables(part, cells, [ram, total], threads, &holdings)),
    )
}

/// What regions are also taken again from, where nobody has asked for it.
fn others(holdings: &[Holding]) -> Vec<Holding> {
    let mut others = vec![
        Holding::published(),
        Holding::published_with_worker(),
        Holding::mapped(),
        Holding::sysalloc(),
    ];
    others.retain(|other| holdings.iter().all(|one| one.holder != other.holder));
    others
}

fn tables(
    part: &str,
    cells: &[Cell],
    [ram, total]: [u64; 2],
    threads: usize,
    holdings: &[Holding],
) -> Vec<Table> {
    let here = format!(
        "{} of memory, {} allocated, threads: {threads}",
        size(ram),
        size(total)
    );
    let mut tables = Vec::new();
    for (place, (holding, three)) in holdings.iter().zip(cells.chunks(3)).enumerate() {
        let [reads, again, fits] = three else {
            continue;
        };
        let here = format!("{here}{}", held_by(holding));
        let mut summary = summary_table(&here, reads, again);
        if part == HEAVY {
            let told = "the document says how to run this (128 MiB), and has no figures of it";
            summary.notes.push(told.to_owned());
        } else if place == 0 {
            summary = beside(summary, "paging", "metric");
        }
        tables.push(summary);
        tables.extend(distributions(&here, ram, [reads, again, fits]));
    }
    let regions = |cell: &&Cell| cell.name.starts_with(AGAIN);
    let again: Vec<&Cell> = cells.iter().filter(regions).collect();
    let names: Vec<String> = again.iter().map(|cell| holder_of(cell, holdings)).collect();
    let title = format!("First use after swap, and use again and again: {here}");
    tables.push(recycle_table(&title, &again, &names));
    tables
}

fn distributions(here: &str, ram: u64, [reads, again, fits]: [&Cell; 3]) -> Vec<Table> {
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

/// The name of what a cell's regions come from.
fn holder_of(cell: &Cell, holdings: &[Holding]) -> String {
    match cell.name.split_once(", ") {
        Some((_, name)) => name.to_owned(),
        None => holdings.first().map_or_else(
            || Holder::default().name().to_owned(),
            |one| one.name.clone(),
        ),
    }
}
