//! What becomes of a figure as a parameter grows: a curve for each allocator.

use std::fmt::Write;

use heapdrome_record::{EntrantResult, Factor, Role, ScalingPoint, Series, Status};
use maud::{Markup, html};

use super::canvas::{self, Anchor, Label, n};
use super::group::{At, Group};
use super::look::Look;
use super::measures::Unit;
use super::scale::{Scale, ratio_text};
use super::{Plot, stem};
use crate::foreign;
use crate::sheet::OPERATIONS;

const HEIGHT: f64 = 400.0;
const ACROSS: [f64; 2] = [76.0, 490.0];
const UP: [f64; 2] = [344.0, 34.0];

/// One allocator's values over a group.
#[derive(Clone)]
struct Curve {
    name: String,
    look: Look,
    points: Vec<Point>,
}

/// One value, where it stands, and its interval where there is one.
#[derive(Clone)]
struct Point {
    place: f64,
    label: String,
    value: f64,
    ends: Option<[f64; 2]>,
}

/// The curves of a group: wall time, and the degradation where it is known or the workload counts
/// operations.
pub(super) fn plots(group: &Group<'_>, prefix: &str) -> Vec<Plot> {
    let wall = curves(group, |row| row.wall_s.as_ref());
    let mut plots: Vec<Plot> = draw(
        (group, prefix),
        &wall,
        ("wall", Unit::Seconds, "wall time"),
        "medians; lower is better",
    )
    .into_iter()
    .collect();
    if !group.curves.is_empty() {
        plots.extend(scaled(group, prefix));
        return plots;
    }
    let degraded = degradation(&curves(group, |row| row.metrics.get(OPERATIONS)));
    plots.extend(draw(
        (group, prefix),
        &degraded,
        (
            "degradation",
            Unit::Number,
            "CPU time per operation, 1 = at the first",
        ),
        "degradation: the ratio of CPU times over the ratio of operations, from medians; lower is \
         better; no interval is known",
    ));
    plots
}

/// The degradation with its intervals; per processor, too, where that is another figure.
fn scaled(group: &Group<'_>, prefix: &str) -> Vec<Plot> {
    let names = curves(group, |row| row.wall_s.as_ref());
    let take = |pick: fn(&ScalingPoint) -> Option<&Factor>| -> Vec<Curve> {
        let of = |curve: &Curve| {
            let mut known = group.curves.iter();
            let own = known.find(|one| one.allocator == curve.name);
            let points = group.races.iter().filter_map(|race| {
                let points = own?.points.iter();
                let of_race = |point: &&ScalingPoint| point.cell == race.member.cell;
                let factor = points.into_iter().find(of_race).and_then(pick)?;
                Some(Point {
                    place: race.place,
                    label: race.label.clone(),
                    value: factor.ratio,
                    ends: Some([factor.low, factor.high]),
                })
            });
            Curve {
                points: points.filter(|point| point.value > 0.0).collect(),
                ..curve.clone()
            }
        };
        names.iter().map(of).collect()
    };
    let plain = take(|point| point.degradation.as_ref());
    let each = take(|point| point.per_processor.as_ref());
    let differ = plain.iter().zip(&each).any(|(plain, each)| {
        let values = |curve: &Curve| curve.points.iter().map(|one| one.value).collect::<Vec<_>>();
        values(plain) != values(each)
    });
    let note = "degradation: the ratio of wall times over the ratio of work, 1 at the first; lower is \
                better; the bars are intervals";
    let told = (
        "degradation",
        Unit::Number,
        "time over work, 1 = at the first",
    );
    let mut plots: Vec<Plot> = draw((group, prefix), &plain, told, note)
        .into_iter()
        .collect();
    if differ {
        let told = (
            "degradation-per-processor",
            Unit::Number,
            "time over work per processor, 1 = at the first",
        );
        plots.extend(draw((group, prefix), &each, told, note));
    }
    plots
}

/// The medians of a figure, the baseline first.
fn curves(group: &Group<'_>, of: fn(&EntrantResult) -> Option<&Series>) -> Vec<Curve> {
    let rows = || {
        let members = group.races.iter().map(|race| race.member);
        members.flat_map(|member| &member.result.entrants)
    };
    let mut names: Vec<(&str, Role)> = Vec::new();
    for role in [Role::Baseline, Role::Rival] {
        for row in rows().filter(|row| row.role == role) {
            if !names.iter().any(|(name, _)| *name == row.allocator) {
                names.push((&row.allocator, role));
            }
        }
    }
    let mut rivals = 0;
    let curve = |(name, role): (&str, Role)| {
        let look = if role == Role::Baseline {
            Look::BASELINE
        } else {
            rivals += 1;
            Look::rival(rivals - 1)
        };
        let point = |race: &At<'_>| {
            let counts = |row: &&EntrantResult| {
                row.allocator == name && row.role != Role::Twin && row.status == Status::Ok
            };
            let row = race.member.result.entrants.iter().find(counts)?;
            let value = of(row)?.median;
            let known = value.is_finite() && value > 0.0;
            known.then(|| Point {
                place: race.place,
                label: race.label.clone(),
                value,
                ends: None,
            })
        };
        Curve {
            name: name.to_owned(),
            look,
            points: group.races.iter().filter_map(point).collect(),
        }
    };
    names.into_iter().map(curve).collect()
}

/// Operations per CPU second at the first value over those at each: how much dearer one became.
fn degradation(operations: &[Curve]) -> Vec<Curve> {
    let degraded = |curve: &Curve| {
        let first = curve.points.first().map_or(1.0, |first| first.value);
        let points = curve.points.iter().map(|point| Point {
            value: first / point.value,
            ..point.clone()
        });
        Curve {
            points: points.collect(),
            ..curve.clone()
        }
    };
    operations.iter().map(degraded).collect()
}

fn draw(
    (group, prefix): (&Group<'_>, &str),
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
    let across = across(group);
    let name = format!("{prefix}sweep-{}-{id}", stem(&group.name));
    let label = Label {
        name: name.clone(),
        title: format!("{}: {title}", group.name),
        description: described(curves, unit),
    };
    let body = html! {
        (axes(group, title, unit, [&across, &up]))
        @for (curve, end) in curves.iter().zip(ends(curves, &up)) {
            (line(curve, unit, [&across, &up], end))
        }
    };
    Some(Plot {
        name,
        caption: format!("{}: {title} ({note}).", group.name),
        drawing: canvas::svg(&label, HEIGHT, None, &body),
    })
}

/// The swept values by their logarithms, as they usually double.
fn across(group: &Group<'_>) -> Scale {
    let values = || group.races.iter().map(|race| race.place);
    let low = values().fold(f64::INFINITY, f64::min);
    let high = values().fold(0.0, f64::max);
    let paper = [ACROSS[0] + 12.0, ACROSS[1] - 12.0];
    if group.by_logarithm {
        Scale::logarithmic([low, high], paper)
    } else {
        Scale::linear([low, high], paper)
    }
}

fn axes(group: &Group<'_>, title: &str, unit: Unit, [x, y]: [&Scale; 2]) -> Markup {
    html! {
        (canvas::text([ACROSS[0], 18.0], Anchor::Start, &format!("{title} (log scale)")))
        @for race in &group.races {
            @let at = x.at(race.place);
            (canvas::grid([at, UP[0]], [at, UP[1]]))
            (canvas::faint([at, UP[0] + 17.0], Anchor::Middle, &foreign::shorten(&race.label, 10)))
        }
        @for tick in y.ratio_ticks(30.0) {
            (canvas::grid([ACROSS[0], y.at(tick)], [ACROSS[1], y.at(tick)]))
            @let told = if unit == Unit::Number { ratio_text(tick) } else { unit.tell(tick) };
            (canvas::faint([ACROSS[0] - 6.0, y.at(tick) + 4.0], Anchor::End, &told))
        }
        (canvas::axis([ACROSS[0], UP[0]], [ACROSS[1], UP[0]]))
        (canvas::axis([ACROSS[0], UP[0]], [ACROSS[0], UP[1]]))
        (canvas::text([(ACROSS[0] + ACROSS[1]) / 2.0, HEIGHT - 14.0], Anchor::Middle,
                      &group.parameter))
    }
}

fn line(curve: &Curve, unit: Unit, [x, y]: [&Scale; 2], end: f64) -> Markup {
    let look = curve.look;
    let mut path = String::new();
    for point in &curve.points {
        let start = if path.is_empty() { 'M' } else { 'L' };
        let _ = write!(
            path,
            "{start}{} {}",
            n(x.at(point.place)),
            n(y.at(point.value))
        );
    }
    let name = foreign::name(&curve.name);
    html! {
        @if let Some(last) = curve.points.last() {
            g class="curve" data-name=(name) {
                path class={ (look.class()) " line" } d=(path) fill="none" stroke=(look.colour())
                    stroke-width="1.8" stroke-dasharray=(look.dashes()) {}
                @for point in &curve.points {
                    @let at = x.at(point.place);
                    @if let Some([low, high]) = point.ends.filter(|[low, high]| low < high) {
                        path class={ (look.class()) " line" } fill="none" stroke=(look.colour())
                            stroke-width="1.2"
                            d={ "M" (n(at)) " " (n(y.at(low))) "L" (n(at)) " " (n(y.at(high))) } {}
                    }
                    @let says = format!("{name} at {}: {}", point.label, told(point, unit));
                    (look.marker([at, y.at(point.value)], 4.5, false, Some(&says)))
                }
                path class="grid" fill="none" stroke=(canvas::GRID)
                    d={ "M" (n(x.at(last.place) + 6.0)) " " (n(y.at(last.value)))
                        "L" (n(ACROSS[1] + 8.0)) " " (n(end)) } {}
                (look.marker([ACROSS[1] + 14.0, end], 4.0, false, None))
                (canvas::text([ACROSS[1] + 23.0, end + 4.5], Anchor::Start,
                              &foreign::short_name(&curve.name, 17)))
            }
        }
    }
}

/// Where the name of each curve stands: near its end, and apart from the others.
fn ends(curves: &[Curve], up: &Scale) -> Vec<f64> {
    const APART: f64 = 15.0;
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
