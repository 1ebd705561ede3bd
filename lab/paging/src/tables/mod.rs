//! Tables as the document prints them: one file for each kind of experiment, and here what they share.

mod ccdf;
mod counters;
mod reads;
mod recycling;
mod throughput;

use heapdrome_record::Table;

use crate::words::{rate, time};
use crate::{Cell, Distribution};

pub use ccdf::ccdf_table;
pub use counters::counters_table;
pub use reads::{ratio_table, scaling_table, strategy_table, summary_table};
pub use recycling::{realloc_scaling_table, realloc_table, recycle_table};
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
