//! Tables as the document prints them.

use heapdrome_record::Table;

use crate::words::{rate, ratio, size, time};
use crate::{Cell, Distribution, Job};

/// The longest bar of a plot.
const LONGEST: f64 = 30.0;

fn table(title: &str, heads: &[&str], rows: Vec<Vec<String>>, cells: &[&Cell]) -> Table {
    let mut told: Vec<(String, Vec<&str>)> = Vec::new();
    for cell in cells {
        for text in cell.remarks() {
            match told.iter_mut().find(|(known, _)| *known == text) {
                Some((_, names)) => names.push(&cell.name),
                None => told.push((text, vec![&cell.name])),
            }
        }
    }
    let notes = told
        .into_iter()
        .map(|(text, names)| match names.as_slice() {
            [first, _, _, _, ..] => format!("{first} and {} more: {text}", names.len() - 1),
            names => format!("{}: {text}", names.join(", ")),
        })
        .collect();
    Table {
        title: title.to_owned(),
        published: None,
        heads: heads.iter().map(|head| (*head).to_owned()).collect(),
        rows,
        notes,
    }
}

fn or_dash(value: Option<String>) -> String {
    value.unwrap_or_else(|| "-".to_owned())
}

fn rate_of(cell: &Cell, figure: &str) -> String {
    or_dash(cell.median(figure).map(rate))
}

/// The lowest and the highest of the rounds.
fn range_of(cell: &Cell, figure: &str) -> String {
    let figures = cell.figures(figure);
    or_dash(match figures.as_slice() {
        [] | [_] => None,
        [first, .., last] => Some(format!("{} to {}", rate(*first), rate(*last))),
    })
}

fn quantile(distribution: &Distribution, share: f64) -> String {
    or_dash(distribution.quantile(share).map(|value| time(value as f64)))
}

fn tail(distribution: &Distribution, shares: &[f64]) -> Vec<String> {
    shares
        .iter()
        .map(|share| quantile(distribution, *share))
        .collect()
}

/// The throughput benchmark: one row for each cell.
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
            or_dash(times.mean().map(time)),
        ];
        row.extend(tail(&times, &[0.5, 0.99, 0.999, 1.0]));
        Some(row)
    };
    let heads = [
        "benchmark",
        "thr",
        "ops/s",
        "avg",
        "p50",
        "p99",
        "p99.9",
        "max",
    ];
    table(title, &heads, cells.iter().filter_map(row).collect(), cells)
}

/// The way of taking regions that a cell of the throughput benchmark is named after.
fn way(cell: &Cell) -> &str {
    cell.name.rsplit_once(" x ").map_or(&cell.name, |one| one.0)
}

/// What one operation takes without the clock: a row for each way of taking regions, a column for each
/// number of threads.
#[must_use]
pub fn pair_table(title: &str, cells: &[&Cell]) -> Table {
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
        let cell = cells.iter().find(right);
        or_dash(
            cell.and_then(|cell| cell.median("op_without_clock_ns"))
                .map(time),
        )
    };
    let rows = ways.iter().map(|name| {
        let times = counts.iter().map(|count| told(name, *count));
        std::iter::once((*name).to_owned()).chain(times).collect()
    });
    let heads: Vec<String> = std::iter::once("benchmark".to_owned())
        .chain(counts.iter().map(|count| format!("{count} thr")))
        .collect();
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let mut made = table(title, &heads, rows.collect(), &[]);
    made.notes.push(
        "medians of batches of about 50 us that were timed as a whole, over threads; medians of rounds"
            .to_owned(),
    );
    made
}

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

/// Taking and returning one region at a time from a pool in swap, one row for each limit.
#[must_use]
pub fn realloc_table(title: &str, cells: &[&Cell]) -> Table {
    let row = |cell: &&Cell| {
        let (Job::Recycle(job), Some(limit)) = (&cell.job, cell.limit) else {
            return None;
        };
        Some(vec![
            size(limit.memory),
            ratio(limit.memory, job.total),
            rate_of(cell, "hot_per_s"),
            quantile(&cell.distribution("hot"), 0.5),
        ])
    };
    let heads = ["RAM", "ratio", "ops/s", "p50"];
    table(title, &heads, cells.iter().filter_map(row).collect(), cells)
}

/// The first use of regions that have gone to swap beside one region used again and again, one row
/// for each cell under the name of what its regions come from.
#[must_use]
pub fn recycle_table(title: &str, cells: &[&Cell], names: &[String]) -> Table {
    let row = |(cell, name): (&&Cell, &String)| {
        let mut row = vec![name.clone()];
        row.extend(tail(&cell.distribution("cold"), &[0.5, 0.99]));
        row.extend(tail(&cell.distribution("hot"), &[0.5, 0.99]));
        row
    };
    let heads = ["regions of", "cold p50", "cold p99", "hot p50", "hot p99"];
    let rows = cells.iter().zip(names).map(row).collect();
    table(title, &heads, rows, cells)
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

/// What the kernel counted while each cell was measured. Those of swapping are the whole machine's;
/// hits and kills are the cell's own group's, to the end of its process.
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

/// The complementary cumulative distribution: how many values are greater than each, with a bar whose
/// length is the logarithm of their share.
#[must_use]
pub fn ccdf_table(title: &str, distribution: &Distribution) -> Table {
    let smallest = (distribution.count().max(10) as f64).log10();
    let bar = |share: f64| {
        let length = if share > 0.0 {
            1.0 + share.log10() / smallest
        } else {
            0.0
        };
        "#".repeat((length * LONGEST).round() as usize)
    };
    let rows = distribution.ccdf().into_iter().map(|point| {
        vec![
            time(point.value as f64),
            format!("{:.6}", point.share),
            point.above.to_string(),
            bar(point.share),
        ]
    });
    let heads = ["latency x", "P(X>x)", "count", "log P"];
    let mut made = table(title, &heads, rows.collect(), &[]);
    made.notes.push(format!("{} samples", distribution.count()));
    made
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Holder, Limit, Order, Read, Report, Strategy};

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
            ccdf_table("e", &cells[0].distribution("read")),
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

    #[test]
    fn the_bar_of_a_ccdf_shortens_to_nothing() {
        let table = ccdf_table("x", &Distribution::new([(1, 900), (2, 90), (3, 10)]));
        let lengths: Vec<usize> = table.rows.iter().map(|row| row[3].len()).collect();
        assert!(lengths.windows(2).all(|two| two[0] > two[1]), "{lengths:?}");
        assert_eq!(lengths.last(), Some(&0));
    }
}
