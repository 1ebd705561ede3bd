//! The effect of the kernel's setting for transparent huge pages on regions that are written.

use std::time::Duration;

use heapdrome_schema::{Experiment, Job, Limit, PagingCell as Cell, Table, Throughput, Variant};

use crate::tables::throughput_table;

/// Returns the cells of five variants that take regions and write to them, with one thread, under
/// each setting in `choices`. `None` leaves the current setting unchanged.
#[must_use]
pub fn huge_pages(
    choices: &[Option<&str>],
    limit: Option<Limit>,
    warm_up: Duration,
    seconds: Duration,
) -> Vec<Cell> {
    let now = heapdrome_system::kernel::huge_pages().unwrap_or_else(|| "none".to_owned());
    let variants = [
        Variant::PublishedTouch,
        Variant::LgallocTouch,
        Variant::SysallocTouch,
        Variant::SysallocNohugeTouch,
        Variant::MmapTouch,
    ];
    let mut cells = Vec::new();
    for choice in choices {
        let told = choice.unwrap_or(&now);
        cells.extend(variants.map(|variant| {
            let job = Job::Throughput(Throughput {
                variant,
                threads: 1,
                warm_up,
                seconds,
            });
            let name = format!("{told}: {}", variant.name());
            Cell {
                huge_pages: choice.map(str::to_owned),
                ..Cell::new(Experiment::Thp, name, job, limit)
            }
        }));
    }
    cells
}

pub fn tables(cells: &[&Cell]) -> Vec<Table> {
    let title = "Transparent huge pages: regions of 2 MiB, taken, touched and returned";
    let mut table = throughput_table(title, cells);
    for (row, cell) in table.rows.iter_mut().zip(cells) {
        row[0].clone_from(&cell.name);
    }
    let never = |cell: &&Cell| cell.name.starts_with("never:");
    if cells.iter().any(never) {
        let told = "never: what lgalloc asks for (MADV_HUGEPAGE) has no effect";
        table.notes.push(told.to_owned());
    }
    vec![table]
}
