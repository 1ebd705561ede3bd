//! Kernel counters as a table.

use heapdrome_schema::{PagingCell as Cell, Table};

use super::{rate_of, table};

/// Makes a table of the kernel's counts during the measurement of each cell. The counts of swapping
/// cover the whole machine. Limit hits and kills are those of the cell's own group until its
/// process ends.
#[must_use]
pub fn counters_table(title: &str, cells: &[&Cell]) -> Table {
    const SHOWN: [(&str, &str); 10] = [
        ("major faults", "majflt"),
        ("minor faults", "minflt"),
        ("swapped in", "pswpin"),
        ("swapped out", "pswpout"),
        ("read ahead", "swap_ra"),
        ("huge pages out", "thp_swpout"),
        ("limit hits", "group_limit_hits"),
        ("swap limit hits", "group_swap_limit_hits"),
        ("killed", "group_oom_kills"),
        ("stolen ticks", "steal_ticks"),
    ];
    let measured = cells.iter().filter(|cell| cell.sound().next().is_some());
    let rows = measured.map(|cell| {
        let figures = SHOWN.iter().map(|(_, figure)| rate_of(cell, figure));
        let rounds = cell.sound().count().to_string();
        [format!("{}: {}", cell.part, cell.name), rounds]
            .into_iter()
            .chain(figures)
            .collect()
    });
    let names = SHOWN.iter().map(|(head, _)| *head);
    let heads: Vec<&str> = ["cell", "rounds"].into_iter().chain(names).collect();
    table(title, &heads, rows.collect(), &[])
}
