//! Degradation: the cost of parallel work beyond the cost of the additional data.

use heapdrome_schema::Member;
use heapdrome_statistics::{Interval, mean, ratio_of_means};

use super::{Parts, interval, number, racing};
use crate::Suite;
use crate::entrants::{ALPHA, figure_of, first_rounds_of};
use crate::figures::of_cell;

/// Returns the ratio of the large cell's data to the small cell's, as measured under the first
/// allocator whose valid rows have the figure in both cells.
pub(crate) fn data_ratio(suite: &Suite, pair: [&Member; 2], size: &str) -> Option<f64> {
    racing(suite).find_map(|(_, allocator)| {
        let [large, small] =
            pair.map(|member| figure_of(member, allocator, size).and_then(|all| mean(&all)));
        let (large, small) = (large?, small?);
        (small > 0.0).then_some(large / small)
    })
}

/// Returns `time(large) / time(small) / (size(large) / size(small))` of an allocator, with its
/// interval at `confidence`.
pub(crate) fn degradation(
    pair: [&Member; 2],
    allocator: &str,
    data_ratio: f64,
    confidence: f64,
) -> Option<Interval> {
    let [large, small] = pair.map(|member| first_rounds_of(member, allocator, "wall_s"));
    let found = ratio_of_means(&large?, &small?, confidence)?;
    Some(found.scaled(1.0 / data_ratio))
}

/// Returns the first race of the large cell and that of the small cell; `None` if either cell has
/// no race.
pub(crate) fn pair<'a>(
    suite: &Suite,
    [large, small]: [&str; 2],
    members: &[&'a Member],
) -> Option<[&'a Member; 2]> {
    let first = |cell| of_cell(members, &suite.name, cell).first().copied();
    Some([first(large)?, first(small)?])
}

/// Makes the table of degradations, with one row for each allocator.
pub(super) fn table(
    suite: &Suite,
    cells: [&String; 2],
    size: &str,
    members: &[&Member],
) -> Option<Parts> {
    let pair = pair(suite, cells.map(String::as_str), members)?;
    let ratio = data_ratio(suite, pair, size)?;
    let row = |(entrant, allocator): (&crate::Entrant, &str)| {
        let found = degradation(pair, allocator, ratio, 1.0 - ALPHA)?;
        let cell = interval(found.estimate, found.low, found.high);
        Some(vec![entrant.label(), cell])
    };
    let rows = racing(suite).filter_map(row).collect();
    let note = format!(
        "the data of {} is {} times that of {}, as measured; each interval holds with 95% on its own",
        cells[0],
        number(ratio),
        cells[1]
    );
    let heads = vec!["allocator".to_owned(), "degradation".to_owned()];
    Some((heads, rows, vec![note]))
}
