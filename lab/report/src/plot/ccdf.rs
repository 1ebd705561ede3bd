//! Complementary cumulative distributions: the share of times above each time. Both axes are
//! logarithmic, so a share of 0.1% is as visible as one of 50%.

use std::fmt::Write;

use heapdrome_schema::{Ccdf, CcdfPoint, Collection, Nanoseconds};

use super::canvas::{self, Anchor, Label};
use super::coordinate::n;
use super::look::{ALL_FITS, Look, Looks};
use super::node::Node;
use super::palette::COLOURS;
use super::scale::{FEWEST_TICKS, Scale};
use super::{Plot, stem};
use crate::foreign;
use crate::words;

const HEIGHT: f64 = 400.0;
/// Left and right edge of the plot. If a name is longer than [`NAME`] letters, the right edge is
/// further left.
const ACROSS: [f64; 2] = [64.0, 440.0];
const NAME: usize = 21;
/// Maximum number of letters of a name.
const LONGEST_NAME: usize = 40;
const LETTER: f64 = 7.0;
const UP: [f64; 2] = [344.0, 34.0];
/// Smallest share for which the vertical axis is extended.
const RAREST: f64 = 1e-6;
/// Vertical distance between two names at the right of the drawing.
const APART: f64 = 15.0;

/// The times of a curve, with its name.
type Named<'a> = (&'a str, &'a Ccdf);

/// The curves of one drawing.
struct Drawing<'a> {
    kind: String,
    curves: Vec<Named<'a>>,
}

/// Returns a drawing for each kind of times. If a kind has more curves than there are colours, the
/// cells with sufficient memory, whose curves are similar, are in a separate drawing.
fn drawings(collection: &Collection) -> Vec<Drawing<'_>> {
    let mut kinds: Vec<&str> = Vec::new();
    for ccdf in collection.ccdfs() {
        if !kinds.contains(&ccdf.kind.as_str()) {
            kinds.push(&ccdf.kind);
        }
    }
    let of_kind = |kind: &str| {
        let known = collection.ccdfs().iter();
        let known = known.filter(|ccdf| ccdf.kind == kind && !ccdf.points.is_empty());
        let curves: Vec<_> = known.map(|ccdf| (ccdf.cell.as_str(), ccdf)).collect();
        let kind = foreign::line(kind).replace('_', " ").replace(": ", ", ");
        let fits = |(cell, _): &Named<'_>| cell.ends_with(ALL_FITS);
        if curves.len() <= COLOURS.len() || !curves.iter().any(fits) {
            return vec![Drawing { kind, curves }];
        }
        let (fitting, other): (Vec<_>, Vec<_>) = curves.into_iter().partition(fits);
        let fitting = Drawing {
            kind: format!("{kind}{ALL_FITS}"),
            curves: fitting.into_iter().map(bare).collect(),
        };
        vec![
            Drawing {
                kind,
                curves: other,
            },
            fitting,
        ]
    };
    kinds.into_iter().flat_map(of_kind).collect()
}

/// Removes from a name the condition that the drawing's title states.
fn bare((cell, ccdf): Named<'_>) -> Named<'_> {
    (cell.strip_suffix(ALL_FITS).unwrap_or(cell), ccdf)
}

/// Returns the plots of a collection's distributions. `prefix` converts a drawing's position into
/// the beginning of its name.
pub(crate) fn plots(
    collection: &Collection,
    prefix: impl Fn(usize) -> String,
    looks: &Looks,
) -> Vec<Plot> {
    let all = drawings(collection).into_iter().enumerate();
    all.filter_map(|(place, drawing)| plot(&drawing, &prefix(place), looks))
        .collect()
}

/// The scales and the edges of a drawing.
struct Paper {
    x: Scale,
    y: Scale,
    /// The right edge of the plot.
    right: f64,
    /// Number of letters of a name that fit at the right of the plot.
    letters: usize,
}

impl Paper {
    /// Returns a paper that contains every time, and every share from [`RAREST`] up; `None` if no
    /// curve has a point.
    fn of(curves: &[Named<'_>]) -> Option<Self> {
        let points = || curves.iter().flat_map(|(_, ccdf)| &ccdf.points);
        let times = || points().map(|point| point.time.0.max(1) as f64);
        let shares = points().map(|point| point.above);
        let shares = shares.filter(|share| *share > 0.0);
        let low = times().reduce(f64::min)?;
        let high = times().fold(low, f64::max);
        let rarest = shares.fold(0.1, f64::min).max(RAREST);
        let letters = curves.iter().map(|(name, _)| name.chars().count());
        let letters = letters.max().unwrap_or(0).clamp(NAME, LONGEST_NAME);
        let right = ACROSS[1] - LETTER * (letters - NAME) as f64;
        Some(Self {
            x: Scale::logarithmic([low / 1.1, high * 1.1], [ACROSS[0], right]),
            y: Scale::logarithmic([rarest / 2.0, 1.0], UP),
            right,
            letters,
        })
    }
}

fn plot(drawing: &Drawing<'_>, prefix: &str, looks: &Looks) -> Option<Plot> {
    let Drawing { kind, curves } = drawing;
    let paper = Paper::of(curves)?;
    let label = Label {
        name: format!("{prefix}{}", stem(kind)),
        title: format!("{kind}: how often a time was exceeded"),
        description: described(curves),
    };
    let names: Vec<&str> = curves.iter().map(|(name, _)| *name).collect();
    let looks = looks.of_names(&names);
    let drawn = |(number, ((name, ccdf), look)): (usize, (&Named<'_>, Look))| {
        curve((name, look), ccdf, &paper, UP[1] + APART * number as f64)
    };
    let named = curves.iter().zip(looks).enumerate();
    let body = Node::from([axes(kind, &paper), named.map(drawn).collect()]);
    let height = HEIGHT.max(UP[1] + APART * curves.len() as f64 + 8.0);
    let caption = format!(
        "{kind}: the share of times that were longer than the time below it; left and down is \
         better. At the lower edge a curve ends with its longest time."
    );
    Some(Plot {
        has_curves: true,
        ..Plot::new(label, caption, height, None, body)
    })
}

fn axes(kind: &str, paper: &Paper) -> Node {
    let Paper { x, y, right, .. } = paper;
    let (columns, lines) = (decades(x, 60.0), decades(y, 30.0));
    let at = |scale: &Scale, ticks: &[f64]| -> Vec<f64> {
        ticks.iter().map(|tick| scale.at(*tick)).collect()
    };
    let what = format!("{kind}: share of times that were longer (log scale)");
    let below = |tick: &f64| {
        let time = Nanoseconds(*tick as u64).to_string();
        canvas::faint([x.at(*tick), UP[0] + 17.0], Anchor::Middle, &time)
    };
    let beside = |tick: &f64| {
        canvas::faint(
            [ACROSS[0] - 6.0, y.at(*tick) + 4.0],
            Anchor::End,
            &share(*tick),
        )
    };
    let middle = [(ACROSS[0] + right) / 2.0, HEIGHT - 14.0];
    Node::from([
        canvas::text([ACROSS[0], 18.0], Anchor::Start, &what),
        canvas::frame([[ACROSS[0], *right], UP], &at(x, &columns), &at(y, &lines)),
        columns.iter().map(below).collect(),
        lines.iter().map(beside).collect(),
        canvas::text(middle, Anchor::Middle, "time (log scale)"),
    ])
}

/// Returns the powers of ten on a scale. If there are few, returns round values that are at least
/// `apart` from each other instead.
fn decades(scale: &Scale, apart: f64) -> Vec<f64> {
    let powers = (-9..=13).map(|power| 10_f64.powi(power));
    let powers: Vec<f64> = powers.filter(|power| scale.holds(*power)).collect();
    match powers.len() {
        FEWEST_TICKS.. => powers,
        _ => scale.ratio_ticks(apart),
    }
}

/// Formats a share, such as `10%` or `0.01%`.
fn share(part: f64) -> String {
    let percent = format!("{:.6}", part * 100.0);
    format!("{}%", percent.trim_end_matches('0').trim_end_matches('.'))
}

/// Returns one curve. Its name is at the right of the plot, at the vertical position `beside`.
fn curve((name, look): (&str, Look), ccdf: &Ccdf, paper: &Paper, beside: f64) -> Node {
    let Paper { x, y, right, .. } = paper;
    let short = foreign::short_name(name, paper.letters);
    let name = foreign::line(name);
    let at = |time: Nanoseconds| x.at(time.0.max(1) as f64);
    let mut path = String::new();
    for point in &ccdf.points {
        let start = if path.is_empty() { 'M' } else { 'L' };
        let _ = write!(
            path,
            "{start}{} {}",
            n(at(point.time)),
            n(y.at(point.above))
        );
    }
    let marker = |point: &CcdfPoint| {
        let says = format!(
            "{name}: {} of times over {}",
            share(point.above),
            point.time
        );
        look.marker([at(point.time), y.at(point.above)], 3.5, Some(&says))
    };
    let rest = Node::from([
        ccdf.points.iter().map(marker).collect(),
        look.marker([right + 14.0, beside], 4.0, None),
        canvas::text([right + 23.0, beside + 4.5], Anchor::Start, &short),
    ]);
    canvas::curve(look, &name, path, rest)
}

fn described(curves: &[Named<'_>]) -> String {
    let told = curves.iter().map(|(name, ccdf)| {
        let points = ccdf.points.iter();
        let points = points.map(|point| format!("{} over {}", share(point.above), point.time));
        format!(
            "{}, {}: {}",
            foreign::line(name),
            words::count(ccdf.count, "time"),
            points.collect::<Vec<_>>().join(", ")
        )
    });
    told.collect::<Vec<_>>().join("; ")
}
