//! The change of a figure along a parameter: a curve for each allocator.

use heapdrome_schema::{EntrantResult, Factor, Role, ScalingPoint, Series, Status};

use super::Plot;
use super::curves::{Across, Curve, Ends, draw, draw_with};
use super::group::{At, Group};
use super::look::Looks;
use super::measures::Unit;
use super::tabled::Point;
use crate::entrant::OPERATIONS;

/// Minimum number of rounds for quartiles.
const FEWEST_ROUNDS: usize = 4;
const QUARTILES_NOTE: &str = "medians; the light bars, set side by side, go from the lower to the upper quartile \
                              of the rounds and are not confidence intervals; lower is better";

/// Returns the plots of a group: wall time, and the degradation if it is known or the workload
/// counts operations.
pub(super) fn plots(group: &Group<'_>, prefix: &str, looks: &Looks) -> Vec<Plot> {
    let across = across(group, prefix);
    let wall = curves(group, looks, |row| row.wall_s.as_ref());
    let has_ends = |curve: &Curve| curve.points.iter().any(|point| point.ends.is_some());
    let note = match wall.iter().any(has_ends) {
        true => QUARTILES_NOTE,
        false => "medians; lower is better",
    };
    let what = ("wall", Unit::Seconds, "wall time");
    let drawn = draw_with(&across, &wall, what, (note, Ends::Quartiles));
    let mut plots: Vec<Plot> = drawn.into_iter().collect();
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
            "processor time per operation, 1 = at the first",
        ),
        "degradation: the ratio of processor times over the ratio of operations, from medians; \
         lower is better; without intervals",
    ));
    plots
}

/// Returns the horizontal axis of a group's curves.
fn across(group: &Group<'_>, prefix: &str) -> Across {
    let races = group.races.iter();
    Across {
        stem: format!("{prefix}sweep-{}", group.stem),
        name: group.name.clone(),
        parameter: group.parameter.clone(),
        ticks: races.map(|race| (race.place, race.label.clone())).collect(),
        by_logarithm: group.by_logarithm,
    }
}

/// Function that selects the degradation of a point, or its degradation per processor.
type Pick = fn(&ScalingPoint) -> Option<&Factor>;

/// Returns the plot of the degradation with its intervals, for allocators that have scaling curves.
/// Adds a plot of the degradation per processor if that differs from the degradation.
fn scaled(group: &Group<'_>, across: &Across, named: &[Curve]) -> Vec<Plot> {
    let take = |pick: Pick| -> Vec<Curve> {
        let named = named.iter();
        named.map(|curve| factors(group, curve, pick)).collect()
    };
    let plain = take(|point| point.degradation.as_ref());
    let each = take(|point| point.per_processor.as_ref());
    let differ = plain.iter().zip(&each).any(|(plain, each)| {
        let values = |curve: &Curve| curve.points.iter().map(|one| one.value).collect::<Vec<_>>();
        values(plain) != values(each)
    });
    let note = "degradation: the ratio of wall times over the ratio of work, 1 at the first; lower is \
                better; the bars are intervals, set side by side";
    let title = "time over work, 1 = at the first";
    let told = ("degradation", Unit::Number, title);
    let mut plots: Vec<Plot> = draw(across, &plain, told, note).into_iter().collect();
    if differ {
        let title = "time over work per processor, 1 = at the first";
        let told = ("degradation-per-processor", Unit::Number, title);
        plots.extend(draw(across, &each, told, note));
    }
    plots
}

/// Returns the selected factors of this curve's allocator, as a curve. The curve has no points if
/// the factors are unknown.
fn factors(group: &Group<'_>, curve: &Curve, pick: Pick) -> Curve {
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
}

/// Returns the lower and the upper quartile of the samples above 0, or `None` if there are fewer
/// than [`FEWEST_ROUNDS`]. Interpolates linearly between samples (definition 7 of Hyndman and Fan,
/// "Sample Quantiles in Statistical Packages", 1996).
fn quartiles(samples: &[f64]) -> Option<[f64; 2]> {
    let known = samples.iter().copied();
    let mut known: Vec<f64> = known.filter(|one| one.is_finite() && *one > 0.0).collect();
    if known.len() < FEWEST_ROUNDS {
        return None;
    }
    known.sort_by(f64::total_cmp);
    let at = |part: f64| {
        let place = part * (known.len() - 1) as f64;
        let [below, above] = [place.floor(), place.ceil()].map(|place| known[place as usize]);
        below + (above - below) * place.fract()
    };
    Some([at(0.25), at(0.75)])
}

/// Returns the medians and quartiles of a figure over the rounds, as one curve for each allocator.
/// The baseline's curve comes first.
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
            let series = of(row)?;
            let known = series.median.is_finite() && series.median > 0.0;
            known.then(|| Point {
                place: race.place,
                label: race.label.clone(),
                value: series.median,
                ends: quartiles(&series.samples),
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

/// Returns the processor time of one operation at each value, relative to the first value: the
/// operations per CPU second at the first value, divided by those at this value.
fn degradation(operations: &[Curve]) -> Vec<Curve> {
    let degraded = |curve: &Curve| {
        let first = curve.points.first().map_or(1.0, |first| first.value);
        let points = curve.points.iter().map(|point| Point {
            value: first / point.value,
            ends: None,
            ..point.clone()
        });
        Curve {
            points: points.collect(),
            ..curve.clone()
        }
    };
    operations.iter().map(degraded).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_lie_between_samples() {
        assert_eq!(quartiles(&[5.0, 1.0, 3.0, 2.0, 4.0]), Some([2.0, 4.0]));
        assert_eq!(quartiles(&[1.0, 2.0, 3.0, 4.0]), Some([1.75, 3.25]));
        assert_eq!(quartiles(&[1.0, 2.0, f64::NAN, 4.0]), None);
    }
}
