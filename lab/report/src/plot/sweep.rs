//! What becomes of a figure as a parameter grows: a curve for each allocator.

use heapdrome_record::{EntrantResult, Factor, Role, ScalingPoint, Series, Status};

use super::curves::{Across, Curve, Point, draw};
use super::group::{At, Group};
use super::look::Looks;
use super::measures::Unit;
use super::{Plot, stem};
use crate::sheet::OPERATIONS;

/// The curves of a group: wall time, and the degradation where it is known or the workload counts
/// operations.
pub(super) fn plots(group: &Group<'_>, prefix: &str, looks: &Looks) -> Vec<Plot> {
    let across = across(group, prefix);
    let wall = curves(group, looks, |row| row.wall_s.as_ref());
    let mut plots: Vec<Plot> = draw(
        &across,
        &wall,
        ("wall", Unit::Seconds, "wall time"),
        "medians; lower is better",
    )
    .into_iter()
    .collect();
    if !group.curves.is_empty() {
        plots.extend(scaled(group, &across, &wall));
        return plots;
    }
    let degraded = degradation(&curves(group, looks, |row| row.metrics.get(OPERATIONS)));
    plots.extend(draw(
        &across,
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

/// What the curves of a group stand on.
fn across(group: &Group<'_>, prefix: &str) -> Across {
    let races = group.races.iter();
    Across {
        stem: format!("{prefix}sweep-{}", stem(&group.name)),
        name: group.name.clone(),
        parameter: group.parameter.clone(),
        ticks: races.map(|race| (race.place, race.label.clone())).collect(),
        by_logarithm: group.by_logarithm,
    }
}

/// The degradation with its intervals, of those that have these curves; per processor, too, where that is
/// another figure.
fn scaled(group: &Group<'_>, across: &Across, named: &[Curve]) -> Vec<Plot> {
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
        named.iter().map(of).collect()
    };
    let plain = take(|point| point.degradation.as_ref());
    let each = take(|point| point.per_processor.as_ref());
    let differ = plain.iter().zip(&each).any(|(plain, each)| {
        let values = |curve: &Curve| curve.points.iter().map(|one| one.value).collect::<Vec<_>>();
        values(plain) != values(each)
    });
    let note = "degradation: the ratio of wall times over the ratio of work, 1 at the first; lower is \
                better; the bars are intervals, set side by side";
    let told = (
        "degradation",
        Unit::Number,
        "time over work, 1 = at the first",
    );
    let mut plots: Vec<Plot> = draw(across, &plain, told, note).into_iter().collect();
    if differ {
        let told = (
            "degradation-per-processor",
            Unit::Number,
            "time over work per processor, 1 = at the first",
        );
        plots.extend(draw(across, &each, told, note));
    }
    plots
}

/// The medians of a figure, the baseline first.
fn curves(
    group: &Group<'_>,
    looks: &Looks,
    of: fn(&EntrantResult) -> Option<&Series>,
) -> Vec<Curve> {
    let rows = || {
        let members = group.races.iter().map(|race| race.member);
        members.flat_map(|member| &member.result.entrants)
    };
    let mut names: Vec<&str> = Vec::new();
    for role in [Role::Baseline, Role::Rival] {
        for row in rows().filter(|row| row.role == role) {
            if !names.contains(&row.allocator.as_str()) {
                names.push(&row.allocator);
            }
        }
    }
    let curve = |name: &str| {
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
            look: looks.get(name),
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
