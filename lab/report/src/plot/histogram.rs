//! Histograms of blocks by a quantity. Each step of the quantity has two columns: the share of its
//! blocks in all blocks, and the share of their bytes in all bytes.

use heapdrome_profile::{Amount, Digits};
use heapdrome_schema::Bytes;

use super::Plot;
use super::canvas::{self, Anchor, Label, WIDTH};
use super::coordinate::n;
use super::look::Look;
use super::node::{Node, filled, title};
use super::scale::Scale;
use crate::words::{fraction, grouped};

const ACROSS: [f64; 2] = [56.0, WIDTH - 12.0];
const UP: [f64; 2] = [220.0, 34.0];
const HEIGHT: f64 = 256.0;
/// Maximum number of labels below the columns.
const LABELS: usize = 9;

/// A drawing of a histogram.
pub(crate) struct Histogram<'a> {
    pub(crate) name: String,
    pub(crate) title: &'static str,
    pub(crate) caption: String,
    /// Label of the horizontal axis.
    pub(crate) quantity: &'static str,
    pub(crate) digits: &'a Digits,
}

impl Histogram<'_> {
    /// Returns the drawing, if there are blocks. `tell` formats a power of two in the unit of the
    /// quantity.
    pub(crate) fn plot(self, tell: impl Fn(u64) -> String) -> Option<Plot> {
        let total = self.digits.total();
        let steps = without_gaps(self.digits);
        if total.blocks == 0 {
            return None;
        }
        let part = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        let parts = |amount: &Amount| {
            [
                part(amount.blocks, total.blocks),
                part(amount.bytes, total.bytes),
            ]
        };
        let highest = steps.iter().flat_map(|(_, amount)| parts(amount));
        let up = Scale::linear([0.0, highest.fold(0.0, f64::max)], UP);
        let wide = (ACROSS[1] - ACROSS[0]) / steps.len() as f64;
        let step = |(place, (below, amount)): (usize, &(u64, Amount))| {
            let x = ACROSS[0] + wide * place as f64;
            pair(
                [x, wide.min(60.0)],
                &up,
                parts(amount),
                &says(&tell(*below), *amount),
            )
        };
        let every = steps.len().div_ceil(LABELS).max(1);
        let label = |(place, (below, _)): (usize, &(u64, Amount))| {
            let x = ACROSS[0] + wide * place as f64 + wide.min(60.0) / 2.0;
            ([x, UP[0] + 16.0], format!("<{}", tell(*below)))
        };
        let labels: Vec<_> = steps.iter().enumerate().step_by(every).map(label).collect();
        let body = Node::from([
            axes(&up),
            steps.iter().enumerate().map(step).collect(),
            canvas::faint_all(Anchor::Middle, &labels),
            canvas::faint([ACROSS[1], HEIGHT - 4.0], Anchor::End, self.quantity),
            key(),
        ]);
        let label = Label {
            name: self.name,
            title: self.title.to_owned(),
            description: described(&steps, total, tell),
        };
        Some(Plot::new(label, self.caption, HEIGHT, None, body))
    }
}

/// Returns all steps from the first one with blocks to the last, including empty steps.
fn without_gaps(digits: &Digits) -> Vec<(u64, Amount)> {
    let mut all: Vec<(u64, Amount)> = Vec::new();
    for (below, amount) in digits.steps() {
        while let Some((last, _)) = all.last().filter(|(last, _)| *last < below / 2) {
            all.push((last * 2, Amount::default()));
        }
        all.push((below, amount));
    }
    all
}

fn says(below: &str, amount: Amount) -> String {
    let (blocks, bytes) = (grouped(amount.blocks), Bytes(amount.bytes));
    format!("below {below}: {blocks} blocks, {bytes}")
}

/// Returns the two columns of one step.
fn pair([x, wide]: [f64; 2], up: &Scale, parts: [f64; 2], says: &str) -> Node {
    let gap = (wide * 0.1).min(4.0);
    let column = (wide - 2.0 * gap) / 2.0;
    let drawn = |(place, part): (usize, f64)| {
        let (left, top) = (x + gap + column * place as f64, up.at(part));
        let right = left + column;
        let shape = format!(
            "M{} {}V{}H{}V{}Z",
            n(left),
            n(UP[0]),
            n(top),
            n(right),
            n(UP[0])
        );
        let shape = filled(shape).holding(title(says));
        canvas::group("column ", Look::rival(place))
            .holding(shape)
            .into()
    };
    parts
        .into_iter()
        .enumerate()
        .filter(|(_, part)| *part > 0.0)
        .map(drawn)
        .collect()
}

fn axes(up: &Scale) -> Node {
    let ticks = up.round_ticks(5.0);
    let lines: Vec<f64> = ticks.iter().map(|tick| up.at(*tick)).collect();
    let told = |tick: &f64| {
        let told = if *tick > 0.0 {
            fraction(*tick)
        } else {
            "0".to_owned()
        };
        ([ACROSS[0] - 6.0, up.at(*tick) + 4.0], told)
    };
    Node::from([
        canvas::frame([ACROSS, UP], &[], &lines),
        canvas::faint_all(Anchor::End, &ticks.iter().map(told).collect::<Vec<_>>()),
    ])
}

fn key() -> Node {
    let entry = |(place, name): (usize, &str)| {
        let x = ACROSS[0] + 150.0 * place as f64;
        let shape = format!("M{} 8H{}V20H{}Z", n(x), n(x + 12.0), n(x));
        Node::from([
            canvas::group("key ", Look::rival(place))
                .holding(filled(shape))
                .into(),
            canvas::text([x + 18.0, 18.0], Anchor::Start, name),
        ])
    };
    let names = ["share of the blocks", "share of their bytes"];
    names.into_iter().enumerate().map(entry).collect()
}

fn described(steps: &[(u64, Amount)], total: Amount, tell: impl Fn(u64) -> String) -> String {
    let known = steps.iter().filter(|(_, amount)| amount.blocks > 0);
    let told = known.map(|(below, amount)| {
        let share = fraction(amount.blocks as f64 / total.blocks as f64);
        format!("{share} below {}", tell(*below))
    });
    told.collect::<Vec<_>>().join("; ")
}
