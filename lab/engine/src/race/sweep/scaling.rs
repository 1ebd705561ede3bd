//! Growth of each allocator's time over a sweep: degradation, and the knee of its curve.

use heapdrome_schema::{
    Collection, EntrantResult, Factor, Knee, Member, Role, ScalingCurve, ScalingPoint, Status,
    SweepResult, SweptParameter,
};
use heapdrome_statistics::{Figures, Interval, Rule, change, median};

use super::points::along;
use crate::race::factor;

/// Maximum probability that at least one interval of a sweep misses the true degradation.
const ALPHA: f64 = 0.05;

/// Name of the metric that holds the work read by `--work`.
pub const WORK: &str = "work";

/// Definition of the work of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// The swept value.
    Value,
    /// A constant amount.
    Same,
    /// The operations that the workload counts.
    Operations,
    /// The metric that is read from the output.
    Printed,
}

impl Work {
    /// Returns the definition in words, for a heading.
    fn words(self, parameter: &str) -> String {
        match self {
            Self::Value => format!("the value of {parameter}"),
            Self::Same => "the same in every race".to_owned(),
            Self::Operations => "the operations of the workload".to_owned(),
            Self::Printed => "what the command printed".to_owned(),
        }
    }

    /// Returns the work of each run of a row; `None` if it is unknown.
    fn of(self, row: &EntrantResult, value: &str) -> Option<Vec<f64>> {
        let runs = row.samples("wall_s")?.len();
        match self {
            Self::Value => Some(vec![value.parse().ok()?; runs]),
            Self::Same => Some(vec![1.0; runs]),
            Self::Operations => {
                let rate = row.samples("operations_per_cpu_s")?;
                let time = row.samples("measured_cpu_s")?;
                Some(rate.iter().zip(&time).map(|(a, b)| a * b).collect())
            }
            Self::Printed => row.samples(WORK),
        }
    }
}

/// One race of a curve.
struct Place<'a> {
    member: &'a Member,
    value: &'a str,
    processors: f64,
}

/// Data of a sweep in addition to its races.
#[derive(Clone, Copy)]
pub struct Found<'a> {
    /// Values of each race, one for each parameter.
    pub values: &'a [Vec<String>],
    /// Definition of work.
    pub work: Work,
    /// Maximum degradation per processor up to the knee of a curve.
    pub share: f64,
    /// Whether the races alternated, so that their rounds form pairs.
    pub paired: bool,
}

/// Method for the interval of a degradation.
enum Judge {
    /// From the ratios within each round, as in a race.
    Paired(Rule),
    /// From two independent races, with this confidence.
    Apart(f64),
}

impl Judge {
    fn change(&self, first: &[f64], own: &[f64]) -> Option<Interval> {
        match self {
            Self::Paired(rule) => rule.compare(own, first, 0.0).map(|found| Interval {
                estimate: found.ratio,
                low: found.low,
                high: found.high,
            }),
            Self::Apart(confidence) => {
                change(Figures::alone(first), Figures::alone(own), 0.0, *confidence)
            }
        }
    }
}

/// Returns the curves of all allocators from the races of a sweep so far.
pub fn scaling(
    collection: &Collection,
    parameters: &[SweptParameter],
    found: Found<'_>,
) -> SweepResult {
    let along = along(parameters);
    let groups = groups(collection, parameters, found.values, along);
    let tried = groups.iter().map(|(_, places)| {
        let more = places.len().saturating_sub(1);
        more * names(places).len()
    });
    let comparisons = tried.sum::<usize>().max(1);
    let judge = match found.paired {
        true => Judge::Paired(Rule::new(ALPHA, comparisons)),
        false => Judge::Apart(1.0 - ALPHA / comparisons as f64),
    };
    let mut curves = Vec::new();
    for (others, places) in &groups {
        for allocator in names(places) {
            let points = points(places, &allocator, found.work, &judge);
            let knee = knee(&points, found.share, found.work);
            curves.push(ScalingCurve {
                allocator,
                others: others.clone(),
                points,
                knee,
            });
        }
    }
    let name = parameters.get(along).map_or("", |one| one.name.as_str());
    SweepResult {
        parameters: parameters.to_vec(),
        along: name.to_owned(),
        work: found.work.words(name),
        share: found.share,
        paired: found.paired,
        curves,
    }
}

/// Returns a remark on the valid entrants for which `--work` found no number in the output of at
/// least one run; `None` if there are none.
pub fn work_not_found(collection: &Collection, pattern: &str) -> Option<String> {
    let rows = collection.races.iter().flat_map(|race| {
        let rows = race.result.entrants.iter();
        let counting = rows.filter(|row| row.role != Role::Twin && row.status == Status::Ok);
        let timed = counting.filter(|row| row.samples("wall_s").is_some());
        timed.map(move |row| (race.cell.as_str(), row))
    });
    let found = |row: &EntrantResult| {
        let work = row.samples(WORK);
        work.is_some_and(|work| work.iter().all(|one| one.is_finite()))
    };
    let (found, missing): (Vec<_>, Vec<_>) = rows.partition(|(_, row)| found(row));
    let named = missing.iter();
    let named = named.map(|(cell, row)| format!("{} ({cell})", row.allocator));
    let told = format!("--work '{pattern}' found nothing in the output");
    match (found.is_empty(), missing.is_empty()) {
        (_, true) => None,
        (true, false) => Some(told),
        (false, false) => {
            let named: Vec<_> = named.collect();
            Some(format!("{told} under {}", named.join(", ")))
        }
    }
}

/// Groups races that differ only in the followed parameter: one group for each combination of the
/// other values.
fn groups<'a>(
    collection: &'a Collection,
    parameters: &[SweptParameter],
    values: &'a [Vec<String>],
    along: usize,
) -> Vec<(String, Vec<Place<'a>>)> {
    let mut groups: Vec<(String, Vec<Place<'a>>)> = Vec::new();
    for (member, values) in collection.races.iter().zip(values) {
        let named = parameters.iter().zip(values).enumerate();
        let others = named.filter(|(place, _)| *place != along);
        let others: Vec<_> = others
            .map(|(_, (parameter, value))| format!("{}={value}", parameter.name))
            .collect();
        let others = others.join(" ");
        let used = match member.processors.len() {
            0 => collection.machine.processors,
            pinned => pinned,
        };
        let place = Place {
            member,
            value: &values[along],
            processors: used.max(1) as f64,
        };
        match groups.iter_mut().find(|(own, _)| *own == others) {
            Some((_, places)) => places.push(place),
            None => groups.push((others, vec![place])),
        }
    }
    groups
}

/// Returns the allocators with a valid row in any of the races, the baseline first.
fn names(places: &[Place<'_>]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for role in [Role::Baseline, Role::Rival] {
        let rows = places
            .iter()
            .flat_map(|place| &place.member.result.entrants);
        for row in rows.filter(|row| row.role == role && row.status == Status::Ok) {
            if !names.contains(&row.allocator) {
                names.push(row.allocator.clone());
            }
        }
    }
    names
}

/// Returns the degradation of an allocator at each race of its curve.
fn points(places: &[Place<'_>], allocator: &str, work: Work, judge: &Judge) -> Vec<ScalingPoint> {
    let Some((start, _)) = places.split_first() else {
        return Vec::new();
    };
    let first = per_work(start, allocator, work);
    let point = |(number, place): (usize, &Place<'_>)| {
        let own = per_work(place, allocator, work);
        let ratio = first.as_ref().zip(own.as_ref());
        let grown = ratio.and_then(|(first, own)| Some(median(&own.1)? / median(&first.1)?));
        let found = ratio.and_then(|(first, own)| match number {
            0 => Some(Interval {
                estimate: 1.0,
                low: 1.0,
                high: 1.0,
            }),
            _ => judge.change(&first.0, &own.0),
        });
        let processors = place.processors / start.processors;
        ScalingPoint {
            cell: place.member.cell.clone(),
            value: place.value.to_owned(),
            work: grown.unwrap_or(f64::NAN),
            degradation: found.map(factor),
            per_processor: found.map(|found| factor(found.scaled(processors))),
        }
    };
    places.iter().enumerate().map(point).collect()
}

/// Returns two lists with a value for each run: the time per unit of work, and the work. Returns
/// `None` if the allocator has no such figures.
fn per_work(place: &Place<'_>, allocator: &str, work: Work) -> Option<(Vec<f64>, Vec<f64>)> {
    let row = place.member.result.row(allocator)?;
    let work = work.of(row, place.value)?;
    let times = row.samples("wall_s")?;
    let per_work = times.iter().zip(&work).map(|(time, work)| time / work);
    Some((per_work.collect(), work))
}

/// Returns the knee: the last value up to which the degradation per processor stays within `share`.
/// The upper ends of the intervals decide the certain knee, and the lower ends the possible one.
/// Returns `None` if there are fewer than two races, if the values are not rising numbers, if a
/// race has no interval, or if every race does equal work.
fn knee(points: &[ScalingPoint], share: f64, work: Work) -> Option<Knee> {
    let numbers: Option<Vec<f64>> = points.iter().map(|one| one.value.parse().ok()).collect();
    let rising = numbers?.windows(2).all(|pair| pair[0] < pair[1]);
    if !rising || points.len() < 2 || work == Work::Same {
        return None;
    }
    let found: Option<Vec<&Factor>> = points
        .iter()
        .map(|one| one.per_processor.as_ref())
        .collect();
    let found = found?;
    let limit = 1.0 + share;
    let last = |within: &dyn Fn(&Factor) -> bool| {
        let kept = found.iter().take_while(|factor| within(factor)).count();
        points[kept.max(1) - 1].value.clone()
    };
    Some(Knee {
        certain: last(&|factor| factor.high <= limit),
        possible: last(&|factor| factor.low <= limit),
    })
}

#[cfg(test)]
mod tests;
