//! Table of several figures of one race.

use heapdrome_schema::Member;

use super::sweep::failures;
use super::{NONE, Parts, racing, rule_of};
use crate::Suite;
use crate::figures::of_cell;
use crate::table_plan::Shown;

/// Makes the table, with one row for each allocator and one column for each figure.
pub(super) fn table(
    suite: &Suite,
    cell: &str,
    figures: &[String],
    shown: Shown,
    members: &[&Member],
) -> Option<Parts> {
    let member = *of_cell(members, &suite.name, cell).first()?;
    let rule = rule_of(member);
    let head = |figure: &String| figure.trim_end_matches("_bytes").replace('_', " ");
    let heads = std::iter::once("allocator".to_owned()).chain(figures.iter().map(head));
    let row = |(entrant, allocator): (&crate::Entrant, &str)| {
        let of = |figure: &String| shown.cell(member, &rule, allocator, figure);
        let cells: Vec<Option<String>> = figures.iter().map(of).collect();
        let any = cells.iter().any(Option::is_some);
        let cells = cells
            .into_iter()
            .map(|cell| cell.unwrap_or(NONE.to_owned()));
        any.then(|| std::iter::once(entrant.label()).chain(cells).collect())
    };
    let rows = racing(suite).filter_map(row).collect();
    Some((heads.collect(), rows, failures(suite, &[member])))
}
