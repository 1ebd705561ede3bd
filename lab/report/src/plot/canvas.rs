//! The sheet of paper that every plot is drawn on.

use maud::{Markup, html};

use crate::foreign;

/// The width of every plot.
pub(crate) const WIDTH: f64 = 640.0;
/// Where the names of rows end.
pub(crate) const NAMES: f64 = 140.0;

/// Ink on white paper, for files; the page's style overrides them.
pub(crate) const INK: &str = "#1a1a1a";
/// Lines of the grid.
pub(crate) const GRID: &str = "#d4d4d4";
/// Text that matters less.
pub(crate) const FAINT: &str = "#595959";
/// A band behind the data.
pub(crate) const BAND: &str = "#e6e6e6";

/// A coordinate, with one decimal where it needs one.
pub(crate) fn n(value: f64) -> String {
    let text = format!("{value:.1}");
    match text.strip_suffix(".0") {
        Some("-0") => "0".to_owned(),
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

/// What a drawing is called, and what a screen reader says about it.
pub(crate) struct Label {
    /// Unique in a page.
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) description: String,
}

/// A whole drawing. `rows` says where rows that can be sorted begin, if it is made of them.
pub(crate) fn svg(label: &Label, height: f64, rows: Option<f64>, body: &Markup) -> Markup {
    let name = &label.name;
    html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox={ "0 0 " (n(WIDTH)) " " (n(height)) }
            width=(n(WIDTH)) height=(n(height)) role="img"
            aria-labelledby={ (name) "-title " (name) "-text" }
            font-family="Ubuntu, Helvetica, Arial, sans-serif" font-size="13" fill=(INK)
            data-rows=[rows.map(n)] {
            title id={ (name) "-title" } { (label.title) }
            desc id={ (name) "-text" } { (label.description) }
            rect class="paper" width="100%" height="100%" fill="#fff" {}
            (body)
        }
    }
}

/// Where text stands relative to its point.
#[derive(Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Anchor {
    fn word(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Middle => "middle",
            Self::End => "end",
        }
    }
}

/// Text in full ink.
pub(crate) fn text([x, y]: [f64; 2], anchor: Anchor, text: &str) -> Markup {
    html! { text x=(n(x)) y=(n(y)) text-anchor=(anchor.word()) { (text) } }
}

/// Small text that matters less.
pub(crate) fn faint([x, y]: [f64; 2], anchor: Anchor, text: &str) -> Markup {
    html! {
        text class="faint" x=(n(x)) y=(n(y)) text-anchor=(anchor.word()) font-size="11" fill=(FAINT) {
            (text)
        }
    }
}

/// A line of the grid.
pub(crate) fn grid([x1, y1]: [f64; 2], [x2, y2]: [f64; 2]) -> Markup {
    html! {
        line class="grid" x1=(n(x1)) y1=(n(y1)) x2=(n(x2)) y2=(n(y2)) stroke=(GRID) {}
    }
}

/// A line of an axis.
pub(crate) fn axis([x1, y1]: [f64; 2], [x2, y2]: [f64; 2]) -> Markup {
    html! {
        line class="axis" x1=(n(x1)) y1=(n(y1)) x2=(n(x2)) y2=(n(y2)) stroke=(INK) {}
    }
}

/// One row of a drawing, for the entrant in that place of the ranking; its own origin is its upper
/// left corner.
pub(crate) fn row(place: usize, top: f64, height: f64, body: &Markup) -> Markup {
    html! {
        g class="row" data-entrant=(place) data-height=(n(height))
            transform={ "translate(0 " (n(top)) ")" } { (body) }
    }
}

/// An entrant's name at the left of its row.
pub(crate) fn row_name(name: &str, y: f64) -> Markup {
    text(
        [NAMES - 8.0, y],
        Anchor::End,
        &foreign::short_name(name, 19),
    )
}
