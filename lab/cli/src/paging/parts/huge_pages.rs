//! What the kernel's choice about transparent huge pages does to regions that are touched.

use std::time::Duration;

use heapdrome_paging::{Cell, Job, Limit, Throughput, Variant, throughput_table};
use heapdrome_record::Table;

use super::Part;

/// The variants that huge pages could help, at one thread, under each of `choices`; `None` stands for
/// the choice as it is, which is then not changed.
pub fn huge_pages(
    choices: &[Option<&'static str>],
    limit: Option<Limit>,
    warm_up: Duration,
    seconds: Duration,
) -> Part {
    const PART: &str = "thp";
    let now = heapdrome_paging::huge_pages().unwrap_or_else(|| "none".to_owned());
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
            let mut cell = Cell::new(PART, name, job, limit);
            cell.huge_pages = *choice;
            cell
        }));
    }
    Part::new(cells, 0, Box::new(tables))
}

fn tables(cells: &[Cell]) -> Vec<Table> {
    let title = "Transparent huge pages: regions of 2 MiB, taken, touched and returned";
    let mut table = throughput_table(title, &cells.iter().collect::<Vec<_>>());
    for (row, cell) in table.rows.iter_mut().zip(cells) {
        row[0].clone_from(&cell.name);
    }
    let never = |cell: &Cell| cell.name.starts_with("never:");
    if cells.iter().any(never) {
        let told = "never: what lgalloc asks for (MADV_HUGEPAGE) has no effect";
        table.notes.push(told.to_owned());
    }
    vec![table]
}
