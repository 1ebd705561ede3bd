//! Tables in the document's form. Each kind of table has its own module; this one has their common
//! parts.

mod burst;
mod ccdf;
mod counters;
mod reads;
mod recycle;
mod throughput;

use heapdrome_schema::{Distribution, Nanoseconds, PagingCell as Cell, PagingReport, Table};
use heapdrome_statistics::median;

use crate::words::{rate, time};

pub use burst::burst_table;
pub use ccdf::ccdf_table;
pub use counters::counters_table;
pub use reads::{ratio_table, scaling_table, strategy_table, summary_table};
pub use recycle::{realloc_scaling_table, realloc_table, recycle_table};
pub use throughput::{kept_table, pair_table, published_table, throughput_table};

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

/// Returns the median of a figure over the rounds.
fn median_of(cell: &Cell, figure: &str) -> Option<f64> {
    median(&cell.figures(figure))
}

fn rate_of(cell: &Cell, figure: &str) -> String {
    or_dash(median_of(cell, figure).map(rate))
}

/// Formats the minimum and the maximum of the values, one for each round. Returns a dash for fewer
/// than two values.
fn range(mut values: Vec<f64>, told: impl Fn(f64) -> String) -> String {
    values.sort_unstable_by(f64::total_cmp);
    or_dash(match values.as_slice() {
        [] | [_] => None,
        [first, .., last] => Some(format!("{} to {}", told(*first), told(*last))),
    })
}

/// Formats the minimum and the maximum rate over the rounds.
fn range_of(cell: &Cell, figure: &str) -> String {
    range(cell.figures(figure), rate)
}

/// Formats the minimum and the maximum over the rounds of a property of a distribution.
fn range_in(
    cell: &Cell,
    distribution: &str,
    value: impl Fn(&Distribution) -> Option<f64>,
    told: impl Fn(f64) -> String,
) -> String {
    let of = |report: &PagingReport| value(report.distributions.get(distribution)?);
    range(cell.sound().filter_map(of).collect(), told)
}

/// Formats the minimum and the maximum of a quantile over the rounds.
fn range_of_quantile(cell: &Cell, distribution: &str, share: f64) -> String {
    let value = |times: &Distribution| Some(times.quantile(share)?.0 as f64);
    range_in(cell, distribution, value, time)
}

fn quantile(distribution: &Distribution, share: f64) -> String {
    let time = distribution.quantile(share);
    or_dash(time.as_ref().map(Nanoseconds::to_string))
}

fn tail(distribution: &Distribution, shares: &[f64]) -> Vec<String> {
    shares
        .iter()
        .map(|share| quantile(distribution, *share))
        .collect()
}
