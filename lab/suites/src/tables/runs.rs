//! Tables that summarise the runs of one race.

use heapdrome_schema::Member;
use heapdrome_statistics::{mean, standard_deviation};

use super::{NONE, Parts, interval, number, racing, rule_of};
use crate::Suite;
use crate::entrants::{Span, compare, figure_of};
use crate::figures::of_cell;
use crate::table_plan::Unit;

/// Makes a table of the mean, deviation, minimum and maximum of the wall time, and of the mean user
/// and system time, as in the output of hyperfine.
pub(super) fn runs(suite: &Suite, cell: &str, members: &[&Member]) -> Option<Parts> {
    let member = *of_cell(members, &suite.name, cell).first()?;
    let heads = [
        "allocator",
        "mean [s]",
        "σ [s]",
        "user [s]",
        "system [s]",
        "min [s]",
        "max [s]",
        "runs",
    ];
    let row = |(entrant, allocator): (&crate::Entrant, &str)| {
        let wall = figure_of(member, allocator, "wall_s")?;
        let of_mean = |figure| figure_of(member, allocator, figure).and_then(|all| mean(&all));
        let known = || wall.iter().copied().filter(|sample| sample.is_finite());
        let cell = |value: Option<f64>| value.map_or_else(|| NONE.to_owned(), number);
        Some(vec![
            entrant.label(),
            cell(mean(&wall)),
            cell(standard_deviation(&wall)),
            cell(of_mean("user_s")),
            cell(of_mean("system_s")),
            cell(known().reduce(f64::min)),
            cell(known().reduce(f64::max)),
            known().count().to_string(),
        ])
    };
    let rows = racing(suite).filter_map(row).collect();
    Some((heads.map(str::to_owned).to_vec(), rows, Vec::new()))
}

/// Makes a table of the mean and the variance of a figure, with one row for each allocator.
pub(super) fn variance(
    suite: &Suite,
    cell: &str,
    figure: &str,
    unit: Unit,
    members: &[&Member],
) -> Option<Parts> {
    let member = *of_cell(members, &suite.name, cell).first()?;
    let sign = unit.sign();
    let heads = vec![
        "allocator".to_owned(),
        format!("mean [{sign}]"),
        format!("variance [{sign}²]"),
        "runs".to_owned(),
    ];
    let row = |(entrant, allocator): (&crate::Entrant, &str)| {
        let own = figure_of(member, allocator, figure)?;
        let own: Vec<f64> = own.iter().map(|sample| sample / unit.size()).collect();
        let variance = standard_deviation(&own).map(|deviation| deviation * deviation);
        let runs = own.iter().filter(|sample| sample.is_finite()).count();
        Some(vec![
            entrant.label(),
            number(mean(&own)?),
            variance.map_or_else(|| NONE.to_owned(), number),
            runs.to_string(),
        ])
    };
    let rows = racing(suite).filter_map(row).collect();
    Some((heads, rows, Vec::new()))
}

/// Makes a table of the savings of each rival over the baseline, in percent. A negative saving is
/// an increase.
pub(super) fn savings(
    suite: &Suite,
    cell: &str,
    figures: &[String],
    members: &[&Member],
) -> Option<Parts> {
    let member = *of_cell(members, &suite.name, cell).first()?;
    let rule = rule_of(member);
    let baseline = &member.result.baseline;
    let saved = |allocator: &str, figure: &str| {
        let own = figure_of(member, allocator, figure)?;
        let base = figure_of(member, baseline, figure)?;
        let percent = |ratio: f64| (1.0 - ratio) * 100.0;
        let both = [allocator, baseline.as_str()];
        Some(match compare(member, &rule, both, figure, Span::Whole) {
            Some(found) => interval(
                percent(found.ratio),
                percent(found.high),
                percent(found.low),
            ),
            None => number(percent(mean(&own)? / mean(&base)?)),
        })
    };
    let head = |figure: &String| {
        let name = figure.trim_end_matches("_s").trim_end_matches("_bytes");
        format!("{} saved [%]", name.replace('_', " "))
    };
    let mut heads = vec!["allocator".to_owned()];
    heads.extend(figures.iter().map(head));
    let rivals = racing(suite).filter(|(_, allocator)| allocator != baseline);
    let row = |(entrant, allocator): (&crate::Entrant, &str)| {
        member.result.row(allocator)?;
        let cells = figures.iter().map(|figure| saved(allocator, figure));
        let mut row = vec![entrant.label()];
        row.extend(cells.map(|cell| cell.unwrap_or_else(|| NONE.to_owned())));
        Some(row)
    };
    let rows = rivals.filter_map(row).collect();
    Some((heads, rows, Vec::new()))
}
