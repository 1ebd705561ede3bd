//! Curves over a parameter, one for each allocator. The vertical axis is logarithmic, the
//! horizontal one on request.

use std::fmt::Write;

use super::Plot;
use super::canvas::{self, Anchor, Label};
use super::coordinate::n;
use super::look::Look;
use super::measures::Unit;
use super::node::{Node, element};
use super::scale::{Scale, ratio_text};
use super::tabled::Point;
use crate::foreign;

const HEIGHT: f64 = 400.0;
/// Left and right edge of the plot. If a name is longer than [`NAME`] letters, the right edge is
/// further left.
const ACROSS: [f64; 2] = [76.0, 490.0];
const NAME: usize = 17;
/// Maximum number of letters of a name.
const LONGEST_NAME: usize = 24;
const LETTER: f64 = 7.0;
/// Maximum number of letters of the line below the title.
const LONGEST_LINE: usize = 84;
const UP: [f64; 2] = [344.0, 46.0];
/// Vertical distance between two names at the right of the drawing.
const APART: f64 = 15.0;
/// Margin on the left of the first value and on the right of the last.
const MARGIN: f64 = 12.0;
/// Horizontal distance between two intervals at one value, if there is space. The intervals at one
/// value take at most the share [`SPREAD`] of the smallest distance between two values.
const BESIDE: f64 = 9.0;
const SPREAD: f64 = 0.42;

/// The horizontal axis: the values of a parameter.
pub(super) struct Across {
    /// Prefix of the names of the drawings over this axis.
    pub(super) stem: String,
    /// Line below the title, such as the name of the workload or of the table.
    pub(super) name: String,
    pub(super) parameter: String,
    /// The position and the label of each value, from left to right.
    pub(super) ticks: Vec<(f64, String)>,
    /// Whether the axis is logarithmic, which suits values that double.
    pub(super) by_logarithm: bool,
}

/// One allocator's values over a parameter.
#[derive(Clone)]
pub(super) struct Curve {
    pub(super) name: String,
    pub(super) look: Look,
    pub(super) points: Vec<Point>,
}

/// Meaning of the strokes at the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    /// Confidence intervals, or ranges from the fastest to the slowest run.
    Intervals,
    /// Quartiles over the rounds. They are drawn lightly, because they are not evidence of a
    /// difference.
    Quartiles,
}

impl Ends {
    fn opacity(self) -> Option<&'static str> {
        match self {
            Self::Intervals => None,
            Self::Quartiles => Some("0.45"),
        }
    }
}

/// The scales and the edges of a drawing.
struct Paper {
    x: Scale,
    y: Scale,
    /// The right edge of the plot.
    right: f64,
    /// Number of letters of a name that fit at the right of the plot.
    letters: usize,
    /// Position of the parameter's last value, in the unit of the scale `x`.
    last: f64,
    unit: Unit,
    ends: Ends,
}

/// Returns the drawing of a figure with this name, title and unit. The strokes of its points are
/// [`Ends::Intervals`]. `None` if no curve has two points.
pub(super) fn draw(
    on: &Across,
    curves: &[Curve],
    what: (&str, Unit, &str),
    note: &str,
) -> Option<Plot> {
    draw_with(on, curves, what, (note, Ends::Intervals))
}

/// Returns a drawing of curves whose points have strokes of this kind; `None` if no curve has two
/// points.
pub(super) fn draw_with(
    on: &Across,
    curves: &[Curve],
    (id, unit, title): (&str, Unit, &str),
    (note, ends): (&str, Ends),
) -> Option<Plot> {
    if !curves.iter().any(|curve| curve.points.len() >= 2) {
        return None;
    }
    let (paper, shifts) = paper(on, curves, unit, ends);
    let label = Label {
        name: format!("{}-{id}", on.stem),
        title: format!("{}: {title}", on.name),
        description: described(curves, unit),
    };
    let ends = name_places(curves, &paper.y);
    let lines = curves.iter().zip(ends).zip(shifts);
    let lines = lines.filter_map(|((curve, end), shift)| line(curve, &paper, end, shift));
    let body = Node::from([axes(on, title, &paper), lines.collect()]);
    let height = HEIGHT.max(APART * named(curves) as f64 + 60.0);
    let caption = format!("{}: {title} ({note}).", on.name);
    Some(Plot {
        has_curves: true,
        ..Plot::new(label, caption, height, None, body)
    })
}

/// Returns the number of curves whose names are at the right of the drawing.
fn named(curves: &[Curve]) -> usize {
    let drawn = |curve: &&Curve| !curve.points.is_empty();
    curves.iter().filter(drawn).count()
}

/// Returns scales that contain all curves, and a horizontal shift for each curve.
fn paper(on: &Across, curves: &[Curve], unit: Unit, ends: Ends) -> (Paper, Vec<f64>) {
    let values = || {
        let points = curves.iter().flat_map(|curve| &curve.points);
        let all = points.flat_map(|point| {
            let [low, high] = point.ends.unwrap_or([point.value; 2]);
            [low, point.value, high]
        });
        all.filter(|value| value.is_finite() && *value > 0.0)
    };
    let low = values().fold(f64::INFINITY, f64::min);
    let high = values().fold(f64::NEG_INFINITY, f64::max);
    let margin = (high / low).powf(0.05).max(1.02);
    let longest = curves.iter().map(|curve| curve.name.chars().count());
    let letters = longest.max().unwrap_or(0).clamp(NAME, LONGEST_NAME);
    let right = ACROSS[1] - LETTER * (letters - NAME) as f64;
    let shifts = shifts(on, curves, right);
    let beside = MARGIN + shifts.iter().copied().fold(0.0, f64::max);
    let places = on.ticks.iter().map(|(place, _)| *place);
    let paper = Paper {
        x: across(on, right, beside),
        y: Scale::logarithmic([low / margin, high * margin], UP),
        right,
        letters,
        last: places.fold(f64::NEG_INFINITY, f64::max),
        unit,
        ends,
    };
    (paper, shifts)
}

/// Returns a horizontal shift for each curve, so that intervals at the same value are next to each
/// other.
fn shifts(on: &Across, curves: &[Curve], right: f64) -> Vec<f64> {
    let has_interval = |point: &Point| point.ends.is_some_and(|[low, high]| low < high);
    let count = named(curves) as f64;
    let mut places: Vec<f64> = on.ticks.iter().map(|(place, _)| *place).collect();
    places.sort_by(f64::total_cmp);
    let x = across(on, right, MARGIN);
    let ways = places.windows(2).map(|pair| x.at(pair[1]) - x.at(pair[0]));
    let way = ways.filter(|way| *way > 0.0).fold(f64::INFINITY, f64::min);
    let beside = match curves
        .iter()
        .flat_map(|curve| &curve.points)
        .any(has_interval)
    {
        true => BESIDE.min(SPREAD * way / count),
        false => 0.0,
    };
    let mut before = 0.0;
    let shift = |curve: &Curve| {
        let own = (before - (count - 1.0) / 2.0) * beside;
        before += if curve.points.is_empty() { 0.0 } else { 1.0 };
        own
    };
    curves.iter().map(shift).collect()
}

fn across(on: &Across, right: f64, margin: f64) -> Scale {
    let values = || on.ticks.iter().map(|(place, _)| *place);
    let low = values().fold(f64::INFINITY, f64::min);
    let high = values().fold(0.0, f64::max);
    let paper = [ACROSS[0] + margin, right - margin];
    if on.by_logarithm {
        Scale::logarithmic([low, high], paper)
    } else {
        Scale::linear([low, high], paper)
    }
}

fn axes(on: &Across, title: &str, paper: &Paper) -> Node {
    let Paper {
        x, y, right, unit, ..
    } = paper;
    let ticks = y.ratio_ticks(30.0);
    let columns: Vec<f64> = on.ticks.iter().map(|(place, _)| x.at(*place)).collect();
    let lines: Vec<f64> = ticks.iter().map(|tick| y.at(*tick)).collect();
    let below = |((_, label), at): (&(f64, String), &f64)| {
        canvas::faint(
            [*at, UP[0] + 17.0],
            Anchor::Middle,
            &foreign::shorten(label, 10),
        )
    };
    let beside = |tick: &f64| {
        let told = match *unit == Unit::Number && *tick < 1000.0 {
            true => ratio_text(*tick),
            false => unit.tell(*tick),
        };
        canvas::faint([ACROSS[0] - 6.0, y.at(*tick) + 4.0], Anchor::End, &told)
    };
    let middle = [(ACROSS[0] + right) / 2.0, HEIGHT - 14.0];
    Node::from([
        canvas::text(
            [ACROSS[0], 16.0],
            Anchor::Start,
            &format!("{title} (log scale)"),
        ),
        canvas::faint(
            [ACROSS[0], 34.0],
            Anchor::Start,
            &foreign::shorten(&on.name, LONGEST_LINE),
        ),
        canvas::frame([[ACROSS[0], *right], UP], &columns, &lines),
        on.ticks.iter().zip(&columns).map(below).collect(),
        ticks.iter().map(beside).collect(),
        canvas::text(middle, Anchor::Middle, &on.parameter),
    ])
}

/// Returns a curve that is shifted by `shift`, with its name at the height `end`; `None` if the
/// curve has no point.
fn line(curve: &Curve, paper: &Paper, end: f64, shift: f64) -> Option<Node> {
    let Paper { x, y, right, .. } = paper;
    let last = curve.points.last()?;
    let look = curve.look;
    let at = |point: &Point| [x.at(point.place) + shift, y.at(point.value)];
    let mut path = String::new();
    for point in &curve.points {
        let start = if path.is_empty() { 'M' } else { 'L' };
        let [px, py] = at(point);
        let _ = write!(path, "{start}{} {}", n(px), n(py));
    }
    let name = foreign::name(&curve.name);
    let marker = |point: &Point| {
        let says = format!("{name} at {}: {}", point.label, told(point, paper.unit));
        look.marker(at(point), 4.5, Some(&says))
    };
    // The line from a curve to its name exists only if the curve reaches the last value. From an
    // earlier value, the line would cross the other curves.
    let tie = (last.place >= paper.last).then(|| {
        let [px, py] = at(last);
        canvas::grid(&[[[px + 6.0, py], [right + 8.0, end]]])
    });
    let short = foreign::short_name(&curve.name, paper.letters);
    let rest = Node::from([
        strokes(curve, paper, shift),
        curve.points.iter().map(marker).collect(),
        tie.into(),
        look.marker([right + 14.0, end], 4.0, None),
        canvas::text([right + 23.0, end + 4.5], Anchor::Start, &short),
    ]);
    Some(canvas::curve(look, &name, path, rest))
}

/// Returns a stroke for each point whose interval, range or quartiles are known.
fn strokes(curve: &Curve, paper: &Paper, shift: f64) -> Node {
    let stroke = |point: &Point| -> Option<canvas::Line> {
        let [low, high] = point.ends.filter(|[low, high]| low < high)?;
        let at = paper.x.at(point.place) + shift;
        Some([[at, paper.y.at(low)], [at, paper.y.at(high)]])
    };
    let drawn = |line: canvas::Line| {
        let path = element("path").with("fill", "none");
        path.with("stroke", "currentColor")
            .with("stroke-width", "1.2")
            .with("d", canvas::strokes(&[line]))
            .with_some("stroke-opacity", paper.ends.opacity())
            .into()
    };
    let lines = curve.points.iter().filter_map(stroke);
    lines.map(drawn).collect()
}

/// Returns the vertical position of each curve's name, which is near the curve's end and apart from
/// the other names.
fn name_places(curves: &[Curve], up: &Scale) -> Vec<f64> {
    let wanted = |curve: &Curve| {
        curve
            .points
            .last()
            .map_or(f64::INFINITY, |last| up.at(last.value))
    };
    let mut order: Vec<usize> = (0..curves.len()).collect();
    order.sort_by(|a, b| wanted(&curves[*a]).total_cmp(&wanted(&curves[*b])));
    let named = named(curves) as f64;
    let mut places = vec![0.0; curves.len()];
    let mut above = f64::NEG_INFINITY;
    for (rank, place) in order.into_iter().enumerate() {
        // Leave space above the lower edge for the names that follow.
        let lowest = HEIGHT - 24.0 - APART * (named - 1.0 - rank as f64);
        let at = wanted(&curves[place])
            .min(lowest)
            .max(above + APART)
            .max(UP[1] - 4.0);
        places[place] = at;
        above = at;
    }
    places
}

/// Formats a value with its interval, its range or its quartiles, if they are known.
fn told(point: &Point, unit: Unit) -> String {
    let value = unit.tell(point.value);
    match point.ends {
        Some([low, high]) if low < high => {
            format!("{value} ({} to {})", unit.tell(low), unit.tell(high))
        }
        _ => value,
    }
}

fn described(curves: &[Curve], unit: Unit) -> String {
    let told = curves
        .iter()
        .filter(|curve| !curve.points.is_empty())
        .map(|curve| {
            let points = curve.points.iter();
            let points = points.map(|point| format!("{} at {}", told(point, unit), point.label));
            format!(
                "{}: {}",
                foreign::name(&curve.name),
                points.collect::<Vec<_>>().join(", ")
            )
        });
    told.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests;
