//! Tables of regions that are taken again from a pool in swap.

use heapdrome_schema::{Job, Limit, PagingCell as Cell, Recycle, Table};

use super::{quantile, range_of, range_of_quantile, rate_of, table, tail};
use crate::words::{ratio, size};

/// Returns the job and the limit of a cell that takes regions again.
fn recycled(cell: &Cell) -> Option<(&Recycle, Limit)> {
    match (&cell.job, cell.limit) {
        (Job::Recycle(job), Some(limit)) => Some((job, limit)),
        _ => None,
    }
}

/// Makes the table of regions that one thread takes from a pool in swap and returns, one at a time.
/// It has one row for each limit.
#[must_use]
pub fn realloc_table(title: &str, cells: &[&Cell]) -> Table {
    let row = |cell: &&Cell| {
        let (job, limit) = recycled(cell)?;
        Some(vec![
            size(limit.memory),
            ratio(limit.memory, job.total),
            rate_of(cell, "hot_per_s"),
            range_of(cell, "hot_per_s"),
            quantile(&cell.distribution("hot"), 0.5),
        ])
    };
    let heads = ["RAM", "ratio", "ops/s", "range", "p50"];
    table(title, &heads, cells.iter().filter_map(row).collect(), cells)
}

/// Makes the table of regions taken and returned per second, one row for each limit and one column
/// for each number of threads. A dash means that the threads' regions would exceed half of the
/// limit, or that no round was sound.
#[must_use]
pub fn realloc_scaling_table(title: &str, cells: &[&Cell]) -> Table {
    let jobs = || cells.iter().filter_map(|cell| recycled(cell));
    let mut threads: Vec<usize> = jobs().flat_map(|(job, _)| job.threads.clone()).collect();
    threads.sort_unstable();
    threads.dedup();
    let row = |cell: &&Cell| {
        let (job, limit) = recycled(cell)?;
        let names = [size(limit.memory), ratio(limit.memory, job.total)];
        let rates = threads
            .iter()
            .map(|count| rate_of(cell, &Recycle::rate_figure(*count)));
        Some(names.into_iter().chain(rates).collect())
    };
    let names = ["RAM", "ratio"].map(str::to_owned).into_iter();
    let heads: Vec<String> = names
        .chain(threads.iter().map(|count| format!("{count} thr")))
        .collect();
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    table(title, &heads, cells.iter().filter_map(row).collect(), &[])
}

/// Makes the table that compares the first use of swapped regions with repeated use of one region.
/// It has one row for each cell, with the source of the regions.
#[must_use]
pub fn recycle_table(title: &str, cells: &[&Cell]) -> Table {
    let row = |cell: &&Cell| {
        let mut row = vec![cell.held_by().to_owned()];
        let cold = cell.distribution("cold");
        row.push(quantile(&cold, 0.5));
        row.push(range_of_quantile(cell, "cold", 0.5));
        row.push(quantile(&cold, 0.99));
        row.extend(tail(&cell.distribution("hot"), &[0.5, 0.99]));
        row
    };
    let heads = [
        "regions of",
        "cold p50",
        "range",
        "cold p99",
        "hot p50",
        "hot p99",
    ];
    let rows = cells.iter().map(row).collect();
    table(title, &heads, rows, cells)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use heapdrome_schema::{Bytes, Experiment, Holder, PagingReport};

    fn cell(memory: Bytes, threads: &[usize]) -> Cell {
        let job = Job::Recycle(Recycle {
            total: Bytes::from_gib(1),
            threads: threads.to_vec(),
            holder: Holder::Lgalloc,
            seed: 1,
            seconds: Duration::ZERO,
        });
        let limit = Limit {
            memory,
            swap: Bytes::from_gib(1),
            processors: None,
        };
        let mut cell = Cell::new(Experiment::RatioSweep, "a cell", job, Some(limit));
        let rate = |count: &usize| (Recycle::rate_figure(*count), 100.0 * *count as f64);
        cell.reports.push(PagingReport {
            figures: threads.iter().map(rate).collect(),
            ..PagingReport::default()
        });
        cell
    }

    #[test]
    fn every_number_of_threads_has_a_column_and_what_does_not_fit_a_dash() {
        let cells = [
            cell(Bytes::from_gib(1), &[1, 2, 16]),
            cell(Bytes::from_mib(64), &[1, 2]),
        ];
        let cells: Vec<&Cell> = cells.iter().collect();
        let table = realloc_scaling_table("x", &cells);
        assert_eq!(table.heads, ["RAM", "ratio", "1 thr", "2 thr", "16 thr"]);
        assert_eq!(
            table.rows,
            [
                ["1G", "1:1", "100", "200", "1,600"],
                ["64M", "1:16", "100", "200", "-"]
            ]
        );
        assert_eq!(realloc_table("y", &cells).rows[0][2], "100");
    }
}
