//! The figures of one entrant in detail, compared with the baseline's.

use std::fmt::Write as _;

use heapdrome_schema::{
    Bytes, Comparison, EntrantResult, Evidence, Nanoseconds, RaceResult, Role, Series,
};

use crate::entrant::{self, overhead, versus};
use crate::foreign;
use crate::memory;
use crate::reason::reason_for;
use crate::table::{self, Column};
use crate::words::{self, NONE};

/// Maximum width of a name, in characters.
const NAME: usize = 12;

/// Width of the longest bar, in characters.
const BAR: usize = 30;

/// Name of the entrant whose calls do the least work.
const YARDSTICK: &str = "cheapest";

/// Heading of the figures from the run that followed every block.
const FOLLOWED: &str = "From one untimed run that followed every block";

/// Explanation of ratios that differ from the ratio of the medians.
const RATIOS: &str = "A ratio comes from the pairs of values within each round, so it can differ \
                      from the ratio of the medians. A value of 0 counts as one step of its \
                      figure (a fault, a microsecond), so 0 and 1 have the ratio 1.000.";

/// Returns the evidence of the entrant of this name, in lines of at most `width` characters.
/// Returns `None` if the race had no such entrant. The baseline's twin does not count.
pub fn evidence(result: &RaceResult, allocator: &str, width: usize) -> Option<String> {
    let known = |row: &&EntrantResult| row.role != Role::Twin && row.allocator == allocator;
    let row = result.entrants.iter().find(known)?;
    let baseline = result
        .entrants
        .iter()
        .find(|row| row.role == Role::Baseline);
    let baseline = baseline.filter(|_| row.role != Role::Baseline);
    let rows = Rows { row, baseline };
    let mut text = title(result, row);
    paragraph(&mut text, &rows.table(&timed(), true).join("\n"));
    if baseline.is_some() {
        paragraph(&mut text, RATIOS);
    }
    paragraph(&mut text, &in_faults(result, &rows));
    let untimed = rows.table(&untimed(), false);
    if row.evidence.is_some() || baseline.is_some_and(|row| row.evidence.is_some()) {
        paragraph(&mut text, &format!("{FOLLOWED}\n{}", untimed.join("\n")));
    }
    if let Some(seen) = &row.evidence {
        paragraph(&mut text, &yardstick(result));
        paragraph(&mut text, &sizes(seen).join("\n"));
    }
    let why = reason_for(result, allocator);
    if let Some(why) = why {
        paragraph(&mut text, &format!("Why: {why}."));
    }
    paragraph(&mut text, &remarks(row));
    let lines = text.lines().map(|line| fitted(line, width));
    Some(lines.map(|line| line + "\n").collect())
}

/// Formats the time in page faults; empty if the cost of a fault or the number of faults is
/// unknown. Other allocators may save more than this time.
fn in_faults(result: &RaceResult, rows: &Rows<'_>) -> String {
    let Some(cost) = result.machine.fault_s else {
        return String::new();
    };
    let told = |row: &EntrantResult| {
        let seconds = row.minor_faults.as_ref()?.median * cost;
        let share = words::fraction(seconds / entrant::cpu(row)?.median);
        let time = Nanoseconds::from_seconds(seconds);
        let name = foreign::name(&row.allocator);
        seconds
            .is_finite()
            .then(|| format!("{time} ({share} of the processor time) under {name}"))
    };
    let rows = [Some(rows.row), rows.baseline].into_iter().flatten();
    let told: Vec<String> = rows.filter_map(told).collect();
    match told.is_empty() {
        true => String::new(),
        false => format!(
            "Minor page faults, at {} each on this machine, take about {}. A fault that maps \
             a huge page takes longer.",
            Nanoseconds::from_seconds(cost),
            words::listed(&told)
        ),
    }
}

/// Formats the time in calls under [`YARDSTICK`]; empty if that entrant did not race, or its calls
/// were not timed.
fn yardstick(result: &RaceResult) -> String {
    let seen = result.row(YARDSTICK).and_then(|row| row.evidence.as_ref());
    seen.and_then(|seen| seen.call_time)
        .map_or_else(String::new, |time| {
            format!(
                "Time in allocator calls under {YARDSTICK}, for comparison: {}.",
                Nanoseconds::from_seconds(time.spent_s)
            )
        })
}

fn paragraph(text: &mut String, more: &str) {
    if !more.is_empty() {
        let _ = writeln!(text, "\n{more}");
    }
}

/// Wraps sentences, and truncates a table's lines.
fn fitted(line: &str, width: usize) -> String {
    match line.contains("  ") || line.contains('─') {
        true => foreign::shorten(line, width),
        false => textwrap::fill(line, width),
    }
}

fn title(result: &RaceResult, row: &EntrantResult) -> String {
    let name = foreign::name(&row.allocator);
    let command = match &result.options.workload {
        Some(workload) => foreign::line(workload),
        None => foreign::line(&result.command.join(" ")),
    };
    let rounds = row.decided_after.unwrap_or(result.rounds);
    let rounds = words::count(u64::from(rounds), "round");
    format!(
        "{name} ({}), {rounds} of: {command}\n",
        foreign::line(&row.version)
    )
}

/// One line of a table of figures.
struct Line {
    label: &'static str,
    tell: fn(&EntrantResult) -> String,
    /// Key of the figure's comparison with the baseline; `None` if the line shows no ratio.
    compared: Option<&'static str>,
}

const fn line(
    label: &'static str,
    compared: Option<&'static str>,
    tell: fn(&EntrantResult) -> String,
) -> Line {
    Line {
        label,
        tell,
        compared,
    }
}

/// Returns the lines with figures of the timed runs, of the run under the witness, and of the runs
/// that watch memory.
fn timed() -> Vec<Line> {
    let of = |label, name, tell| line(label, Some(name), tell);
    vec![
        of("wall time", "wall_s", |row| {
            words::seconds(row.wall_s.as_ref())
        }),
        of("processor time", "cpu_s", |row| {
            words::seconds(entrant::cpu(row).as_ref())
        }),
        of("  in the program", "user_s", |row| {
            words::seconds(row.user_s.as_ref())
        }),
        of("  in the kernel", "system_s", |row| {
            words::seconds(row.system_s.as_ref())
        }),
        of("peak memory, largest process", "peak_rss_bytes", |row| {
            words::bytes(row.peak_rss_bytes.as_ref())
        }),
        line("peak anonymous memory, all", None, |row| {
            words::bytes(row.peak_tree_bytes.as_ref())
        }),
        line("  in huge pages", None, |row| {
            memory::at_most(row).map_or_else(|| NONE.to_owned(), |parts| parts.huge.to_string())
        }),
        of("minor page faults", "minor_faults", |row| {
            number(row.minor_faults.as_ref())
        }),
        of("major page faults", "major_faults", |row| {
            number(row.major_faults.as_ref())
        }),
        of("waits", "voluntary_switches", |row| {
            number(row.voluntary_switches.as_ref())
        }),
        of("interruptions", "involuntary_switches", |row| {
            number(row.involuntary_switches.as_ref())
        }),
        line("calls of malloc and free", None, |row| {
            proof(row, |proof| words::grouped(proof.calls))
        }),
        line("bytes requested in total", None, |row| {
            proof(row, |proof| Bytes(proof.requested_bytes).to_string())
        }),
        line("processes, of which served", None, |row| {
            proof(row, |proof| {
                format!("{}, {}", proof.processes, proof.served_processes)
            })
        }),
    ]
}

/// Returns the lines with figures of the run that followed every block.
fn untimed() -> Vec<Line> {
    let of = |label, tell| line(label, None, tell);
    vec![
        of("peak of live bytes", |row| {
            seen(row, |seen| Some(Bytes(seen.peak_live_bytes).to_string()))
        }),
        of("resident for each live byte", |row| {
            overhead(row).map_or_else(|| NONE.to_owned(), words::bare_ratio)
        }),
        of("blocks", |row| {
            seen(row, |seen| Some(words::grouped(seen.blocks())))
        }),
        of("  freed or resized", |row| {
            seen(row, |seen| Some(words::grouped(seen.frees)))
        }),
        of("  of those by another thread", |row| {
            seen(row, |seen| Some(words::grouped(seen.freed_by_others)))
        }),
        of("mmap, anonymous", |row| system(row, |calls| calls.mmap)),
        of("munmap", |row| system(row, |calls| calls.munmap)),
        of("mremap", |row| system(row, |calls| calls.mremap)),
        of("madvise", |row| system(row, |calls| calls.madvise)),
        of("brk", |row| system(row, |calls| calls.brk)),
        of("time in allocator calls", |row| {
            seen(row, |seen| {
                let time = seen.call_time?;
                let share = entrant::cpu(row).map(|cpu| time.spent_s / cpu.median);
                let share = share.filter(|share| share.is_finite() && *share <= 1.0);
                let spent = Nanoseconds::from_seconds(time.spent_s);
                Some(match share {
                    Some(share) => format!("{spent} ({})", words::fraction(share)),
                    None => spent.to_string(),
                })
            })
        }),
        of("huge pages at the end", |row| {
            seen(row, |seen| Some(Bytes(seen.huge_at_end_bytes).to_string()))
        }),
    ]
}

fn number(series: Option<&Series>) -> String {
    let median = series.map(|series| series.median);
    median.filter(|median| median.is_finite()).map_or_else(
        || NONE.to_owned(),
        |median| words::grouped(median.round() as u64),
    )
}

fn proof(row: &EntrantResult, tell: fn(&heapdrome_schema::ProofSummary) -> String) -> String {
    row.proof.as_ref().map_or_else(|| NONE.to_owned(), tell)
}

fn seen(row: &EntrantResult, tell: impl Fn(&Evidence) -> Option<String>) -> String {
    let told = row.evidence.as_ref().and_then(tell);
    told.unwrap_or_else(|| NONE.to_owned())
}

fn system(row: &EntrantResult, of: fn(heapdrome_schema::SystemCalls) -> u64) -> String {
    seen(row, |seen| Some(words::grouped(of(seen.system_calls?))))
}

/// The rows of the entrant and of the baseline. The row of the baseline is absent if the entrant is
/// itself the baseline.
struct Rows<'a> {
    row: &'a EntrantResult,
    baseline: Option<&'a EntrantResult>,
}

impl Rows<'_> {
    /// Makes a table of the lines in which a row has a figure. If `compared` is set, a column shows
    /// the ratios to the baseline.
    fn table(&self, lines: &[Line], compared: bool) -> Vec<String> {
        let told = |line: &&Line| {
            let rows = [Some(self.row), self.baseline].into_iter().flatten();
            rows.map(line.tell).any(|cell| cell != NONE)
        };
        let lines: Vec<&Line> = lines.iter().filter(told).collect();
        let cells = |row: &EntrantResult| lines.iter().map(|line| (line.tell)(row)).collect();
        let labels = lines.iter().map(|line| line.label.to_owned());
        let name = |row: &EntrantResult| foreign::short_name(&row.allocator, NAME);
        let mut columns = vec![
            Column::text("", labels.collect()),
            Column::figures(name(self.row), cells(self.row)),
        ];
        if let Some(baseline) = self.baseline {
            columns.push(Column::figures(name(baseline), cells(baseline)));
        }
        if compared && self.baseline.is_some() {
            let told = |line: &&Line| {
                let known = line.compared.and_then(|name| versus(self.row, name));
                known.map_or_else(|| NONE.to_owned(), ratio)
            };
            columns.push(Column::text("ratio", lines.iter().map(told).collect()));
        }
        table::lines(&columns)
    }
}

/// Formats a ratio, with its interval if both ends are finite and above 0.
fn ratio(compared: &Comparison) -> String {
    match compared.low > 0.0 && compared.high.is_finite() {
        true => words::plain_ratio(compared),
        false => words::bare_ratio(compared.ratio),
    }
}

/// Returns a bar for an amount, in proportion to `most`, which has the longest bar. A bar has at
/// least one character.
pub(crate) fn bar(amount: u64, most: u64) -> String {
    let length = (amount as f64 / most as f64 * BAR as f64).ceil() as usize;
    "█".repeat(length.clamp(1, BAR))
}

/// Lists the numbers of blocks by size, each with a bar; empty if there are no blocks.
fn sizes(seen: &Evidence) -> Vec<String> {
    let most = seen.sizes.iter().map(|size| size.blocks).max().unwrap_or(0);
    if most == 0 {
        return Vec::new();
    }
    let column = |tell: &dyn Fn(&heapdrome_schema::SizeCount) -> String| {
        seen.sizes.iter().map(tell).collect::<Vec<_>>()
    };
    table::lines(&[
        Column::figures(
            "block size below",
            column(&|size| Bytes(size.below).to_string()),
        ),
        Column::figures("blocks", column(&|size| words::grouped(size.blocks))),
        Column::figures("bytes", column(&|size| Bytes(size.bytes).to_string())),
        Column::text("", column(&|size| bar(size.blocks, most))),
    ])
}

/// Returns the reason why the figures of the untimed run are missing, or a reference to the
/// document that explains them.
fn remarks(row: &EntrantResult) -> String {
    match &row.evidence {
        Some(_) => "How each figure is measured, and what it misses: docs/evidence.md.".to_owned(),
        None => {
            "No run followed its blocks. Such runs cover the baseline and the leading entrant, \
                 and others while untimed work takes at most a third of the race's time."
                .to_owned()
        }
    }
}
