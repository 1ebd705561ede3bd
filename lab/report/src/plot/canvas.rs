//! Elements that several plots share.

use std::fmt::Write;

use super::coordinate::n;
use super::look::Look;
use super::node::{Element, Node, coloured, element};
use super::palette::INK;
use crate::foreign;

/// Width of every drawing except those for narrow screens, in units of the drawing.
pub(crate) const WIDTH: f64 = 640.0;
/// Width of a drawing for a narrow screen, such as a phone that is 360 pixels wide.
pub(crate) const NARROW: f64 = 336.0;
/// Right edge of the space for names at the left of each row.
pub(crate) const NAMES: f64 = 140.0;

/// Colour of grid lines.
pub(crate) const GRID: &str = "#d4d4d4";
/// Colour of less important text.
pub(crate) const FAINT: &str = "#595959";
/// Colour of a band behind the data.
pub(crate) const BAND: &str = "#e6e6e6";

/// Name of a drawing, and its text for a screen reader.
pub(crate) struct Label {
    /// The name, unique in a page.
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) description: String,
}

/// Returns a complete drawing. `rows` is the upper edge of the sortable rows, if the drawing has
/// any.
pub(crate) fn svg(label: &Label, height: f64, rows: Option<f64>, body: Node) -> Node {
    sized(label, [WIDTH, height], None, rows, body)
}

/// Returns a complete drawing for narrow screens, which is used only in pages.
pub(crate) fn narrow(label: &Label, height: f64, rows: f64, body: Node) -> Node {
    sized(label, [NARROW, height], Some("narrow"), Some(rows), body)
}

fn sized(
    label: &Label,
    [width, height]: [f64; 2],
    class: Option<&str>,
    rows: Option<f64>,
    body: Node,
) -> Node {
    let [title, text] = ["title", "text"].map(|part| format!("{}-{part}", label.name));
    let paper = element("rect")
        .with("class", "paper")
        .with("width", "100%")
        .with("height", "100%")
        .with("fill", "#fff")
        .for_file_only();
    element("svg")
        .in_file("xmlns", "http://www.w3.org/2000/svg")
        .with_some("class", class)
        .with("viewBox", format!("0 0 {} {}", n(width), n(height)))
        .with("width", n(width))
        .with("height", n(height))
        .with("role", "img")
        .with("aria-labelledby", format!("{title} {text}"))
        .in_file("font-family", "Ubuntu, Helvetica, Arial, sans-serif")
        .in_file("font-size", "13")
        .in_file("fill", INK)
        .in_file("color", INK)
        .with_some("data-rows", rows.map(n))
        .holding(
            element("title")
                .with("id", title)
                .holding(label.title.as_str()),
        )
        .holding(
            element("desc")
                .with("id", text)
                .holding(label.description.as_str()),
        )
        .holding(paper)
        .holding(body)
        .into()
}

/// The position of text relative to its point.
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

/// Returns text in the main colour.
pub(crate) fn text(at: [f64; 2], anchor: Anchor, text: &str) -> Node {
    placed("text", at)
        .with("text-anchor", anchor.word())
        .holding(text)
        .into()
}

/// Returns small, less important text.
pub(crate) fn faint([x, y]: [f64; 2], anchor: Anchor, text: &str) -> Node {
    let element = element("text").with("class", "faint");
    let placed = element.with("x", n(x)).with("y", n(y));
    small(placed, anchor).holding(text).into()
}

/// Returns several small, less important texts.
pub(crate) fn faint_all(anchor: Anchor, texts: &[([f64; 2], String)]) -> Node {
    let text = |(at, told): &([f64; 2], String)| placed("text", *at).holding(told.as_str()).into();
    small(element("g").with("class", "faint"), anchor)
        .holding(texts.iter().map(text).collect::<Node>())
        .into()
}

fn placed(name: &'static str, [x, y]: [f64; 2]) -> Element {
    element(name).with("x", n(x)).with("y", n(y))
}

fn small(element: Element, anchor: Anchor) -> Element {
    element
        .with("text-anchor", anchor.word())
        .in_file("font-size", "11")
        .in_file("fill", FAINT)
}

/// The start and the end of a straight line.
pub(crate) type Line = [[f64; 2]; 2];

/// Returns straight lines as a single path, because a page has thousands of them.
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

/// Returns an arrow head with its tip at a point, in the given direction. The arrow head shows that
/// a line continues beyond the paper.
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

/// Returns lines of the grid.
pub(crate) fn grid(lines: &[Line]) -> Node {
    stroked("grid", GRID).with("d", strokes(lines)).into()
}

/// Returns lines of an axis.
pub(crate) fn axis(lines: &[Line]) -> Node {
    ink().with("d", strokes(lines)).into()
}

/// Returns a path in the main colour, with the class of axes.
pub(crate) fn ink() -> Element {
    stroked("axis", INK)
}

fn stroked(class: &'static str, colour: &'static str) -> Element {
    element("path")
        .with("class", class)
        .in_file("fill", "none")
        .in_file("stroke", colour)
}

/// Returns the axis at the head of a drawing with rows. It extends from `left` to `right` at the
/// height `y`, with a tick at each of `ticks`.
pub(crate) fn head_axis([left, right]: [f64; 2], y: f64, ticks: &[f64]) -> Node {
    let ticks = ticks.iter().map(|x| [[*x, y - 6.0], [*x, y]]);
    let whole = [[left, y], [right, y]];
    axis(&std::iter::once(whole).chain(ticks).collect::<Vec<_>>())
}

/// Returns the grid and the axes of a drawing that extends over `across` and `up`. `columns` and
/// `lines` are the positions of the grid's vertical and horizontal lines.
pub(crate) fn frame([across, up]: [[f64; 2]; 2], columns: &[f64], lines: &[f64]) -> Node {
    let columns = columns.iter().map(|x| [[*x, up[0]], [*x, up[1]]]);
    let lines = lines.iter().map(|y| [[across[0], *y], [across[1], *y]]);
    let corner = [across[0], up[0]];
    Node::from([
        grid(&columns.chain(lines).collect::<Vec<_>>()),
        axis(&[[corner, [across[1], up[0]]], [corner, [across[0], up[1]]]]),
    ])
}

/// Returns the row of the entrant at this position in the ranking. In the row, `currentColor` is
/// the entrant's colour, and the origin is the upper left corner.
pub(crate) fn row(place: usize, look: Look, top: f64, height: f64, body: Node) -> Node {
    group("row ", look)
        .with("data-entrant", place.to_string())
        .with("data-height", n(height))
        .with("transform", format!("translate(0 {})", n(top)))
        .holding(body)
        .into()
}

/// Returns a group of this class and look. In the group, `currentColor` is the colour of the look.
pub(crate) fn group(class: &str, look: Look) -> Element {
    element("g")
        .with("class", format!("{class}{}", look.class()))
        .in_file("color", look.colour())
}

/// Returns a curve with the elements that belong to it. On a page that lists the curves, the reader
/// can hide it by its name.
pub(crate) fn curve(look: Look, name: &str, path: String, rest: Node) -> Node {
    let line = coloured(path)
        .with("stroke-width", "1.8")
        .with("stroke-dasharray", look.dashes());
    group("curve ", look)
        .with("data-name", name)
        .with("data-mark", look.mark())
        .holding(line)
        .holding(rest)
        .into()
}

/// Returns an entrant's name at the left of its row.
pub(crate) fn row_name(name: &str, y: f64) -> Node {
    text(
        [NAMES - 8.0, y],
        Anchor::End,
        &foreign::short_name(name, 19),
    )
}
