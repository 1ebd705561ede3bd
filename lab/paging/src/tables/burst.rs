//! Memory that stays resident after a burst.

use heapdrome_schema::{Bytes, Job, PagingCell as Cell, Table};

use super::{median_of, or_dash, range, table};
use crate::words::size;

/// Makes a table with one row for each cell: the memory taken in the burst, the memory resident at
/// its peak, the memory resident after all regions had been returned, and the cap of lgalloc.
#[must_use]
pub fn burst_table(title: &str, cells: &[&Cell]) -> Table {
    let told = |bytes: f64| size(Bytes(bytes as u64));
    let row = |cell: &&Cell| {
        let Job::Burst(job) = &cell.job else {
            return None;
        };
        let figure = |name: &str| or_dash(median_of(cell, name).map(told));
        Some(vec![
            job.holder.name().to_owned(),
            job.threads.to_string(),
            figure("taken_bytes"),
            figure("resident_at_most_bytes"),
            figure("resident_after_bytes"),
            range(cell.figures("resident_after_bytes"), told),
            figure("cap_bytes"),
        ])
    };
    let heads = [
        "regions of",
        "thr",
        "taken",
        "in memory",
        "after",
        "range",
        "cap",
    ];
    let mut made = table(title, &heads, cells.iter().filter_map(row).collect(), cells);
    made.notes.push(
        "memory of the process beyond what it had before, when every page had been written, and after \
         every region had been returned"
            .to_owned(),
    );
    made
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapdrome_schema::{Burst, Experiment, Holder, PagingReport};

    #[test]
    fn what_has_no_cap_has_a_dash() {
        let cell = |holder, figures: &[(&str, f64)]| {
            let job = Job::Burst(Burst {
                holder,
                threads: 8,
                each: Bytes::from_mib(32),
            });
            let mut cell = Cell::new(Experiment::Burst, "a cell", job, None);
            let named = figures
                .iter()
                .map(|(name, value)| ((*name).to_owned(), *value));
            cell.reports.push(PagingReport {
                figures: named.collect(),
                ..PagingReport::default()
            });
            cell
        };
        let after = ("resident_after_bytes", f64::from(1 << 29));
        let cells = [
            cell(Holder::Lgalloc, &[after, ("cap_bytes", f64::from(1 << 30))]),
            cell(Holder::Published, &[after]),
        ];
        let table = burst_table("x", &cells.iter().collect::<Vec<_>>());
        assert_eq!(table.rows[0][4..], ["512M", "-", "1G"]);
        assert_eq!(table.rows[1][4..], ["512M", "-", "-"]);
    }
}
