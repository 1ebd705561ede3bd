//! Bytes by the calls that led to them, as a flame graph. Each function is drawn below its caller,
//! and its width is proportional to its bytes (Gregg, "The Flame Graph", Communications of the ACM
//! 59, 2016).

use std::collections::BTreeMap;

use heapdrome_schema::Bytes;

use super::Plot;
use super::canvas::{self, Label, WIDTH};
use super::coordinate::n;
use super::look::Look;
use super::node::{Node, element, title};
use super::palette::COLOURS;
use crate::foreign;
use crate::words::fraction;

/// Height of a function's row.
const ROW: f64 = 17.0;
/// Maximum depth of the drawing, in functions.
const DEEPEST: usize = 48;
/// Minimum width of a drawn function, in units of the drawing. The value is small because the
/// reader can zoom in.
const NARROWEST: f64 = 0.2;
/// Average width of a letter.
const LETTER: f64 = 6.0;
/// Total width of the spaces on both sides of a name.
const BESIDE: f64 = 6.0;
/// Minimum number of letters for which a name is shown.
const LETTERS: usize = 3;
/// Maximum number of functions that the description names.
const DESCRIBED: usize = 5;

/// A function and the functions that it called, by name.
#[derive(Default)]
struct Call {
    bytes: u64,
    calls: BTreeMap<String, Call>,
}

impl Call {
    /// Adds a stack, the outermost function first.
    fn add<'a>(&mut self, names: impl Iterator<Item = &'a String>, bytes: u64) {
        let mut call = self;
        call.bytes = call.bytes.saturating_add(bytes);
        for name in names.take(DEEPEST) {
            call = call.calls.entry(name.clone()).or_default();
            call.bytes = call.bytes.saturating_add(bytes);
        }
    }

    /// Returns the number of rows that the functions below this one take. Functions with fewer than
    /// `least` bytes are not drawn.
    fn depth(&self, least: u64) -> usize {
        let drawn = self.calls.values().filter(|call| call.bytes >= least);
        drawn.map(|call| 1 + call.depth(least)).max().unwrap_or(0)
    }
}

/// Draws the bytes of stacks, whose functions are given innermost first. Successive calls of one
/// function are drawn as one. Returns `None` if no stack has bytes.
pub(crate) fn flame<'a>(
    label: [&str; 2],
    caption: &str,
    stacks: impl Iterator<Item = (&'a [String], u64)>,
) -> Option<Plot> {
    let mut all = Call::default();
    let mut innermost = BTreeMap::<&str, u64>::new();
    for (names, bytes) in stacks.filter(|(_, bytes)| *bytes > 0) {
        let runs = names.chunk_by(|name, caller| name == caller);
        all.add(runs.rev().map(|run| &run[0]), bytes);
        if let Some(name) = names.first() {
            *innermost.entry(name).or_default() += bytes;
        }
    }
    if all.bytes == 0 {
        return None;
    }
    let least = (all.bytes as f64 * NARROWEST / WIDTH).ceil() as u64;
    let height = ROW * (1 + all.depth(least)) as f64;
    let mut drawing = Drawing {
        total: all.bytes,
        least,
        nodes: Vec::new(),
    };
    drawing.one("all", &all, 0.0, 0);
    drawing.below(&all, 0.0, 1);
    let label = Label {
        name: label[0].to_owned(),
        title: label[1].to_owned(),
        description: described(innermost, all.bytes),
    };
    let body = drawing.nodes.into_iter().collect();
    Some(Plot::new(label, caption.to_owned(), height, None, body))
}

fn described(innermost: BTreeMap<&str, u64>, total: u64) -> String {
    let mut all: Vec<_> = innermost.into_iter().collect();
    all.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let told = all
        .iter()
        .take(DESCRIBED)
        .map(|(name, bytes)| format!("{} in {name}", fraction(*bytes as f64 / total as f64)));
    told.collect::<Vec<_>>().join("; ")
}

/// A flame graph that is being drawn.
struct Drawing {
    total: u64,
    /// Minimum number of bytes of a function that is drawn.
    least: u64,
    nodes: Vec<Node>,
}

impl Drawing {
    fn width(&self, bytes: u64) -> f64 {
        WIDTH * (bytes as f64 / self.total as f64)
    }

    /// Draws the functions that a function called, and those below them, from position `left` to
    /// the right.
    fn below(&mut self, call: &Call, mut left: f64, row: usize) {
        for (name, called) in &call.calls {
            if called.bytes >= self.least {
                self.one(name, called, left, row);
                self.below(called, left, row + 1);
            }
            left += self.width(called.bytes);
        }
    }

    fn one(&mut self, name: &str, call: &Call, left: f64, row: usize) {
        let (top, wide) = (ROW * row as f64, self.width(call.bytes));
        let share = fraction(call.bytes as f64 / self.total as f64);
        let says = format!("{name}: {}, {share}", Bytes(call.bytes));
        let shape = element("rect")
            .with("x", n(left))
            .with("y", n(top))
            .with("width", n((wide - 0.5).max(0.3)))
            .with("height", n(ROW - 1.0))
            .with("fill", "currentColor")
            .with("fill-opacity", "0.3")
            .holding(title(&says));
        // The page's script zooms with these exact positions.
        let mut group = canvas::group("call ", Look::rival(hue(name)))
            .with("data-left", format!("{left:.3}"))
            .with("data-right", format!("{:.3}", left + wide))
            .holding(shape);
        let letters = ((wide - BESIDE) / LETTER).max(0.0) as usize;
        if letters >= LETTERS {
            let text = element("text")
                .with("x", n(left + BESIDE / 2.0))
                .with("y", n(top + ROW - 5.0))
                .with("font-size", "10")
                .with("pointer-events", "none");
            group = group.holding(text.holding(foreign::shorten(name, letters).as_str()));
        }
        self.nodes.push(group.into());
    }
}

/// Returns a hue for a name. A function has the same hue in every drawing.
fn hue(name: &str) -> usize {
    spread(name.as_bytes()) as usize % COLOURS.len()
}

/// Returns the 32-bit FNV-1a hash of `bytes`.
fn spread(bytes: &[u8]) -> u32 {
    let step = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    bytes.iter().fold(0x811c_9dc5, step)
}
