//! Tables over several races, of the values of a parameter or of several cells.

use heapdrome_schema::Member;
use heapdrome_statistics::{Rule, mean};

use super::{NONE, Parts, number, racing, ratio_cell, rule_of};
use crate::Suite;
use crate::entrants::figure_of;
use crate::figures::{missing, of_cell};
use crate::table_plan::{Shown, Unit};

/// Makes the table with one row for each allocator and one column for each value of a cell's
/// parameter.
pub(super) fn sweep(
    suite: &Suite,
    cell: &str,
    figure: &str,
    shown: Shown,
    members: &[&Member],
) -> Option<Parts> {
    let of_cell = of_cell(members, &suite.name, cell);
    let parameter = suite.cell(cell)?.sweep.as_ref().map(|one| &one.parameter);
    let head = |member: &&Member| match (parameter, member.swept) {
        (Some(parameter), Some(value)) => format!("{parameter} = {value}"),
        _ => cell.to_owned(),
    };
    let heads = std::iter::once("allocator".to_owned());
    let heads = heads.chain(of_cell.iter().map(head)).collect();
    let rules: Vec<Rule> = of_cell.iter().map(|member| rule_of(member)).collect();
    let mut rows = Vec::new();
    for (entrant, allocator) in racing(suite) {
        let own = of_cell.iter().zip(&rules);
        let cells: Vec<Option<String>> = own
            .map(|(member, rule)| shown.cell(member, rule, allocator, figure))
            .collect();
        if cells.iter().any(Option::is_some) {
            let cells = cells
                .into_iter()
                .map(|cell| cell.unwrap_or(NONE.to_owned()));
            rows.push(std::iter::once(entrant.label()).chain(cells).collect());
        }
    }
    Some((heads, rows, failures(suite, &of_cell)))
}

/// Makes the table with one row for each race of the cells and one column for each allocator.
pub(super) fn cells(
    suite: &Suite,
    cells: &[String],
    figure: &str,
    shown: Shown,
    members: &[&Member],
) -> Option<Parts> {
    let mut found = Vec::new();
    for name in cells {
        found.extend(of_cell(members, &suite.name, name));
    }
    let entrants: Vec<_> = racing(suite)
        .filter(|(_, allocator)| {
            let counts = |member: &&Member| figure_of(member, allocator, figure).is_some();
            found.iter().any(counts)
        })
        .collect();
    let heads = std::iter::once(String::new());
    let heads = heads.chain(entrants.iter().map(|(entrant, _)| entrant.label()));
    let mut rows = Vec::new();
    for member in &found {
        let rule = rule_of(member);
        let of = |(_, allocator): &(_, &str)| shown.cell(member, &rule, allocator, figure);
        let cells: Vec<Option<String>> = entrants.iter().map(of).collect();
        if cells.iter().any(Option::is_some) {
            let cells = cells
                .into_iter()
                .map(|cell| cell.unwrap_or(NONE.to_owned()));
            rows.push(std::iter::once(name(member)).chain(cells).collect());
        }
    }
    Some((heads.collect(), rows, failures(suite, &found)))
}

/// Makes the table of the maximum of a figure over the first runs of each cell, with one row for
/// each allocator.
pub(super) fn largest(
    suite: &Suite,
    cells: &[String],
    (figure, of, unit): (&str, usize, Unit),
    members: &[&Member],
) -> Option<Parts> {
    let found: Vec<(&String, &Member)> = cells
        .iter()
        .filter_map(|cell| Some((cell, *of_cell(members, &suite.name, cell).first()?)))
        .collect();
    let sign = unit.sign();
    let heads = std::iter::once("allocator".to_owned());
    let heads = heads.chain(found.iter().map(|(cell, _)| format!("{cell} [{sign}]")));
    let mut rows = Vec::new();
    for (entrant, allocator) in racing(suite) {
        let cell = |member: &Member| {
            let own = figure_of(member, allocator, figure)?;
            let known = own.into_iter().filter(|sample| sample.is_finite());
            let largest = known.take(of).reduce(f64::max)?;
            // Show two decimals, as the documents do. Values below 1 occur in small forms and need
            // more decimals.
            let shown = largest / unit.size();
            Some(match shown < 1.0 {
                true => number(shown),
                false => format!("{shown:.2}"),
            })
        };
        let cells: Vec<_> = found.iter().map(|(_, member)| cell(member)).collect();
        if cells.iter().any(Option::is_some) {
            let cells = cells
                .into_iter()
                .map(|cell| cell.unwrap_or(NONE.to_owned()));
            rows.push(std::iter::once(entrant.label()).chain(cells).collect());
        }
    }
    Some((heads.collect(), rows, Vec::new()))
}

impl Shown {
    /// Formats the figure of an allocator in a race.
    pub(super) fn cell(
        self,
        member: &Member,
        rule: &Rule,
        allocator: &str,
        figure: &str,
    ) -> Option<String> {
        let of_mean = || mean(&figure_of(member, allocator, figure)?);
        match self {
            Self::Ratio => ratio_cell(member, rule, (allocator, figure), false),
            Self::Inverse => ratio_cell(member, rule, (allocator, figure), true),
            Self::Millions => of_mean().map(|value| number(value / 1e6)),
            Self::Plain => of_mean().map(number),
            Self::Mib => of_mean().map(|value| number(value / Unit::MiB.size())),
            Self::PercentAboveOne => of_mean().map(|value| format!("{:.1}", (value - 1.0) * 100.0)),
        }
    }
}

/// Returns the name of a member's cell, without the suite, and its swept value.
pub(super) fn name(member: &Member) -> String {
    let cell = member.cell.rsplit('/').next().unwrap_or_default();
    match member.swept {
        Some(value) => format!("{cell}, {value}"),
        None => cell.to_owned(),
    }
}

/// Lists the entrants that raced but have no valid row.
pub(super) fn failures(suite: &Suite, members: &[&Member]) -> Vec<String> {
    let mut notes = Vec::new();
    for member in members {
        for (entrant, allocator) in racing(suite) {
            let raced = member.result.entrants.iter();
            let out = raced.filter(|row| row.allocator == allocator);
            if out
                .into_iter()
                .any(|row| row.status != heapdrome_schema::Status::Ok)
            {
                let why = missing(&member.result, allocator);
                notes.push(format!("{} {why} in {}", entrant.label(), name(member)));
            }
        }
    }
    notes
}
