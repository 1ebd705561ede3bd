//! The sheet of paper that every plot is drawn on.

use std::fmt::Write;

use maud::{Markup, html};

use super::coordinate::n;
use super::look::Look;
use super::palette::INK;
use crate::foreign;

/// The width of every plot.
pub(crate) const WIDTH: f64 = 640.0;
/// The width of a drawing for a narrow screen, as it has room on a telephone of 360 pixels.
pub(crate) const NARROW: f64 = 336.0;
/// Where the names of rows end.
pub(crate) const NAMES: f64 = 140.0;

/// Lines of the grid.
pub(crate) const GRID: &str = "#d4d4d4";
/// Text that matters less.
pub(crate) const FAINT: &str = "#595959";
/// A band behind the data.
pub(crate) const BAND: &str = "#e6e6e6";

/// What a file must say and a page's style says once, as it stands in a drawing.
pub(super) const FILE_ONLY: [&str; 7] = [
    " xmlns=\"http://www.w3.org/2000/svg\"",
    " font-family=\"Ubuntu, Helvetica, Arial, sans-serif\" font-size=\"13\"",
    " fill=\"#1a1a1a\" color=\"#1a1a1a\"",
    "<rect class=\"paper\" width=\"100%\" height=\"100%\" fill=\"#fff\"></rect>",
    " font-size=\"11\" fill=\"#595959\"",
    " fill=\"none\" stroke=\"#d4d4d4\"",
    " fill=\"none\" stroke=\"#1a1a1a\"",
];

/// What a drawing is called, and what a screen reader says about it.
pub(crate) struct Label {
    /// Unique in a page.
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) description: String,
}

/// A whole drawing. `rows` says where rows that can be sorted begin, if it is made of them.
pub(crate) fn svg(label: &Label, height: f64, rows: Option<f64>, body: &Markup) -> Markup {
    sized(label, [WIDTH, height], None, rows, body)
}

/// The same for narrow screens, of a page alone.
pub(crate) fn narrow(label: &Label, height: f64, rows: f64, body: &Markup) -> Markup {
    sized(label, [NARROW, height], Some("narrow"), Some(rows), body)
}

fn sized(
    label: &Label,
    [width, height]: [f64; 2],
    class: Option<&str>,
    rows: Option<f64>,
    body: &Markup,
) -> Markup {
    let name = &label.name;
    html! {
        svg xmlns="http://www.w3.org/2000/svg" class=[class] viewBox={ "0 0 " (n(width)) " " (n(height)) }
            width=(n(width)) height=(n(height)) role="img"
            aria-labelledby={ (name) "-title " (name) "-text" }
            font-family="Ubuntu, Helvetica, Arial, sans-serif" font-size="13" fill=(INK) color=(INK)
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

/// Several of them.
pub(crate) fn faint_all(anchor: Anchor, texts: &[([f64; 2], String)]) -> Markup {
    html! {
        g class="faint" text-anchor=(anchor.word()) font-size="11" fill=(FAINT) {
            @for ([x, y], told) in texts { text x=(n(*x)) y=(n(*y)) { (told) } }
        }
    }
}

/// From where to where a straight line goes.
pub(crate) type Line = [[f64; 2]; 2];

/// Straight lines as one path: a page has thousands of them.
pub(crate) fn strokes(lines: &[Line]) -> String {
    let mut path = String::new();
    for [[x1, y1], [x2, y2]] in lines {
        let [x1, y1, x2, y2] = [x1, y1, x2, y2].map(|value| n(*value));
        let _ = match (x1 == x2, y1 == y2) {
            (true, _) => write!(path, "M{x1} {y1}V{y2}"),
            (_, true) => write!(path, "M{x1} {y1}H{x2}"),
            _ => write!(path, "M{x1} {y1}L{x2} {y2}"),
        };
    }
    path
}

/// The head of an arrow with its tip at a point, which shows this way: a line goes on beyond the paper.
pub(crate) fn arrow([x, y]: [f64; 2], [dx, dy]: [f64; 2]) -> String {
    let (length, half) = (6.0, 4.0);
    let [foot_x, foot_y] = [x - length * dx, y - length * dy];
    let [aside_x, aside_y] = [half * dy, half * dx];
    let corners = [
        [x, y],
        [foot_x - aside_x, foot_y - aside_y],
        [foot_x + aside_x, foot_y + aside_y],
    ];
    let corners = corners.map(|[x, y]| format!("{} {}", n(x), n(y)));
    format!("M{}Z", corners.join("L"))
}

/// Lines of the grid.
pub(crate) fn grid(lines: &[Line]) -> Markup {
    html! { path class="grid" fill="none" stroke=(GRID) d=(strokes(lines)) {} }
}

/// Lines of an axis.
pub(crate) fn axis(lines: &[Line]) -> Markup {
    html! { path class="axis" fill="none" stroke=(INK) d=(strokes(lines)) {} }
}

/// The line below the head of a drawing made of rows, from `left` to `right` at `y`, with a tick on it at each
/// of these places.
pub(crate) fn head_axis([left, right]: [f64; 2], y: f64, ticks: &[f64]) -> Markup {
    let ticks = ticks.iter().map(|x| [[*x, y - 6.0], [*x, y]]);
    let whole = [[left, y], [right, y]];
    axis(&std::iter::once(whole).chain(ticks).collect::<Vec<_>>())
}

/// The grid and the axes of a drawing that is `across` wide and goes `up`, with a line at each of these places.
pub(crate) fn frame([across, up]: [[f64; 2]; 2], columns: &[f64], lines: &[f64]) -> Markup {
    let columns = columns.iter().map(|x| [[*x, up[0]], [*x, up[1]]]);
    let lines = lines.iter().map(|y| [[across[0], *y], [across[1], *y]]);
    let corner = [across[0], up[0]];
    html! {
        (grid(&columns.chain(lines).collect::<Vec<_>>()))
        (axis(&[[corner, [across[1], up[0]]], [corner, [across[0], up[1]]]]))
    }
}

/// One row of a drawing, for the entrant in that place of the ranking, in whose colour `currentColor` is drawn;
/// its own origin is its upper left corner.
pub(crate) fn row(place: usize, look: Look, top: f64, height: f64, body: &Markup) -> Markup {
    html! {
        g class={ "row " (look.class()) } color=(look.colour()) data-entrant=(place)
            data-height=(n(height)) transform={ "translate(0 " (n(top)) ")" } { (body) }
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
