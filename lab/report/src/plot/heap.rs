//! Quantities of a profile over time, as areas and lines.

use std::fmt::Write;

use heapdrome_profile::{Level, Point, Timeline};
use heapdrome_schema::{Bytes, Nanoseconds};

use super::Plot;
use super::canvas::{self, Anchor, Label, WIDTH};
use super::coordinate::n;
use super::look::Look;
use super::node::{Node, coloured, filled};
use super::scale::Scale;
use super::thin::visible;
use crate::words;

const ACROSS: [f64; 2] = [76.0, WIDTH - 16.0];
const UP: [f64; 2] = [250.0, 34.0];
const HEIGHT: f64 = 286.0;

/// The data of a drawing over time, of one process or of all processes.
pub(crate) struct OverTime<'a> {
    /// Name of the drawing, unique in a page.
    pub(crate) name: String,
    pub(crate) caption: String,
    pub(crate) timeline: &'a Timeline,
    /// First and last time, in nanoseconds.
    pub(crate) span: [u64; 2],
}

/// A point: its time in seconds, and its value in the unit of the quantity.
type Place = [f64; 2];

/// One quantity: its name, and its points in several parts. The quantity is unknown between the
/// parts.
struct Curve {
    name: &'static str,
    look: Look,
    parts: Vec<Vec<Place>>,
    is_area: bool,
}

impl Curve {
    fn places(&self) -> impl Iterator<Item = &Place> {
        self.parts.iter().flatten()
    }
}

impl OverTime<'_> {
    /// Returns a drawing of live and resident memory; `None` if both were always zero, or no time
    /// passed.
    pub(crate) fn memory(self) -> Option<Plot> {
        let live = self.places(|point| Some(point.bytes));
        let resident = self.places(|point| point.resident);
        let curves = [
            curve("live", 0, live, true),
            curve("resident", 1, resident, false),
        ];
        self.drawn("Memory over time", &curves, Unit::Bytes)
    }

    /// Returns a drawing of live blocks, if there were any.
    pub(crate) fn blocks(self) -> Option<Plot> {
        let live = self.places(|point| Some(point.blocks));
        let curves = [curve("live blocks", 0, live, true)];
        self.drawn("Live blocks over time", &curves, Unit::Count)
    }

    /// Returns a drawing of calls per second, if there were any.
    pub(crate) fn calls(self) -> Option<Plot> {
        let seconds = Nanoseconds(self.timeline.width).as_seconds();
        let places = self.timeline.points.iter().flat_map(|point| {
            let rate = point.calls as f64 / seconds;
            let [from, to] = self.ends(point);
            [[from, rate], [to, rate]]
        });
        let places = vec![places.collect()];
        let curves = [curve("calls per second", 0, places, true)];
        self.drawn("Calls over time", &curves, Unit::Count)
    }

    /// Returns the first and the last moment of a timeline point, in seconds since the beginning of
    /// the span. Moments outside the span are moved to its limits.
    fn ends(&self, point: &Point) -> [f64; 2] {
        let end = point.time.saturating_add(self.timeline.width);
        [point.time, end].map(|time| {
            let time = time.clamp(self.span[0], self.span[1]);
            Nanoseconds(time - self.span[0]).as_seconds()
        })
    }

    /// Returns the points of a curve, in parts. Each point of the timeline contributes two: its
    /// maximum at its beginning, and its last amount at its end. A new part begins after points
    /// without an amount.
    fn places(&self, of: fn(&Point) -> Option<Level>) -> Vec<Vec<Place>> {
        let mut parts = vec![Vec::new()];
        for point in &self.timeline.points {
            let [from, to] = self.ends(point);
            match (of(point), parts.last_mut()) {
                (Some(level), Some(part)) => {
                    part.extend([[from, level.most as f64], [to, level.last as f64]]);
                }
                (None, Some(part)) if !part.is_empty() => parts.push(Vec::new()),
                _ => {}
            }
        }
        parts.retain(|part| !part.is_empty());
        parts
    }

    fn drawn(self, title: &str, curves: &[Curve], unit: Unit) -> Option<Plot> {
        let highest = curves.iter().flat_map(Curve::places);
        let highest = highest.map(|[_, value]| *value).fold(0.0, f64::max);
        let longest = Nanoseconds(self.span[1] - self.span[0]).as_seconds();
        if highest <= 0.0 || longest <= 0.0 {
            return None;
        }
        let across = Scale::linear([0.0, longest], ACROSS);
        let up = Scale::linear([0.0, highest], UP);
        let label = Label {
            description: described(curves, unit),
            name: self.name,
            title: title.to_owned(),
        };
        let curves = curves.iter().filter(|curve| !curve.parts.is_empty());
        let curves: Vec<&Curve> = curves.collect();
        let body = Node::from([
            axes([&across, &up], unit),
            curves
                .iter()
                .map(|curve| drawn(curve, [&across, &up]))
                .collect(),
            key(&curves),
        ]);
        Some(Plot::new(label, self.caption, HEIGHT, None, body))
    }
}

fn curve(name: &'static str, place: usize, parts: Vec<Vec<Place>>, is_area: bool) -> Curve {
    Curve {
        name,
        look: Look::rival(place),
        parts,
        is_area,
    }
}

fn described(curves: &[Curve], unit: Unit) -> String {
    let told = curves.iter().filter_map(|curve| {
        let most = curve
            .places()
            .max_by(|one, other| one[1].total_cmp(&other[1]))?;
        let last = curve.places().last()?;
        let when = Nanoseconds::from_seconds(most[0]);
        Some(format!(
            "{}: at most {} after {when}, {} at the end",
            curve.name,
            unit.tell(most[1]),
            unit.tell(last[1])
        ))
    });
    told.collect::<Vec<_>>().join("; ")
}

/// Returns the grid, its labels and the axes.
fn axes([across, up]: [&Scale; 2], unit: Unit) -> Node {
    let times = across.round_ticks(6.0);
    let levels = unit.ticks(up);
    let time = |seconds: &f64| {
        let told = match *seconds > 0.0 {
            true => Nanoseconds::from_seconds(*seconds).to_string(),
            false => "0".to_owned(),
        };
        ([across.at(*seconds), UP[0] + 18.0], told)
    };
    let level = |value: &f64| {
        let told = if *value > 0.0 {
            unit.tell(*value)
        } else {
            "0".to_owned()
        };
        ([ACROSS[0] - 6.0, up.at(*value) + 4.0], told)
    };
    let columns: Vec<f64> = times.iter().map(|tick| across.at(*tick)).collect();
    let lines: Vec<f64> = levels.iter().map(|tick| up.at(*tick)).collect();
    Node::from([
        canvas::frame([ACROSS, UP], &columns, &lines),
        canvas::faint_all(Anchor::Middle, &times.iter().map(time).collect::<Vec<_>>()),
        canvas::faint_all(Anchor::End, &levels.iter().map(level).collect::<Vec<_>>()),
        canvas::faint(
            [ACROSS[1], HEIGHT - 4.0],
            Anchor::End,
            "time since the start",
        ),
    ])
}

/// Unit of the vertical axis.
#[derive(Clone, Copy)]
enum Unit {
    Bytes,
    Count,
}

impl Unit {
    fn tell(self, value: f64) -> String {
        match self {
            Self::Bytes => Bytes(value as u64).to_string(),
            Self::Count => words::short_number(value),
        }
    }

    /// Returns ticks that are round in the unit of the highest value.
    fn ticks(self, up: &Scale) -> Vec<f64> {
        let units = Bytes::UNITS.map(|(unit, _)| unit);
        let fits = |unit: &f64| matches!(self, Self::Bytes) && up.end() >= *unit;
        let unit = units.into_iter().find(fits).unwrap_or(1.0);
        let ticks = Scale::linear([0.0, up.end() / unit], UP).round_ticks(5.0);
        ticks.iter().map(|tick| tick * unit).collect()
    }
}

fn drawn(curve: &Curve, scales: [&Scale; 2]) -> Node {
    let parts = curve.parts.iter();
    if !curve.is_area {
        let line = parts.map(|part| path(&seen(part, scales))).collect();
        return canvas::curve(curve.look, curve.name, line, Node::Several(Vec::new()));
    }
    let area = parts.map(|part| {
        let mut places = seen(part, scales);
        let feet = [places.first(), places.last()].map(|end| end.map(|[x, _]| [*x, UP[0]]));
        if let [Some(first), Some(last)] = feet {
            places.insert(0, first);
            places.push(last);
        }
        path(&places)
    });
    let area = filled(area.collect::<String>())
        .with("fill-opacity", "0.2")
        .with("stroke", "currentColor")
        .with("stroke-width", "1.5");
    canvas::group("curve ", curve.look).holding(area).into()
}

/// Returns the coordinates of points. Omits points that make no visible difference.
fn seen(places: &[Place], [across, up]: [&Scale; 2]) -> Vec<[f64; 2]> {
    let places = places.iter();
    let places: Vec<_> = places
        .map(|[at, value]| [across.at(*at), up.at(*value)])
        .collect();
    visible(&places)
}

fn path(places: &[[f64; 2]]) -> String {
    let mut path = String::new();
    for [x, y] in places {
        let start = if path.is_empty() { 'M' } else { 'L' };
        let _ = write!(path, "{start}{} {}", n(*x), n(*y));
    }
    path
}

/// Returns the legend, which is above the plot.
fn key(curves: &[&Curve]) -> Node {
    let entry = |(place, curve): (usize, &&Curve)| {
        let x = ACROSS[0] + 130.0 * place as f64;
        let line = coloured(canvas::strokes(&[[[x, 14.0], [x + 22.0, 14.0]]]))
            .with("stroke-width", "3")
            .with(
                "stroke-dasharray",
                if curve.is_area {
                    "none"
                } else {
                    curve.look.dashes()
                },
            );
        Node::from([
            canvas::group("key ", curve.look).holding(line).into(),
            canvas::text([x + 28.0, 18.0], Anchor::Start, curve.name),
        ])
    };
    curves.iter().enumerate().map(entry).collect()
}
