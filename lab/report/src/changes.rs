//! The changes from one result to another, as text for a terminal and as Markdown.

use heapdrome_schema::{
    Change, Changes, Comparison, Factor, Outcome, PEAK_RSS, RacePair, Verdict, WALL,
};

use crate::entrant::{OPERATIONS, OVERHEAD, PEAK_TREE};
use crate::foreign;
use crate::markdown::{self, Markdown, escaped};
use crate::reproduce;
use crate::table::{self, Column};
use crate::terminal::{Page, Terminal};
use crate::words::{self, NONE};
use crate::{Exporter, ReportError};

/// Text for a figure for which no change was shown.
const NO_CHANGE: &str = "no change shown";

/// Keys and names of the main figures, in the order of their tables. The tables of metrics follow.
const TOLD: [(&str, &str); 6] = [
    (WALL, "wall time"),
    ("cpu_s", "processor time"),
    (OPERATIONS, "operations per CPU second"),
    (PEAK_RSS, "peak RSS"),
    (PEAK_TREE, "peak of the process tree"),
    (OVERHEAD, "overhead"),
];

/// Keys of figures that are part of the JSON, but appear in no table.
const UNTOLD: [&str; 6] = [
    "user_s",
    "system_s",
    "minor_faults",
    "major_faults",
    "voluntary_switches",
    "involuntary_switches",
];

/// Maximum number of metrics that get a table. If there are more, none gets one.
const MOST_METRICS: usize = 6;

impl Exporter<Changes> for Terminal {
    fn export(&self, changes: &Changes) -> Result<Vec<u8>, ReportError> {
        Ok(in_columns(changes, *self).into_bytes())
    }
}

impl Exporter<Changes> for Markdown {
    fn export(&self, changes: &Changes) -> Result<Vec<u8>, ReportError> {
        Ok(in_markdown(changes).into_bytes())
    }
}

fn in_columns(changes: &Changes, terminal: Terminal) -> String {
    let mut page = Page::new(terminal);
    page.section("Old", &side(&changes.old));
    page.section("New", &side(&changes.new));
    for pair in &changes.pairs {
        page.heading(&foreign::shorten(&headline(pair), terminal.width.max(40)));
        let mut tables = tables(pair);
        if changes.pairs.len() > 1 {
            // With several pairs, the terminal shows only the first table of each pair. The
            // Markdown contains all tables, and the conclusion below lists the main figures that
            // changed.
            tables.truncate(1);
        }
        for (heading, rows) in tables {
            page.heading(&foreign::shorten(&heading, terminal.width.max(40)));
            let choices = [(24, true), (16, true), (13, true), (24, false), (10, false)];
            let choices = choices.map(|(name, factors)| columns(changes, &rows, name, factors));
            for line in
                table::first_that_fits(choices.into_iter(), terminal.width.max(40), page.paint).1
            {
                page.line(&line);
            }
        }
        page.list("Not compared", lines(&pair.not_compared));
        page.list("Not alike", lines(&pair.differs));
    }
    page.section("Conclusion", &conclusion(changes));
    page.list("Conditions", conditions(changes));
    page.list("In one result only", lines(&changes.unmatched));
    page.list("Rests on", rests_on(changes));
    page.text.trim_start().to_owned()
}

fn in_markdown(changes: &Changes) -> String {
    let mut page = markdown::Page(String::new());
    page.paragraph("### What changed");
    page.labelled("Old", &side(&changes.old));
    page.labelled("New", &side(&changes.new));
    page.labelled("Conclusion", &conclusion(changes));
    let judged = conditions(changes)
        .into_iter()
        .map(|lines| lines.join(": "));
    page.list("Conditions", &judged.collect::<Vec<_>>());
    for pair in &changes.pairs {
        page.paragraph(&format!("#### {}", escaped(&headline(pair))));
        for (heading, rows) in tables(pair) {
            page.paragraph(&format!("**{}**:", escaped(&heading)));
            page.table(&columns(changes, &rows, usize::MAX, true));
        }
        page.list("Not compared", &lines(&pair.not_compared));
        page.list("Not alike", &lines(&pair.differs));
    }
    page.list("In one result only", &lines(&changes.unmatched));
    page.list("Rests on", &rests_on(changes));
    page.0
}

fn lines(texts: &[String]) -> Vec<String> {
    texts.iter().map(|text| foreign::line(text)).collect()
}

fn side(result: &heapdrome_schema::ComparedResult) -> String {
    format!(
        "{} ({} by heapdrome {})",
        foreign::line(&result.file),
        foreign::line(&result.started),
        foreign::line(&result.heapdrome)
    )
}

/// Formats a headline such as `threads=2: rptest threads=2, 12 old and 10 new rounds`.
fn headline(pair: &RacePair) -> String {
    let command = reproduce::for_the_eye(&pair.command);
    let cell = pair.cell.as_ref();
    let cell = cell.map_or(String::new(), |cell| format!("{}: ", foreign::line(cell)));
    format!(
        "{cell}{}, {} old and {} new rounds",
        foreign::shorten(&command, 60),
        pair.old_rounds,
        pair.new_rounds
    )
}

/// Returns the heading and the rows of each figure's table.
fn tables(pair: &RacePair) -> Vec<(String, Vec<&Change>)> {
    let rows = |figure: &str| -> Vec<&Change> {
        let all = pair.changes.iter();
        all.filter(|change| change.figure == figure).collect()
    };
    let mut found: Vec<_> = TOLD
        .iter()
        .map(|(figure, name)| (words::capital(name), rows(figure)))
        .collect();
    let metrics = metrics(pair);
    if metrics.len() <= MOST_METRICS {
        let table = |name: &&str| (foreign::line(name), rows(name));
        found.extend(metrics.iter().map(table));
    }
    found.retain(|(_, rows)| !rows.is_empty());
    found
}

/// Returns the names of the pair's metrics: figures that are neither in [`TOLD`] nor in [`UNTOLD`].
fn metrics(pair: &RacePair) -> Vec<&str> {
    let common = |name: &str| TOLD.iter().any(|(told, _)| *told == name) || UNTOLD.contains(&name);
    let mut names: Vec<&str> = Vec::new();
    for change in &pair.changes {
        if !common(&change.figure) && !names.contains(&change.figure.as_str()) {
            names.push(&change.figure);
        }
    }
    names
}

/// Returns the columns of one figure's table: names of at most `name` characters, both medians, the
/// factors if `factors` is set, and the verdict. If the results come from different machines, omits
/// the factor `new / old`.
fn columns(changes: &Changes, rows: &[&Change], name: usize, factors: bool) -> Vec<Column> {
    let all = |tell: &dyn Fn(&Change) -> String| -> Vec<String> {
        rows.iter().map(|change| tell(change)).collect()
    };
    let names = all(&|change| foreign::short_name(&change.allocator, name));
    let amount = |change: &Change, value| words::amount(&change.figure, value);
    let mut columns = vec![
        Column::text("allocator", names),
        Column::figures("old", all(&|change| amount(change, change.old))),
        Column::figures("new", all(&|change| amount(change, change.new))),
    ];
    if factors && changes.same_machine {
        let cells = all(&|change| change.itself.as_ref().map_or(NONE.to_owned(), factor));
        columns.push(Column::figures("new / old", cells));
    }
    if factors {
        let cells = all(&|change| {
            change
                .beside_baseline
                .as_ref()
                .map_or(NONE.to_owned(), factor)
        });
        columns.push(Column::figures("relative to baseline", cells));
    }
    columns.push(Column::text("verdict", all(&verdict)));
    columns
}

/// Formats a factor such as `1.032 (1.010 to 1.055)`.
fn factor(factor: &Factor) -> String {
    let Factor { ratio, low, high } = factor;
    format!("{ratio:.3} ({low:.3} to {high:.3})")
}

/// Formats the verdict on a change, without its interval.
fn verdict(change: &Change) -> String {
    match (change.verdict, counting(change)) {
        (Some(Verdict::Undecided), _) => NO_CHANGE.to_owned(),
        (Some(verdict), Some(factor)) => words::comparison(&compared(verdict, factor), false),
        _ if change.itself.is_some() => "not judged".to_owned(),
        _ => "no interval: too few runs".to_owned(),
    }
}

/// Returns the factor to show: the change of the figure itself, or else the change of its ratio to
/// the baseline.
fn counting(change: &Change) -> Option<Factor> {
    change.itself.or(change.beside_baseline)
}

fn compared(verdict: Verdict, factor: Factor) -> Comparison {
    Comparison {
        ratio: factor.ratio,
        low: factor.low,
        high: factor.high,
        rounds: 0,
        verdict,
        rounds_to_show_one_percent: None,
        misses: Vec::new(),
    }
}

/// Formats the changes that were shown among the figures of [`TOLD`], and the number of these
/// figures that were judged.
fn conclusion(changes: &Changes) -> String {
    let mut shown = Vec::new();
    let mut judged = 0;
    for pair in &changes.pairs {
        let place = pair.cell.as_ref();
        let place = place.map_or(String::new(), |cell| format!(" in {}", foreign::line(cell)));
        let main = |change: &&Change| TOLD.iter().any(|(figure, _)| *figure == change.figure);
        for change in pair.changes.iter().filter(main) {
            let (Some(verdict), Some(factor)) = (change.verdict, counting(change)) else {
                continue;
            };
            if verdict == Verdict::NotJudged {
                continue;
            }
            judged += 1;
            if verdict != Verdict::Undecided {
                let name = TOLD.iter().find(|(figure, _)| *figure == change.figure);
                shown.push(format!(
                    "{}{place}: {} {}",
                    foreign::name(&change.allocator),
                    name.map_or("", |(_, name)| name),
                    words::comparison(&compared(verdict, factor), true)
                ));
            }
        }
    }
    if judged == 0 {
        return "No verdict: an interval needs five rounds in each race.".to_owned();
    }
    let figures = words::count(judged, "figure");
    if shown.is_empty() {
        return format!("No change was shown in any of {figures}.");
    }
    format!(
        "{} of {figures} changed: {}.",
        shown.len(),
        shown.join("; ")
    )
}

/// Lists the conditions with their outcomes, each followed by its evidence.
fn conditions(changes: &Changes) -> Vec<Vec<String>> {
    let told = |judged: &heapdrome_schema::Judged| {
        let outcome = match judged.outcome {
            Outcome::Confirmed => "confirmed",
            Outcome::RuledOut => "ruled out",
            Outcome::Undecided => "undecided",
        };
        let mut told = vec![format!("{}: {outcome}", foreign::line(&judged.condition))];
        told.extend(lines(&judged.because));
        told
    };
    changes.conditions.iter().map(told).collect()
}

fn rests_on(changes: &Changes) -> Vec<String> {
    let mut told = lines(&changes.rests_on);
    told.push(
        "\"Relative to baseline\" is the change divided by the baseline's change, so that a faster or slower \
         machine has no effect. The baseline's own time is therefore not judged."
            .to_owned(),
    );
    told.push(format!(
        "The risk that any verdict on one figure is false is at most {}, over all allocators and races.",
        words::fraction(changes.alpha)
    ));
    if changes
        .pairs
        .iter()
        .any(|pair| metrics(pair).len() > MOST_METRICS)
    {
        told.push(
            "The JSON contains the other figures of the workload, and conditions may name them."
                .to_owned(),
        );
    }
    told
}
