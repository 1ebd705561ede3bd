//! How often times were exceeded: complementary cumulative distributions, both axes by their logarithms,
//! so that a thousandth of all times is as well seen as a half.

use std::fmt::Write;

use heapdrome_record::{Ccdf, Collection, Nanoseconds};
use maud::{Markup, html};

use super::canvas::{self, Anchor, Label, n};
use super::look::{Look, Looks};
use super::scale::{FEWEST_TICKS, Scale};
use super::{Plot, stem};
use crate::foreign;
use crate::words;

const HEIGHT: f64 = 400.0;
/// Where the plot begins, and where it ends beside names of as many letters as [`NAME`].
const ACROSS: [f64; 2] = [64.0, 440.0];
const NAME: usize = 21;
/// The most letters of a name, and the width of each.
const LONGEST_NAME: usize = 36;
const LETTER: f64 = 7.0;
const UP: [f64; 2] = [344.0, 34.0];
/// Rarer than this is drawn on the lower edge.
const RAREST: f64 = 1e-6;
/// Between two names beside the drawing.
const APART: f64 = 15.0;

/// A drawing for each kind of time, its name after what `prefix` makes of its place.
pub(crate) fn plots(
    collection: &Collection,
    prefix: impl Fn(usize) -> String,
    looks: &Looks,
) -> Vec<Plot> {
    let mut kinds: Vec<&str> = Vec::new();
    for ccdf in &collection.ccdfs {
        if !kinds.contains(&ccdf.kind.as_str()) {
            kinds.push(&ccdf.kind);
        }
    }
    let of_kind = |kind: &str| -> Vec<&Ccdf> {
        let all = collection.ccdfs.iter().filter(|ccdf| ccdf.kind == kind);
        all.filter(|ccdf| !ccdf.points.is_empty()).collect()
    };
    let all = kinds.into_iter().enumerate();
    all.filter_map(|(place, kind)| plot(kind, &of_kind(kind), (&prefix(place), looks)))
        .collect()
}

fn plot(kind: &str, ccdfs: &[&Ccdf], (prefix, looks): (&str, &Looks)) -> Option<Plot> {
    let times = || ccdfs.iter().flat_map(|ccdf| &ccdf.points);
    let times = || times().map(|point| point.time.0.max(1) as f64);
    let shares = ccdfs.iter().flat_map(|ccdf| &ccdf.points);
    let shares = shares.map(|point| point.above).filter(|share| *share > 0.0);
    let low = times().reduce(f64::min)?;
    let high = times().fold(low, f64::max);
    let rarest = shares.fold(0.1, f64::min).max(RAREST);
    let letters = ccdfs.iter().map(|ccdf| ccdf.cell.chars().count());
    let letters = letters.max().unwrap_or(0).clamp(NAME, LONGEST_NAME);
    let right = ACROSS[1] - LETTER * (letters - NAME) as f64;
    let across = Scale::logarithmic([low / 1.1, high * 1.1], [ACROSS[0], right]);
    let up = Scale::logarithmic([rarest / 2.0, 1.0], UP);
    let kind = foreign::line(kind).replace('_', " ");
    let name = format!("{prefix}{}", stem(&kind));
    let label = Label {
        name: name.clone(),
        title: format!("How often a time was exceeded: {kind}"),
        description: described(ccdfs),
    };
    let body = html! {
        (axes(&kind, [&across, &up], right))
        @for (number, ccdf) in ccdfs.iter().enumerate() { (curve((number, looks.get(&ccdf.cell)), ccdf, [&across, &up], (right, letters))) }
    };
    let height = HEIGHT.max(UP[1] + APART * ccdfs.len() as f64 + 8.0);
    Some(Plot {
        name,
        caption: format!(
            "{kind}: the share of times that were longer than the time below it; left and down is \
             better. At the lower edge a curve ends with its longest time."
        ),
        narrow: None,
        drawing: canvas::svg(&label, height, None, &body),
    })
}

fn axes(kind: &str, [x, y]: [&Scale; 2], right: f64) -> Markup {
    let (columns, lines) = (decades(x, 60.0), decades(y, 30.0));
    let at = |scale: &Scale, ticks: &[f64]| -> Vec<f64> {
        ticks.iter().map(|tick| scale.at(*tick)).collect()
    };
    html! {
        (canvas::text([ACROSS[0], 18.0], Anchor::Start, &format!("share of {kind} times that were longer (log scale)")))
        (canvas::frame([[ACROSS[0], right], UP], &at(x, &columns), &at(y, &lines)))
        @for tick in columns {
            (canvas::faint([x.at(tick), UP[0] + 17.0], Anchor::Middle,
                           &Nanoseconds(tick as u64).to_string()))
        }
        @for tick in lines {
            (canvas::faint([ACROSS[0] - 6.0, y.at(tick) + 4.0], Anchor::End, &share(tick)))
        }
        (canvas::text([(ACROSS[0] + right) / 2.0, HEIGHT - 14.0], Anchor::Middle,
                      "time (log scale)"))
    }
}

/// The powers of ten on a scale; more where it holds few of them, no closer than `apart`.
fn decades(scale: &Scale, apart: f64) -> Vec<f64> {
    let powers = (-9..=13).map(|power| 10_f64.powi(power));
    let powers: Vec<f64> = powers.filter(|power| scale.holds(*power)).collect();
    match powers.len() {
        FEWEST_TICKS.. => powers,
        _ => scale.ratio_ticks(apart),
    }
}

/// `10%`, `0.01%`.
fn share(part: f64) -> String {
    let percent = format!("{:.6}", part * 100.0);
    format!("{}%", percent.trim_end_matches('0').trim_end_matches('.'))
}

/// One curve, the `number`th from the top by name. Beside the plot, which ends at `right`, so many letters of
/// its name fit.
fn curve(
    (number, look): (usize, Look),
    ccdf: &Ccdf,
    [x, y]: [&Scale; 2],
    (right, letters): (f64, usize),
) -> Markup {
    let name = foreign::line(&ccdf.cell);
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
    let beside = UP[1] + APART * number as f64;
    html! {
        g class={ "curve " (look.class()) } color=(look.colour()) data-name=(name) data-mark=(look.mark()) {
            path d=(path) fill="none" stroke="currentColor"
                stroke-width="1.8" stroke-dasharray=(look.dashes()) {}
            @for point in &ccdf.points {
                @let says = format!("{name}: {} of times over {}", share(point.above), point.time);
                (look.marker([at(point.time), y.at(point.above)], 3.5, Some(&says)))
            }
            (look.marker([right + 14.0, beside], 4.0, None))
            (canvas::text([right + 23.0, beside + 4.5], Anchor::Start,
                          &foreign::short_name(&ccdf.cell, letters)))
        }
    }
}

fn described(ccdfs: &[&Ccdf]) -> String {
    let told = ccdfs.iter().map(|ccdf| {
        let points = ccdf.points.iter();
        let points = points.map(|point| format!("{} over {}", share(point.above), point.time));
        format!(
            "{}, {}: {}",
            foreign::line(&ccdf.cell),
            words::count(ccdf.count, "time"),
            points.collect::<Vec<_>>().join(", ")
        )
    });
    told.collect::<Vec<_>>().join("; ")
}
