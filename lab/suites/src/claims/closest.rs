//! Whether the fastest allocator is also the one whose degradation is closest to 1.

use heapdrome_schema::{Holds, Member};
use heapdrome_statistics::{Interval, Rule};

use super::parts::sized;
use crate::Suite;
use crate::claim::{EVERYONE, Sizes};
use crate::racers::{ALPHA, Span, compare, figure_of, racers};
use crate::tables::{degradation, interval};

/// An entrant with its name in the registry, and with the distance of its degradation from 1 on the log
/// scale.
struct Racer<'a> {
    name: String,
    allocator: &'a str,
    degradation: Interval,
}

impl Racer<'_> {
    /// The least and the greatest distance from 1 that the interval allows.
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

/// The verdict. The sentence falls when whoever may be the fastest has someone surely closer to 1;
/// it holds when one is surely the fastest and surely the closest.
pub(super) fn judge(suite: &Suite, between: &Sizes, members: &[&Member]) -> (Holds, String) {
    let Some((both, ratio)) = sized(suite, members, between) else {
        let why = format!("not run: {}, {}", between.large, between.small);
        return (Holds::Undecided, why);
    };
    let racers = all(suite, both, ratio);
    if racers.len() < 2 {
        let why = "fewer than two allocators have an interval".to_owned();
        return (Holds::Undecided, why);
    }
    let comparisons = racers.len() * (racers.len() - 1) / 2;
    let rule = Rule::new(ALPHA, comparisons);
    let slower = |one: &Racer<'_>, other: &Racer<'_>| {
        let names = [one.allocator, other.allocator];
        let found = compare(both[0], &rule, names, "wall_s", Span::Whole);
        found.is_some_and(|found| found.low > 1.0)
    };
    let beaten = |one: &&Racer<'_>| racers.iter().any(|other| slower(one, other));
    let fastest: Vec<&Racer<'_>> = racers.iter().filter(|one| !beaten(one)).collect();
    let outdone = |one: &&Racer<'_>| {
        let own = one.distance()[0];
        racers.iter().any(|other| other.distance()[1] < own)
    };
    let unrivalled = |one: &Racer<'_>| {
        let mut others = racers.iter().filter(|other| other.name != one.name);
        others.all(|other| one.distance()[1] < other.distance()[0])
    };
    let holds = match fastest.as_slice() {
        [one] if unrivalled(one) => Holds::Held,
        fastest if !fastest.is_empty() && fastest.iter().all(outdone) => Holds::NotHeld,
        _ => Holds::Undecided,
    };
    (holds, because(&racers, &fastest))
}

fn because(racers: &[Racer<'_>], fastest: &[&Racer<'_>]) -> String {
    let told: Vec<String> = fastest.iter().map(|one| one.tell()).collect();
    let middle = |one: &&Racer<'_>| one.degradation.estimate.ln().abs();
    let closest = racers.iter().min_by(|a, b| middle(a).total_cmp(&middle(b)));
    format!(
        "fastest, or not told apart from it, with their degradation: {}; closest to 1: {}",
        told.join(", "),
        closest.map_or_else(String::new, Racer::tell)
    )
}

/// The document's entrants that have figures in both cells.
fn all<'a>(suite: &'a Suite, both: [&Member; 2], ratio: f64) -> Vec<Racer<'a>> {
    let (here, _) = racers(suite, &[EVERYONE.to_owned()]);
    let confidence = 1.0 - ALPHA / here.len().max(1) as f64;
    let racer = |(contender, allocator): &(&'a crate::Contender, &'a str)| {
        Some(Racer {
            name: contender.name.clone(),
            allocator: figure_of(both[0], allocator, "wall_s").map(|_| *allocator)?,
            degradation: degradation(both, allocator, ratio, confidence)?,
        })
    };
    here.iter().filter_map(racer).collect()
}
