//! Curves over a parameter, one for each allocator, both axes by their logarithms where that can be.

use std::fmt::Write;

use maud::{Markup, html};

use super::Plot;
use super::canvas::{self, Anchor, Label, n};
use super::look::Look;
use super::measures::Unit;
use super::scale::{Scale, ratio_text};
use crate::foreign;

const HEIGHT: f64 = 400.0;
/// Where the plot begins, and where it ends beside names of as many letters as [`NAME`].
const ACROSS: [f64; 2] = [76.0, 490.0];
const NAME: usize = 17;
/// The most letters of a name, and the width of each.
const LONGEST_NAME: usize = 24;
const LETTER: f64 = 7.0;
const UP: [f64; 2] = [344.0, 34.0];
/// Between two names beside the drawing.
const APART: f64 = 15.0;
/// Beside the first value and the last.
const MARGIN: f64 = 12.0;
/// Between two intervals at one value, where there is room, and the part of the way to the next value that all
/// of them may take.
const BESIDE: f64 = 9.0;
const SPREAD: f64 = 0.7;

/// What the values of a parameter are drawn on.
pub(super) struct Across {
    /// What the names of its drawings begin with.
    pub(super) stem: String,
    /// What is drawn.
    pub(super) name: String,
    pub(super) parameter: String,
    /// Where each value stands, from left to right, and how it is told.
    pub(super) ticks: Vec<(f64, String)>,
    /// Whether the values stand by their logarithms, as those do that double.
    pub(super) by_logarithm: bool,
}

/// One allocator's values over a parameter.
#[derive(Clone)]
pub(super) struct Curve {
    pub(super) name: String,
    pub(super) look: Look,
    pub(super) points: Vec<Point>,
}

/// One value, where it stands, and its interval where there is one.
#[derive(Clone)]
pub(super) struct Point {
    pub(super) place: f64,
    pub(super) label: String,
    pub(super) value: f64,
    pub(super) ends: Option<[f64; 2]>,
}

/// What a drawing is drawn on.
struct Paper {
    x: Scale,
    y: Scale,
    /// Where the plot ends.
    right: f64,
    /// How many letters of a name fit beside it.
    letters: usize,
    unit: Unit,
}

/// The drawing of a figure: its name and unit and what it is called; if any curve has two points.
pub(super) fn draw(
    on: &Across,
    curves: &[Curve],
    what: (&str, Unit, &str),
    note: &str,
) -> Option<Plot> {
    let (id, unit, title) = what;
    let values = || {
        let points = curves.iter().flat_map(|curve| &curve.points);
        let ends = points.map(|point| point.ends.unwrap_or([point.value; 2]));
        ends.flatten().filter(|end| end.is_finite() && *end > 0.0)
    };
    if !curves.iter().any(|curve| curve.points.len() >= 2) {
        return None;
    }
    let low = values().fold(f64::INFINITY, f64::min);
    let high = values().fold(f64::NEG_INFINITY, f64::max);
    let margin = (high / low).powf(0.05).max(1.02);
    let up = Scale::logarithmic([low / margin, high * margin], UP);
    let longest = curves.iter().map(|curve| curve.name.chars().count());
    let letters = longest.max().unwrap_or(0).clamp(NAME, LONGEST_NAME);
    let right = ACROSS[1] - LETTER * (letters - NAME) as f64;
    let shifts = shifts(on, curves, right);
    let margin = MARGIN + shifts.iter().copied().fold(0.0, f64::max);
    let paper = Paper {
        x: across(on, right, margin),
        y: up,
        right,
        letters,
        unit,
    };
    let name = format!("{}-{id}", on.stem);
    let names = APART
        * curves
            .iter()
            .filter(|curve| !curve.points.is_empty())
            .count() as f64;
    let label = Label {
        name: name.clone(),
        title: format!("{}: {title}", on.name),
        description: described(curves, unit),
    };
    let body = html! {
        (axes(on, title, &paper))
        @for ((curve, end), shift) in curves.iter().zip(ends(curves, &paper.y)).zip(shifts) {
            (line(curve, &paper, end, shift))
        }
    };
    Some(Plot {
        name,
        caption: format!("{}: {title} ({note}).", on.name),
        narrow: None,
        drawing: canvas::svg(&label, HEIGHT.max(names + 48.0), None, &body),
    })
}

/// How far to the side of its values each curve is drawn, so that intervals at one value stand side by side.
fn shifts(on: &Across, curves: &[Curve], right: f64) -> Vec<f64> {
    let has_interval = |point: &Point| point.ends.is_some_and(|[low, high]| low < high);
    let drawn = |curve: &&Curve| !curve.points.is_empty();
    let count = curves.iter().filter(drawn).count() as f64;
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

fn axes(on: &Across, title: &str, paper: &Paper) -> Markup {
    let Paper {
        x, y, right, unit, ..
    } = paper;
    let ticks = y.ratio_ticks(30.0);
    let columns: Vec<f64> = on.ticks.iter().map(|(place, _)| x.at(*place)).collect();
    let lines: Vec<f64> = ticks.iter().map(|tick| y.at(*tick)).collect();
    html! {
        (canvas::text([ACROSS[0], 18.0], Anchor::Start, &format!("{title} (log scale)")))
        (canvas::frame([[ACROSS[0], *right], UP], &columns, &lines))
        @for ((_, label), at) in on.ticks.iter().zip(columns) {
            (canvas::faint([at, UP[0] + 17.0], Anchor::Middle, &foreign::shorten(label, 10)))
        }
        @for tick in ticks {
            @let told = if *unit == Unit::Number && tick < 1000.0 { ratio_text(tick) } else { unit.tell(tick) };
            (canvas::faint([ACROSS[0] - 6.0, y.at(tick) + 4.0], Anchor::End, &told))
        }
        (canvas::text([(ACROSS[0] + right) / 2.0, HEIGHT - 14.0], Anchor::Middle,
                      &on.parameter))
    }
}

/// A curve, `shift` beside its values, with its name at `end`.
fn line(curve: &Curve, paper: &Paper, end: f64, shift: f64) -> Markup {
    let Paper { x, y, right, .. } = paper;
    let look = curve.look;
    let mut path = String::new();
    for point in &curve.points {
        let start = if path.is_empty() { 'M' } else { 'L' };
        let _ = write!(
            path,
            "{start}{} {}",
            n(x.at(point.place) + shift),
            n(y.at(point.value))
        );
    }
    let name = foreign::name(&curve.name);
    html! {
        @if let Some(last) = curve.points.last() {
            g class={ "curve " (look.class()) } color=(look.colour()) data-name=(name) data-mark=(look.mark()) {
                path d=(path) fill="none" stroke="currentColor"
                    stroke-width="1.8" stroke-dasharray=(look.dashes()) {}
                @for point in &curve.points {
                    @let at = x.at(point.place) + shift;
                    @if let Some([low, high]) = point.ends.filter(|[low, high]| low < high) {
                        path fill="none" stroke="currentColor" stroke-width="1.2"
                            d=(canvas::strokes(&[[[at, y.at(low)], [at, y.at(high)]]])) {}
                    }
                    @let says = format!("{name} at {}: {}", point.label, told(point, paper.unit));
                    (look.marker([at, y.at(point.value)], 4.5, Some(&says)))
                }
                (canvas::grid(&[[[x.at(last.place) + shift + 6.0, y.at(last.value)], [right + 8.0, end]]]))
                (look.marker([right + 14.0, end], 4.0, None))
                (canvas::text([right + 23.0, end + 4.5], Anchor::Start,
                              &foreign::short_name(&curve.name, paper.letters)))
            }
        }
    }
}

/// Where the name of each curve stands: near its end, and apart from the others.
fn ends(curves: &[Curve], up: &Scale) -> Vec<f64> {
    let wanted = |curve: &Curve| {
        curve
            .points
            .last()
            .map_or(f64::INFINITY, |last| up.at(last.value))
    };
    let mut order: Vec<usize> = (0..curves.len()).collect();
    order.sort_by(|a, b| wanted(&curves[*a]).total_cmp(&wanted(&curves[*b])));
    let named = curves
        .iter()
        .filter(|curve| !curve.points.is_empty())
        .count() as f64;
    let mut places = vec![0.0; curves.len()];
    let mut above = f64::NEG_INFINITY;
    for (rank, place) in order.into_iter().enumerate() {
        // Those that follow need room above the lower edge.
        let lowest = HEIGHT - 24.0 - APART * (named - 1.0 - rank as f64);
        let at = wanted(&curves[place])
            .min(lowest)
            .max(above + APART)
            .max(12.0);
        places[place] = at;
        above = at;
    }
    places
}

/// A value with its interval.
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
mod tests {
    use super::*;

    fn curve(ends: Option<[f64; 2]>) -> Curve {
        let point = |place: f64| Point {
            place,
            label: place.to_string(),
            value: 1.0,
            ends,
        };
        Curve {
            name: "one".to_owned(),
            look: Look::BASELINE,
            points: [1.0, 2.0, 4.0].map(point).to_vec(),
        }
    }

    #[test]
    fn intervals_at_one_value_stand_side_by_side_within_the_drawing() {
        let on = Across {
            stem: String::new(),
            name: String::new(),
            parameter: String::new(),
            ticks: [1.0, 2.0, 4.0]
                .map(|place| (place, place.to_string()))
                .to_vec(),
            by_logarithm: true,
        };
        let nobody = Curve {
            points: Vec::new(),
            ..curve(None)
        };
        for count in [2, 8, 20] {
            let mut curves = vec![curve(Some([0.9, 1.1])); count];
            curves.insert(1, nobody.clone());
            let mut shifts = shifts(&on, &curves, 490.0);
            shifts.remove(1);
            let apart = shifts.windows(2).map(|pair| pair[1] - pair[0]);
            assert!(apart.fold(f64::INFINITY, f64::min) > 4.0, "{shifts:?}");
            assert!((shifts[0] + shifts[count - 1]).abs() < 1e-9, "{shifts:?}");
            let drawn = draw(&on, &curves, ("x", Unit::Number, "x"), "x").expect("curves");
            let svg = drawn.drawing.0;
            let places = svg.split(" stroke-width=\"1.2\" d=\"M").skip(1);
            let places: std::collections::HashSet<&str> =
                places.filter_map(|rest| rest.split(' ').next()).collect();
            assert_eq!(places.len(), 3 * count, "no stroke hides another");
            let lies = |x: &&str| x.parse().is_ok_and(|x: f64| (76.0..490.0).contains(&x));
            assert!(places.iter().all(lies), "{places:?}");
        }
        let plain = vec![curve(None); 3];
        assert_eq!(shifts(&on, &plain, 490.0), [0.0; 3]);
    }
}
