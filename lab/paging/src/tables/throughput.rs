//! Tables of regions that are taken and returned.

use heapdrome_schema::{Job, PagingCell as Cell, Table};

use super::{median_of, or_dash, range_of, rate_of, table, tail};
use crate::words::time;

/// Makes the table of the throughput benchmark, one row for each cell.
#[must_use]
pub fn throughput_table(title: &str, cells: &[&Cell]) -> Table {
    let row = |cell: &&Cell| {
        let Job::Throughput(job) = &cell.job else {
            return None;
        };
        let times = cell.distribution("op");
        let mut row = vec![
            way(cell).to_owned(),
            job.threads.to_string(),
            rate_of(cell, "ops_per_s"),
            range_of(cell, "ops_per_s"),
            or_dash(times.mean_ns().map(time)),
        ];
        row.extend(tail(&times, &[0.5, 0.99, 0.999, 1.0]));
        Some(row)
    };
    let heads = [
        "benchmark",
        "thr",
        "ops/s",
        "range",
        "avg",
        "p50",
        "p99",
        "p99.9",
        "max",
    ];
    table(title, &heads, cells.iter().filter_map(row).collect(), cells)
}

/// Returns the part of a throughput cell's name that states how regions are taken.
fn way(cell: &Cell) -> &str {
    cell.name.rsplit_once(" x ").map_or(&cell.name, |one| one.0)
}

/// Makes the table of the time per operation, without the cost of the clock. It has a row for each
/// way of taking regions, and a column for each number of threads.
#[must_use]
pub fn pair_table(title: &str, cells: &[&Cell]) -> Table {
    let time_of = |cell: &Cell| median_of(cell, "op_without_clock_ns").map(time);
    let mut made = by_threads(title, cells, time_of);
    made.notes.push(
        "medians of batches of about 50 µs that were timed as a whole, over threads; medians of rounds"
            .to_owned(),
    );
    made
}

/// Makes the table of ratios: the time of taking a region and writing to each page, over the time
/// of writing to each page of a kept region. One process alternates between the two.
#[must_use]
pub fn kept_table(title: &str, cells: &[&Cell]) -> Table {
    beside_table(title, cells, "kept_ns")
}

/// Makes the table of ratios: the time of a pair of calls to lgalloc, over that of a pair of calls
/// to the published crate. One process alternates between the two.
#[must_use]
pub fn published_table(title: &str, cells: &[&Cell]) -> Table {
    beside_table(title, cells, "published_ns")
}

fn beside_table(title: &str, cells: &[&Cell], beside: &str) -> Table {
    let times = |cell: &Cell| {
        let ratio = median_of(cell, "op_without_clock_ns")? / median_of(cell, beside)?;
        Some(format!("{ratio:.3}"))
    };
    let mut made = by_threads(title, cells, times);
    made.rows
        .retain(|row| row[1..].iter().any(|text| text != "-"));
    made.notes.push(
        "batches of both in turn, in one process: medians of batches, medians of rounds".to_owned(),
    );
    made
}

/// Makes a table with a row for each way of taking regions and a column for each number of threads.
fn by_threads(title: &str, cells: &[&Cell], value: impl Fn(&Cell) -> Option<String>) -> Table {
    let threads = |cell: &Cell| match &cell.job {
        Job::Throughput(job) => Some(job.threads),
        _ => None,
    };
    let mut counts: Vec<usize> = cells.iter().filter_map(|cell| threads(cell)).collect();
    counts.sort_unstable();
    counts.dedup();
    let mut ways: Vec<&str> = Vec::new();
    for cell in cells {
        if !ways.contains(&way(cell)) {
            ways.push(way(cell));
        }
    }
    let told = |name: &str, count: usize| {
        let right = |cell: &&&Cell| way(cell) == name && threads(cell) == Some(count);
        or_dash(cells.iter().find(right).and_then(|cell| value(cell)))
    };
    let rows = ways.iter().map(|name| {
        let times = counts.iter().map(|count| told(name, *count));
        std::iter::once((*name).to_owned()).chain(times).collect()
    });
    let heads: Vec<String> = std::iter::once("benchmark".to_owned())
        .chain(counts.iter().map(|count| format!("{count} thr")))
        .collect();
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    table(title, &heads, rows.collect(), &[])
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use heapdrome_schema::{Experiment, PagingReport, Throughput, Variant};

    fn cell(variant: Variant, threads: usize, figures: &[(&str, f64)]) -> Cell {
        let job = Job::Throughput(Throughput {
            variant,
            threads,
            warm_up: Duration::ZERO,
            seconds: Duration::ZERO,
        });
        let name = format!("{} x {threads}", variant.name());
        let mut cell = Cell::new(Experiment::Throughput, name, job, None);
        let named = figures
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value));
        cell.reports.push(PagingReport {
            figures: named.collect(),
            ..PagingReport::default()
        });
        cell
    }

    #[test]
    fn a_ratio_to_what_is_kept_is_there_for_those_that_have_one() {
        let both = [("op_without_clock_ns", 2040.0), ("kept_ns", 2000.0)];
        let cells = [
            cell(Variant::Clock, 1, &both[..1]),
            cell(Variant::LgallocTouch, 1, &both),
            cell(Variant::LgallocTouch, 2, &both[..1]),
        ];
        let cells: Vec<&Cell> = cells.iter().collect();
        let kept = kept_table("x", &cells);
        assert_eq!(kept.heads, ["benchmark", "1 thr", "2 thr"]);
        assert_eq!(kept.rows, [["lgalloc+touch", "1.020", "-"]]);
        assert!(published_table("x", &cells).rows.is_empty());
        let pairs = pair_table("y", &cells);
        assert_eq!(pairs.rows[0], ["(clock alone)", "2.04 µs", "-"]);
        assert_eq!(pairs.rows[1], ["lgalloc+touch", "2.04 µs", "2.04 µs"]);
    }
}
