//! The plots of a result: drawn once as SVG, for the page and as files.
//!
//! The drawings are trees of elements (`node`), because what the page does with them needs classes,
//! groups and descriptions that a plotting library's SVG has not: rows that are sorted and hidden,
//! colours of a dark page, text for a screen reader. In a file the same drawing stands on its own
//! presentation attributes.

mod canvas;
mod ccdf;
mod coordinate;
mod curves;
mod forest;
mod group;
mod heap;
mod histogram;
mod look;
mod measures;
mod node;
mod palette;
mod parts;
mod png;
mod rates;
mod samples;
mod scale;
mod scatter;
mod survival;
mod sweep;
mod tabled;
mod thin;
mod timeline;

pub(crate) use ccdf::plots as ccdfs;
pub(crate) use forest::ratio_range;
pub(crate) use group::{Group, groups};
pub(crate) use heap::OverTime;
pub(crate) use histogram::Histogram;
pub(crate) use look::Looks;
pub(crate) use measures::{Measure, measures};
pub(crate) use palette::{COLOURS, DARK_COLOURS};
pub(crate) use rates::plot as of_table;
pub(crate) use scale::{Scale, ratio_text};
pub(crate) use survival::plots as searches;

use heapdrome_schema::{Collection, RaceResult, Saved};
use maud::{Markup, PreEscaped};

use crate::ReportError;
use crate::foreign;
use canvas::Label;
use look::Ranking;
use node::{Node, Target};

/// A drawing of one view of a result.
#[derive(Clone, Debug)]
pub struct Plot {
    /// What it shows and of which race, fit for a file's name: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// What it shows, in one sentence.
    pub(crate) caption: String,
    drawing: Node,
    /// A second drawing for narrow screens, where a page has one.
    narrow: Option<Node>,
    /// Whether it has curves, which a page lets its reader hide.
    pub(crate) has_curves: bool,
}

impl Plot {
    /// A drawing of this height without curves. `rows` says where rows that can be sorted begin, if
    /// it is made of them.
    fn new(label: Label, caption: String, height: f64, rows: Option<f64>, body: Node) -> Self {
        Self {
            drawing: canvas::svg(&label, height, rows, body),
            name: label.name,
            caption,
            narrow: None,
            has_curves: false,
        }
    }

    /// The drawing for a page, whose style shows the narrow one in its place where there is one and
    /// no room for the other.
    pub(crate) fn in_page(&self) -> Markup {
        let drawings = self.narrow.iter().chain([&self.drawing]);
        PreEscaped(drawings.map(|drawing| drawing.text(Target::Page)).collect())
    }

    fn text(&self) -> String {
        self.drawing.text(Target::File)
    }

    /// The drawing as a file of its own.
    pub fn svg(&self) -> Vec<u8> {
        let mut text = self.text();
        text.push('\n');
        text.into_bytes()
    }

    /// The drawing as an image of twice its nominal size.
    ///
    /// # Errors
    /// When the drawing is too large for an image.
    pub fn png(&self) -> Result<Vec<u8>, ReportError> {
        png::render(&self.text())
    }
}

/// All plots of a result. A race without complete rounds has few or none.
pub fn plots(saved: &Saved) -> Vec<Plot> {
    let looks = Looks::of([saved]);
    match saved {
        Saved::Race(result) => of_race(result, "", &looks),
        Saved::Collection(collection) => of_collection(collection, &looks),
    }
}

/// The plots of one race, their names after `prefix`.
pub(crate) fn of_race(result: &RaceResult, prefix: &str, looks: &Looks) -> Vec<Plot> {
    let sheet = Ranking::new(result, looks);
    let known = measures(&sheet);
    let mut plots: Vec<Plot> = known
        .iter()
        .filter_map(|measure| forest::plot(&sheet, measure, prefix))
        .collect();
    plots.extend(
        known
            .iter()
            .filter_map(|measure| samples::plot(&sheet, measure, prefix)),
    );
    plots.extend(parts::plot(&sheet, prefix));
    plots.extend(timeline::plot(&sheet, prefix));
    plots.extend(scatter::plot(&sheet, prefix));
    plots
}

/// The curves of the sweeps in a collection, then the plots of each race.
fn of_collection(collection: &Collection, looks: &Looks) -> Vec<Plot> {
    let groups = groups(collection);
    let mut plots: Vec<Plot> = groups
        .iter()
        .flat_map(|group| sweep::plots(group, "", looks))
        .collect();
    // No places in these names: they would be others as soon as a table comes before.
    plots.extend(ccdf::plots(collection, |_| "ccdf-".to_owned(), looks));
    plots.extend(searches(collection.searches(), "", looks));
    let tables = collection.tables.iter();
    plots.extend(tables.filter_map(|table| of_table(table, "table-", looks)));
    for (place, race) in collection.races.iter().enumerate() {
        let prefix = member_prefix(place, &race.cell);
        plots.extend(of_race(&race.result, &prefix, looks));
    }
    plots
}

/// What the names of a member's plots begin with: its place makes it unique.
pub(crate) fn member_prefix(place: usize, cell: &str) -> String {
    format!("{:02}-{}-", place + 1, stem(cell))
}

/// The curves of one group of races, their names after `prefix`.
pub(crate) fn of_group(group: &Group<'_>, prefix: &str, looks: &Looks) -> Vec<Plot> {
    sweep::plots(group, prefix, looks)
}

/// `text` with nothing in it that a file's name or an identifier of the page could stumble over.
pub fn stem(text: &str) -> String {
    stem_within(text, 60)
}

/// A stem of at most `longest` letters.
fn stem_within(text: &str, longest: usize) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let stem: String = foreign::line(text)
        .chars()
        .map(|c| if plain(c) { c } else { '-' })
        .take(longest)
        .collect();
    stem.trim_start_matches(['.', '-']).to_owned()
}
