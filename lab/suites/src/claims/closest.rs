//! The claim that the fastest allocator is also the one whose degradation is closest to 1.

use heapdrome_schema::{Holds, Member};
use heapdrome_statistics::{Interval, Rule};

use super::parts::sized;
use crate::Suite;
use crate::claim::{EVERYONE, Sizes};
use crate::entrants::{ALPHA, Span, available, compare, figure_of};
use crate::tables::{degradation, interval};

/// Error probability of all degradations together, and of all comparisons of times together. The
/// two probabilities add up to [`ALPHA`].
const HALF: f64 = ALPHA / 2.0;

/// An entrant, with its name in the registry and its degradation.
struct Measured<'a> {
    name: String,
    allocator: &'a str,
    degradation: Interval,
}

impl Measured<'_> {
    /// Returns the smallest and the largest distance from 1 that the interval allows, on the log
    /// scale.
    fn distance(&self) -> [f64; 2] {
        let ends = [self.degradation.low.ln(), self.degradation.high.ln()];
        let [near, far] = ends.map(f64::abs);
        let holds_one = ends[0] <= 0.0 && ends[1] >= 0.0;
        [if holds_one { 0.0 } else { near.min(far) }, near.max(far)]
    }

    fn tell(&self) -> String {
        let Interval {
            estimate,
            low,
            high,
        } = self.degradation;
        format!("{} {}", self.name, interval(estimate, low, high))
    }
}

/// Returns the verdict, with the degradations that led to it. The claim holds if one entrant is
/// certainly the fastest, and its degradation is certainly the closest to 1. It does not hold if,
/// for every entrant that may be the fastest, the degradation of another entrant is certainly
/// closer to 1.
pub(super) fn judge(suite: &Suite, between: &Sizes, members: &[&Member]) -> (Holds, String) {
    let Some((both, ratio)) = sized(suite, members, between) else {
        let why = format!("not run: {}, {}", between.large, between.small);
        return (Holds::Undecided, why);
    };
    let measured = all(suite, both, ratio);
    if measured.len() < 2 {
        let why = "fewer than two allocators have an interval".to_owned();
        return (Holds::Undecided, why);
    }
    let comparisons = measured.len() * (measured.len() - 1) / 2;
    let rule = Rule::new(HALF, comparisons);
    let slower = |one: &Measured<'_>, other: &Measured<'_>| {
        let names = [one.allocator, other.allocator];
        let found = compare(both[0], &rule, names, "wall_s", Span::Whole);
        found.is_some_and(|found| found.low > 1.0)
    };
    let beaten = |one: &&Measured<'_>| measured.iter().any(|other| slower(one, other));
    let fastest: Vec<&Measured<'_>> = measured.iter().filter(|one| !beaten(one)).collect();
    let outdone = |one: &&Measured<'_>| {
        let own = one.distance()[0];
        measured.iter().any(|other| other.distance()[1] < own)
    };
    let unrivalled = |one: &Measured<'_>| {
        let mut others = measured.iter().filter(|other| other.name != one.name);
        others.all(|other| one.distance()[1] < other.distance()[0])
    };
    let holds = match fastest.as_slice() {
        [one] if unrivalled(one) => Holds::Held,
        fastest if !fastest.is_empty() && fastest.iter().all(outdone) => Holds::NotHeld,
        _ => Holds::Undecided,
    };
    (holds, because(&measured, &fastest))
}

fn because(measured: &[Measured<'_>], fastest: &[&Measured<'_>]) -> String {
    let told: Vec<String> = fastest.iter().map(|one| one.tell()).collect();
    let middle = |one: &&Measured<'_>| one.degradation.estimate.ln().abs();
    let closest = measured
        .iter()
        .min_by(|a, b| middle(a).total_cmp(&middle(b)));
    format!(
        "fastest, or not distinguishable from the fastest, with their degradation: {}; closest to 1: {}",
        told.join(", "),
        closest.map_or_else(String::new, Measured::tell)
    )
}

/// Returns the document's available entrants whose degradation has an interval.
fn all<'a>(suite: &'a Suite, both: [&Member; 2], ratio: f64) -> Vec<Measured<'a>> {
    let (here, _) = available(suite, &[EVERYONE.to_owned()]);
    let confidence = 1.0 - HALF / here.len().max(1) as f64;
    let measured = |(entrant, allocator): &(&'a crate::Entrant, &'a str)| {
        Some(Measured {
            name: entrant.name.clone(),
            allocator: figure_of(both[0], allocator, "wall_s").map(|_| *allocator)?,
            degradation: degradation(both, allocator, ratio, confidence)?,
        })
    };
    here.iter().filter_map(measured).collect()
}
