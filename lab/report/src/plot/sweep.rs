//! What becomes of a figure as a parameter grows: a curve for each allocator.

use std::fmt::Write;

use heapdrome_record::{Collection, EntrantResult, Member, Role, Series, Status};
use maud::{Markup, html};

use super::canvas::{self, Anchor, Label, n};
use super::look::Look;
use super::measures::Unit;
use super::scale::{Scale, ratio_text};
use super::{Plot, stem};
use crate::foreign;
use crate::sheet::OPERATIONS;

const HEIGHT: f64 = 400.0;
const ACROSS: [f64; 2] = [76.0, 490.0];
const UP: [f64; 2] = [344.0, 34.0];

/// The races of a collection that differ in one parameter alone.
pub(crate) struct Group<'a> {
    /// The cell, or the name of the sweep.
    pub(crate) name: String,
    /// At least two, by rising value.
    races: Vec<(u64, &'a Member)>,
}

/// One allocator's values over a group.
struct Curve {
    name: String,
    look: Look,
    points: Vec<(u64, f64)>,
}

/// The groups of races that sweep a parameter.
pub(crate) fn groups(collection: &Collection) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for race in &collection.races {
        let Some(value) = race.swept else { continue };
        let name = match collection.scale {
            Some(_) => foreign::line(&race.cell),
            None => foreign::line(&format!("{}, {}", race.workload, collection.name)),
        };
        match groups.iter_mut().find(|group| group.name == name) {
            Some(group) => group.races.push((value, race)),
            None => groups.push(Group {
                name,
                races: vec![(value, race)],
            }),
        }
    }
    for group in &mut groups {
        group.races.sort_by_key(|(value, _)| *value);
        group.races.dedup_by_key(|(value, _)| *value);
    }
    groups.retain(|group| group.races.len() >= 2);
    groups
}

/// The curves of a group: wall time, and the degradation where the workload counts operations.
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

/// The medians of a figure, the baseline first.
fn curves(group: &Group<'_>, of: fn(&EntrantResult) -> Option<&Series>) -> Vec<Curve> {
    let rows = || {
        group
            .races
            .iter()
            .flat_map(|(_, race)| &race.result.entrants)
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
        let point = |(value, race): &(u64, &Member)| {
            let counts = |row: &&EntrantResult| {
                row.allocator == name && row.role != Role::Twin && row.status == Status::Ok
            };
            let row = race.result.entrants.iter().find(counts)?;
            let median = of(row)?.median;
            (median.is_finite() && median > 0.0).then_some((*value, median))
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
        let first = curve.points.first().map_or(1.0, |(_, first)| *first);
        let points = curve
            .points
            .iter()
            .map(|(value, rate)| (*value, first / rate));
        Curve {
            name: curve.name.clone(),
            look: curve.look,
            points: points.collect(),
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
        curves
            .iter()
            .flat_map(|curve| curve.points.iter().map(|(_, value)| *value))
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
    let values = || group.races.iter().map(|(value, _)| *value as f64);
    let low = values().fold(f64::INFINITY, f64::min);
    let high = values().fold(0.0, f64::max);
    let paper = [ACROSS[0] + 12.0, ACROSS[1] - 12.0];
    if low > 0.0 {
        Scale::logarithmic([low, high], paper)
    } else {
        Scale::linear([low, high], paper)
    }
}

fn axes(group: &Group<'_>, title: &str, unit: Unit, [x, y]: [&Scale; 2]) -> Markup {
    let swept = foreign::name(swept(group));
    html! {
        (canvas::text([ACROSS[0], 18.0], Anchor::Start, &format!("{title} (log scale)")))
        @for (value, _) in &group.races {
            @let at = x.at(*value as f64);
            (canvas::grid([at, UP[0]], [at, UP[1]]))
            (canvas::faint([at, UP[0] + 17.0], Anchor::Middle, &value.to_string()))
        }
        @for tick in y.ratio_ticks(30.0) {
            (canvas::grid([ACROSS[0], y.at(tick)], [ACROSS[1], y.at(tick)]))
            @let told = if unit == Unit::Number { ratio_text(tick) } else { unit.tell(tick) };
            (canvas::faint([ACROSS[0] - 6.0, y.at(tick) + 4.0], Anchor::End, &told))
        }
        (canvas::axis([ACROSS[0], UP[0]], [ACROSS[1], UP[0]]))
        (canvas::axis([ACROSS[0], UP[0]], [ACROSS[0], UP[1]]))
        (canvas::text([(ACROSS[0] + ACROSS[1]) / 2.0, HEIGHT - 14.0], Anchor::Middle, &swept))
    }
}

/// The name of the parameter that differs between the races.
fn swept<'a>(group: &Group<'a>) -> &'a str {
    let Some((value, race)) = group.races.first() else {
        return "value";
    };
    let ending = format!("={value}");
    let found = race
        .parameters
        .iter()
        .find_map(|word| word.strip_suffix(&ending));
    found.unwrap_or("threads")
}

fn line(curve: &Curve, unit: Unit, [x, y]: [&Scale; 2], end: f64) -> Markup {
    let look = curve.look;
    let mut path = String::new();
    for (value, at) in &curve.points {
        let start = if path.is_empty() { 'M' } else { 'L' };
        let _ = write!(path, "{start}{} {}", n(x.at(*value as f64)), n(y.at(*at)));
    }
    let name = foreign::name(&curve.name);
    html! {
        @if let Some((last, at)) = curve.points.last() {
            g class="curve" data-name=(name) {
                path class={ (look.class()) " line" } d=(path) fill="none" stroke=(look.colour())
                    stroke-width="1.8" stroke-dasharray=(look.dashes()) {}
                @for (value, at) in &curve.points {
                    @let says = format!("{name} at {value}: {}", unit.tell(*at));
                    (look.marker([x.at(*value as f64), y.at(*at)], 4.5, false, Some(&says)))
                }
                path class="grid" fill="none" stroke=(canvas::GRID)
                    d={ "M" (n(x.at(*last as f64) + 6.0)) " " (n(y.at(*at)))
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
            .map_or(f64::INFINITY, |(_, at)| up.at(*at))
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

fn described(curves: &[Curve], unit: Unit) -> String {
    let told = curves
        .iter()
        .filter(|curve| !curve.points.is_empty())
        .map(|curve| {
            let points = curve
                .points
                .iter()
                .map(|(value, at)| format!("{} at {value}", unit.tell(*at)));
            format!(
                "{}: {}",
                foreign::name(&curve.name),
                points.collect::<Vec<_>>().join(", ")
            )
        });
    told.collect::<Vec<_>>().join("; ")
}
