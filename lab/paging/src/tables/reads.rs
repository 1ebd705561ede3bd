//! Tables of random reads: by limit, by number of threads, by advice.

use heapdrome_schema::{Bytes, Distribution, Job, Nanoseconds, Order, PagingCell as Cell, Table};

use super::{
    median_of, or_dash, quantile, range_in, range_of, range_of_quantile, rate_of, table, tail,
};
use crate::words::{rate, ratio, size};

/// The document's bound for the latency of a read from memory. A table shows the share of reads up
/// to this bound.
const IN_MEMORY: Nanoseconds = Nanoseconds(300);

/// Makes a table of reads. Notes state the order of the pages and the cost of reading the clock.
fn reads_table(title: &str, heads: &[&str], rows: Vec<Vec<String>>, cells: &[&Cell]) -> Table {
    let mut made = table(title, heads, rows, cells);
    made.notes.extend(drawn(cells));
    made.notes.extend(clock(cells));
    made
}

/// Describes the order in which pages are drawn.
fn drawn(cells: &[&Cell]) -> Option<String> {
    let order = |cell: &&Cell| match &cell.job {
        Job::Read(job) => Some(job.order),
        _ => None,
    };
    Some(match cells.iter().find_map(order)? {
        Order::Uniform => "pages are drawn independently and uniformly".to_owned(),
        Order::Permutation => {
            "every page is drawn once in a shuffled order, then in another; no share \
                               of major faults is expected"
                .to_owned()
        }
    })
}

/// Describes the time between two adjacent readings of the clock, in the processes of these cells.
fn clock(cells: &[&Cell]) -> Option<String> {
    let mut all = Distribution::default();
    for cell in cells {
        all.merge(&cell.distribution("clock"));
    }
    let [middle, late] = [0.5, 0.99].map(|share| quantile(&all, share));
    (all.count() > 0).then(|| format!("the clock alone: p50 {middle}, p99 {late}"))
}

/// Makes the table of random reads with one number of threads, one row for each limit.
#[must_use]
pub fn ratio_table(title: &str, cells: &[&Cell]) -> Table {
    let row = |cell: &&Cell| {
        let (Job::Read(job), Some(limit)) = (&cell.job, cell.limit) else {
            return None;
        };
        let times = cell.distribution("read");
        let share = |figure| or_dash(median_of(cell, figure).map(|share| format!("{share:.3}")));
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
    reads_table(title, &heads, cells.iter().filter_map(row).collect(), cells)
}

/// Makes the table of random reads by limit and number of threads. The cells may be in any order.
#[must_use]
pub fn scaling_table(title: &str, cells: &[&Cell]) -> Table {
    let place = |cell: &Cell| match (&cell.job, cell.limit) {
        (Job::Read(job), Some(limit)) => Some(((limit.memory, job.total), job.threads)),
        _ => None,
    };
    let places = || cells.iter().filter_map(|cell| place(cell));
    let mut limits: Vec<(Bytes, Bytes)> = places().map(|(limit, _)| limit).collect();
    let mut threads: Vec<usize> = places().map(|(_, threads)| threads).collect();
    limits.sort_unstable_by(|a, b| b.cmp(a));
    limits.dedup();
    threads.sort_unstable();
    threads.dedup();
    let figure = |wanted| {
        let found = cells.iter().find(|cell| place(cell) == Some(wanted));
        or_dash(
            found
                .and_then(|cell| median_of(cell, "reads_per_s"))
                .map(rate),
        )
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

/// Makes the table of advice, one row for each strategy. Latencies of single reads exclude the
/// advice, except those of lgalloc's reader. Latencies of batches are shown with and without it.
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
    reads_table(title, &heads, cells.iter().map(row).collect(), &all)
}

/// Makes the table of the document's paging benchmark, in which the working set is three times the
/// limit.
#[must_use]
pub fn summary_table(title: &str, reads: &Cell, recycled: &Cell) -> Table {
    let rates = |name: &str, cell: &Cell, figure: &str| {
        vec![
            name.to_owned(),
            rate_of(cell, figure),
            range_of(cell, figure),
        ]
    };
    let times = |name: &str, cell: &Cell, kind: &str, share: f64| {
        let whole = quantile(&cell.distribution(kind), share);
        vec![name.to_owned(), whole, range_of_quantile(cell, kind, share)]
    };
    let rows = vec![
        rates("random_read ops/s", reads, "reads_per_s"),
        in_memory(reads),
        times("random_read p50", reads, "read", 0.5),
        times("random_read p99", reads, "read", 0.99),
        times("random_read p99.9", reads, "read", 0.999),
        times("random_read max", reads, "read", 1.0),
        rates("realloc+touch ops/s", recycled, "hot_per_s"),
        times("realloc+touch p50", recycled, "hot", 0.5),
    ];
    reads_table(
        title,
        &["metric", "here", "range"],
        rows,
        &[reads, recycled],
    )
}

/// Formats the share of reads that are fast enough to come from memory.
fn in_memory(reads: &Cell) -> Vec<String> {
    let share = |times: &Distribution| times.share_up_to(IN_MEMORY);
    let told = |share: f64| format!("{:.0}%", share * 100.0);
    vec![
        format!("random_read under {IN_MEMORY}"),
        or_dash(share(&reads.distribution("read")).map(told)),
        range_in(reads, "read", share, told),
    ]
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use heapdrome_schema::{Experiment, Holder, Limit, PagingReport, Read, Strategy};

    fn read_cell(memory: Bytes, threads: usize, rate: f64) -> Cell {
        let job = Job::Read(Read {
            total: Bytes::from_gib(1),
            threads,
            strategy: Strategy::Baseline,
            holder: Holder::Lgalloc,
            order: Order::Uniform,
            seed: 1,
            warm_up: Duration::ZERO,
            seconds: Duration::ZERO,
        });
        let limit = Limit {
            memory,
            swap: Bytes::from_gib(1),
            processors: None,
        };
        let mut cell = Cell::new(Experiment::RatioSweep, "a cell", job, Some(limit));
        cell.reports.push(PagingReport {
            figures: [("reads_per_s".to_owned(), rate)].into(),
            distributions: [(
                "read".to_owned(),
                Distribution::new([200, 80_000].map(|time| (Nanoseconds(time), 1))),
            )]
            .into(),
            ..PagingReport::default()
        });
        cell
    }

    #[test]
    fn every_row_has_as_many_cells_as_there_are_heads() {
        let cells = [
            read_cell(Bytes(1 << 29), 1, 12_996.0),
            read_cell(Bytes(1 << 28), 1, 12_578.0),
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
        assert_eq!(made[3].rows[1][..2], ["random_read under 300 ns", "50%"]);
    }

    #[test]
    fn the_order_of_draws_and_the_clock_stand_below_a_table() {
        let mut cell = read_cell(Bytes(1 << 29), 1, 10.0);
        let clock = Distribution::new([(Nanoseconds(35), 10)]);
        let report = &mut cell.reports[0];
        report.distributions.insert("clock".to_owned(), clock);
        let notes = |cell: &Cell| ratio_table("x", &[cell]).notes;
        let uniform = notes(&cell);
        assert!(uniform[0].contains("uniformly"), "{uniform:?}");
        assert_eq!(uniform[1], "the clock alone: p50 35 ns, p99 35 ns");
        if let Job::Read(job) = &mut cell.job {
            job.order = Order::Permutation;
        }
        let shuffled = notes(&cell);
        assert!(shuffled[0].contains("shuffled"), "{shuffled:?}");
    }

    #[test]
    fn scaling_has_a_dash_where_nothing_was_measured() {
        let mut failed = read_cell(Bytes(1 << 28), 4, 1.0);
        failed.reports.clear();
        failed.failure = Some("no swap".to_owned());
        let cells = [
            read_cell(Bytes(1 << 29), 1, 10.0),
            read_cell(Bytes(1 << 29), 4, 40.0),
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
