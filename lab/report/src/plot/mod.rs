//! The plots of a result, drawn as SVG for the page and for files, and the plots of a profile,
//! drawn for its page.
//!
//! A drawing is a tree of elements (`node`). The page sorts and hides rows, recolours drawings for
//! a dark screen, and describes them to screen readers. This requires classes, groups and
//! descriptions, which the SVG of plotting libraries lacks. In a file, a drawing uses presentation
//! attributes instead of the page's style.

mod canvas;
mod ccdf;
mod coordinate;
mod curves;
mod flame;
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
pub(crate) use flame::flame;
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

/// A drawing of one view of a result or of a profile.
#[derive(Clone, Debug)]
pub struct Plot {
    /// Name that identifies the drawing's content and race. It contains only letters, digits, `-`,
    /// `_` and `.`, so that it is valid in a file's name.
    pub name: String,
    /// Description of the content, in one sentence or a few.
    pub(crate) caption: String,
    drawing: Node,
    /// A second drawing, which the page shows on narrow screens.
    narrow: Option<Node>,
    /// Whether the drawing has curves, which the reader of a page can hide.
    pub(crate) has_curves: bool,
}

impl Plot {
    /// Returns a drawing of this height, without curves. `rows` is the upper edge of the sortable
    /// rows, if the drawing has any.
    fn new(label: Label, caption: String, height: f64, rows: Option<f64>, body: Node) -> Self {
        Self {
            drawing: canvas::svg(&label, height, rows, body),
            name: label.name,
            caption,
            narrow: None,
            has_curves: false,
        }
    }

    /// Returns the drawing for a page. If there is a narrow drawing, the page's style shows it on
    /// narrow screens.
    pub(crate) fn in_page(&self) -> Markup {
        let drawings = self.narrow.iter().chain([&self.drawing]);
        PreEscaped(drawings.map(|drawing| drawing.text(Target::Page)).collect())
    }

    fn text(&self) -> String {
        self.drawing.text(Target::File)
    }

    /// Returns the drawing as the content of an SVG file.
    pub fn svg(&self) -> Vec<u8> {
        let mut text = self.text();
        text.push('\n');
        text.into_bytes()
    }

    /// Renders the drawing as a PNG image of twice its nominal size.
    ///
    /// # Errors
    /// When the drawing cannot be rendered, for example because it is too large for an image.
    pub fn png(&self) -> Result<Vec<u8>, ReportError> {
        png::render(&self.text())
    }
}

/// Returns all plots of a result. A race without complete rounds has few or no plots.
pub fn plots(saved: &Saved) -> Vec<Plot> {
    let looks = Looks::of([saved]);
    match saved {
        Saved::Race(result) => of_race(result, "", &looks),
        Saved::Collection(collection) => of_collection(collection, &looks),
    }
}

/// Returns the plots of one race. Their names begin with `prefix`.
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

/// Returns the plots of a collection: its sweeps, distributions, searches and tables, then each
/// race.
fn of_collection(collection: &Collection, looks: &Looks) -> Vec<Plot> {
    let groups = groups(collection);
    let mut plots: Vec<Plot> = groups
        .iter()
        .flat_map(|group| sweep::plots(group, "", looks))
        .collect();
    // The names of these plots contain no position, because an added plot would change the
    // positions of later ones.
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

/// Returns the prefix of the names of a member's plots. The member's position makes it unique.
pub(crate) fn member_prefix(place: usize, cell: &str) -> String {
    format!("{:02}-{}-", place + 1, stem(cell))
}

/// Returns the plots of one group of races. Their names begin with `prefix`.
pub(crate) fn of_group(group: &Group<'_>, prefix: &str, looks: &Looks) -> Vec<Plot> {
    sweep::plots(group, prefix, looks)
}

/// Shortens `text`, and reduces it to characters that are valid in a file's name and in an
/// identifier of the page.
pub fn stem(text: &str) -> String {
    stem_within(text, 60)
}

/// Returns a stem of at most `longest` characters.
fn stem_within(text: &str, longest: usize) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let stem: String = foreign::line(text)
        .chars()
        .map(|c| if plain(c) { c } else { '-' })
        .take(longest)
        .collect();
    stem.trim_start_matches(['.', '-']).to_owned()
}
