//! Random reads: under several limits, by threads, by advice.

use heapdrome_record::Table;

use super::{or_dash, quantile, range_of, rate_of, table, tail};
use crate::words::{rate, ratio, size};
use crate::{Cell, Job};

/// Random reads at one number of threads, one row for each limit.
#[must_use]
pub fn ratio_table(title: &str, cells: &[&Cell]) -> Table {
    let row = |cell: &&Cell| {
        let (Job::Read(job), Some(limit)) = (&cell.job, cell.limit) else {
            return None;
        };
        let times = cell.distribution("read");
        let share = |figure| or_dash(cell.median(figure).map(|share| format!("{share:.3}")));
        let mut row = vec![
            size(limit.memory),
            ratio(limit.memory, job.total),
            rate_of(cell, "reads_per_s"),
            range_of(cell, "reads_per_s"),
        ];
        row.extend(tail(&times, &[0.5, 0.99]));
        row.extend([share("resident_share"), share("major_faults_per_read")]);
        Some(row)
    };
    let heads = [
        "RAM",
        "ratio",
        "ops/s",
        "range",
        "p50",
        "p99",
        "resident",
        "major faults/op",
    ];
    table(title, &heads, cells.iter().filter_map(row).collect(), cells)
}

/// Random reads per limit and number of threads, from cells in any order.
#[must_use]
pub fn scaling_table(title: &str, cells: &[&Cell]) -> Table {
    let place = |cell: &Cell| match (&cell.job, cell.limit) {
        (Job::Read(job), Some(limit)) => Some(((limit.memory, job.total), job.threads)),
        _ => None,
    };
    let places = || cells.iter().filter_map(|cell| place(cell));
    let mut limits: Vec<(u64, u64)> = places().map(|(limit, _)| limit).collect();
    let mut threads: Vec<usize> = places().map(|(_, threads)| threads).collect();
    limits.sort_unstable_by(|a, b| b.cmp(a));
    limits.dedup();
    threads.sort_unstable();
    threads.dedup();
    let figure = |wanted| {
        let found = cells.iter().find(|cell| place(cell) == Some(wanted));
        or_dash(found.and_then(|cell| cell.median("reads_per_s")).map(rate))
    };
    let rows = limits.iter().map(|limit| {
        let figures = threads.iter().map(|count| figure((*limit, *count)));
        let (memory, total) = *limit;
        let names = [size(memory), ratio(memory, total)];
        names.into_iter().chain(figures).collect()
    });
    let heads: Vec<String> = ["RAM".to_owned(), "ratio".to_owned()]
        .into_iter()
        .chain(threads.iter().map(|count| format!("{count} thr")))
        .collect();
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    table(title, &heads, rows.collect(), cells)
}

/// What advice buys, one row for each strategy. The latencies of single reads leave out the advice;
/// those of batches are told with it and without.
#[must_use]
pub fn strategy_table(title: &str, cells: &[(String, &Cell)]) -> Table {
    let row = |(name, cell): &(String, &Cell)| {
        let mut row = vec![
            name.clone(),
            rate_of(cell, "reads_per_s"),
            range_of(cell, "reads_per_s"),
        ];
        row.extend(tail(&cell.distribution("read"), &[0.5, 0.99, 0.999, 1.0]));
        row.push(quantile(&cell.distribution("batch_with_advice"), 0.5));
        row.push(quantile(&cell.distribution("batch_without_advice"), 0.5));
        row
    };
    let heads = [
        "strategy",
        "ops/s",
        "range",
        "p50",
        "p99",
        "p99.9",
        "max",
        "batch p50",
        "without advice",
    ];
    let all: Vec<&Cell> = cells.iter().map(|(_, cell)| *cell).collect();
    table(title, &heads, cells.iter().map(row).collect(), &all)
}

/// The document's paging benchmark: a limit, three times as much memory.
#[must_use]
pub fn summary_table(title: &str, reads: &Cell, recycled: &Cell) -> Table {
    let (read, hot) = (reads.distribution("read"), recycled.distribution("hot"));
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    let rows = vec![
        row("random_read ops/s", rate_of(reads, "reads_per_s")),
        row("random_read p50", quantile(&read, 0.5)),
        row("random_read p99", quantile(&read, 0.99)),
        row("random_read max", quantile(&read, 1.0)),
        row("realloc+touch ops/s", rate_of(recycled, "hot_per_s")),
        row("realloc+touch p50", quantile(&hot, 0.5)),
    ];
    table(title, &["metric", "here"], rows, &[reads, recycled])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Distribution, Holder, Limit, Order, Read, Report, Strategy};

    fn read_cell(memory: u64, threads: usize, rate: f64) -> Cell {
        let job = Job::Read(Read {
            total: 1 << 30,
            threads,
            strategy: Strategy::Baseline,
            holder: Holder::Lgalloc,
            order: Order::Uniform,
            seed: 1,
            warm_up: 1.0,
            seconds: 1.0,
        });
        let limit = Limit {
            memory,
            swap: 1 << 30,
            processors: None,
        };
        let mut cell = Cell::new("a part", "a cell", job, Some(limit));
        cell.reports.push(Report {
            figures: [("reads_per_s".to_owned(), rate)].into(),
            distributions: [(
                "read".to_owned(),
                Distribution::new([(200, 1), (80_000, 1)]),
            )]
            .into(),
            ..Report::default()
        });
        cell
    }

    #[test]
    fn every_row_has_as_many_cells_as_there_are_heads() {
        let cells = [
            read_cell(1 << 29, 1, 12_996.0),
            read_cell(1 << 28, 1, 12_578.0),
        ];
        let cells: Vec<&Cell> = cells.iter().collect();
        let made = [
            ratio_table("a", &cells),
            scaling_table("b", &cells),
            strategy_table("c", &[("c".to_owned(), cells[0])]),
            summary_table("d", cells[0], cells[1]),
        ];
        for table in &made {
            assert!(!table.rows.is_empty(), "{}", table.title);
            let width = table.heads.len();
            assert!(table.rows.iter().all(|row| row.len() == width), "{table:?}");
        }
        assert_eq!(made[0].rows[0][..3], ["512M", "1:2", "12,996"]);
    }

    #[test]
    fn scaling_has_a_dash_where_nothing_was_measured() {
        let mut failed = read_cell(1 << 28, 4, 1.0);
        failed.reports.clear();
        failed.failure = Some("no swap".to_owned());
        let cells = [
            read_cell(1 << 29, 1, 10.0),
            read_cell(1 << 29, 4, 40.0),
            failed,
        ];
        let table = scaling_table("x", &cells.iter().collect::<Vec<_>>());
        assert_eq!(table.heads, ["RAM", "ratio", "1 thr", "4 thr"]);
        assert_eq!(
            table.rows,
            [["512M", "1:2", "10", "40"], ["256M", "1:4", "-", "-"]]
        );
        assert_eq!(table.notes, ["a cell: not measured: no swap"]);
    }
}
