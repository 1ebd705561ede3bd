//! The tables of a suite.

mod against;
mod degradation;
mod fast_path;
mod figures;
mod runs;
mod sweep;
mod text;

use heapdrome_schema::{Member, MisuseRun, Table};
use heapdrome_statistics::Rule;

use crate::entrants::{Span, compare, figure_of, rule};
use crate::table_plan::{Makes, TablePlan};
use crate::{Entrant, PublishedTable, Suite, misuse};

pub(crate) use degradation::{data_ratio, degradation, pair};
pub(crate) use text::{NONE, interval, number};

/// Makes the tables of a suite, except those without rows. Each published table follows the
/// measured table that it names in `after`; those without `after` come last. A published table is
/// omitted if the table that it names is not made. Returns an empty list if no race of the suite
/// was run.
pub(crate) fn make(suite: &Suite, members: &[&Member], runs: &[MisuseRun]) -> Vec<Table> {
    let mut tables = Vec::new();
    if !members.iter().any(|member| of_suite(suite, member)) {
        return tables;
    }
    let mut shown = vec![false; suite.published.len()];
    let mut publish = |tables: &mut Vec<Table>, wanted: &dyn Fn(&PublishedTable) -> bool| {
        for (published, shown) in suite.published.iter().zip(&mut shown) {
            if !*shown && wanted(published) {
                *shown = true;
                let mut table = published.table();
                table.title = format!("{}: {}", suite.name, table.title);
                tables.push(table);
            }
        }
    };
    for plan in &suite.tables {
        let made = one(suite, plan, members, runs).filter(|table| !table.rows.is_empty());
        if let Some(mut table) = made {
            table.title = format!("{}: {}", suite.name, table.title);
            tables.push(table);
            publish(&mut tables, &|one| one.after.as_ref() == Some(&plan.title));
        }
    }
    publish(&mut tables, &|one| one.after.is_none());
    tables
}

fn of_suite(suite: &Suite, member: &Member) -> bool {
    let name = member.cell.split_once('/').map(|(suite, _)| suite);
    name == Some(suite.name.as_str())
}

fn one(suite: &Suite, plan: &TablePlan, members: &[&Member], runs: &[MisuseRun]) -> Option<Table> {
    let (heads, rows, notes) = match &plan.makes {
        Makes::Runs { cell } => runs::runs(suite, cell, members),
        Makes::Variance { cell, figure, unit } => {
            runs::variance(suite, cell, figure, *unit, members)
        }
        Makes::Savings { cell, figures } => runs::savings(suite, cell, figures, members),
        Makes::Figures {
            cell,
            figures,
            shown,
        } => figures::table(suite, cell, figures, *shown, members),
        Makes::Against(plan) => against::ratios(suite, plan, members),
        Makes::Standing(plan) => against::standing(suite, plan, members),
        Makes::Means(plan) => against::means(suite, plan, members),
        Makes::Sweep {
            cell,
            figure,
            shown,
        } => sweep::sweep(suite, cell, figure, *shown, members),
        Makes::Cells {
            cells,
            figure,
            shown,
        } => sweep::cells(suite, cells, figure, *shown, members),
        Makes::Largest {
            cells,
            figure,
            of,
            unit,
        } => sweep::largest(suite, cells, (figure, *of, *unit), members),
        Makes::Degradation { large, small, size } => {
            degradation::table(suite, [large, small], size, members)
        }
        Makes::FastPath => Some(fast_path::table()),
        Makes::Misuse => {
            let (heads, rows) = misuse::scores(runs);
            Some((heads, rows, Vec::new()))
        }
        Makes::Listed { heads, rows } => Some((heads.clone(), rows.clone(), Vec::new())),
    }?;
    Some(Table {
        title: plan.title.clone(),
        published: None,
        heads,
        rows,
        notes: plan.notes.iter().cloned().chain(notes).collect(),
    })
}

/// Heads, rows and notes of a table.
type Parts = (Vec<String>, Vec<Vec<String>>, Vec<String>);

/// Returns the entrants of a suite that have an allocator, beginning with the document's.
fn racing(suite: &Suite) -> impl Iterator<Item = (&Entrant, &str)> {
    let own = |added| {
        let entrants = suite.entrants.iter();
        entrants.filter(move |one| one.added == added)
    };
    let all = own(false).chain(own(true));
    all.filter_map(|one| Some((one, one.allocator.as_deref()?)))
}

/// Returns the decision rule for comparing every rival of a race with the baseline. The baseline
/// and its twin do not count as rivals.
fn rule_of(member: &Member) -> Rule {
    rule(member.result.entrants.len().saturating_sub(2))
}

/// Formats the ratio of an allocator's figure to the baseline's, within the rounds of a race. Its
/// interval is included if there are enough rounds. With `inverse`, the ratio is inverted. The
/// baseline itself has the ratio `1`. Returns `None` if either row is invalid or lacks the figure.
fn ratio_cell(
    member: &Member,
    rule: &Rule,
    (allocator, figure): (&str, &str),
    inverse: bool,
) -> Option<String> {
    let own = figure_of(member, allocator, figure)?;
    if allocator == member.result.baseline {
        return Some("1".to_owned());
    }
    let base = figure_of(member, &member.result.baseline, figure)?;
    let turn = |ratio: f64| if inverse { 1.0 / ratio } else { ratio };
    let both = [allocator, member.result.baseline.as_str()];
    Some(match compare(member, rule, both, figure, Span::Whole) {
        Some(found) => {
            let (mut low, mut high) = (turn(found.low), turn(found.high));
            if inverse {
                std::mem::swap(&mut low, &mut high);
            }
            interval(turn(found.ratio), low, high)
        }
        None => {
            let mean = |all: &[f64]| heapdrome_statistics::mean(all);
            number(turn(mean(&own)? / mean(&base)?))
        }
    })
}
