//! Estimates a suite's time by one round of the smallest form of each race.

use std::fmt::Write as _;
use std::time::Duration;

use heapdrome_schema::{RaceResult, Scale};
use heapdrome_suites::{Probe, Race, probe};

use super::races::{Races, label};
use crate::event::Event;
use crate::failure::Failure;
use crate::kept::Kept;

/// Estimated time above which `--yes` is required.
const LONG: Duration = Duration::from_secs(2 * 60 * 60);

/// Estimated time of a suite.
#[derive(Default)]
pub struct Estimate {
    /// Total minimum time of all races that could be estimated.
    time: Duration,
    /// Races, each with its minimum time and with a text on its maximum time.
    races: Vec<(String, Duration, String)>,
    /// Total time if no entrant is decided before the maximum number of rounds.
    most: Duration,
    unknown: Vec<String>,
}

/// Name of an entry that is available everywhere: the system's allocator with another setting. It
/// replaces the rivals in an estimate if none of them is built.
const STAND_IN: &str = "system-arena1";

/// Runs one round of the smallest form of each race, and scales the round's time by the numbers of
/// operations and of runs. Missing allocators are not built. The estimate assumes that they are as
/// fast as the others.
///
/// # Errors
/// When the user interrupts. The time of a race whose small form fails counts as unknown.
pub fn estimate(work: &mut Races, kept: &Kept<'_>) -> Result<Estimate, Failure> {
    let (races, unbuilt) = (work.races.clone(), work.unbuilt.clone());
    let mut found = Estimate::default();
    let engine = kept.engine();
    engine.tell(Event::Estimating);
    if !unbuilt.is_empty() {
        engine.tell(Event::NotBuilt(&unbuilt));
    }
    for race in &races {
        let name = label(race);
        let probe = probe(&work.suites, race).filter(|_| !unbuilt.contains(&race.baseline));
        let Some(Probe { race: small, times }) = probe else {
            found.add_unknown(name);
            continue;
        };
        let small = of_built(small, &unbuilt);
        let times = times * runs(race) / runs(&small);
        let title = format!("estimate: {}", race.title);
        match work.race(&small, &title, 1, (Some(Scale::Quick), kept)) {
            Ok(result) => {
                let one = seconds(&result) * times;
                let of = |rounds: u32| {
                    Duration::from_secs_f64((one * f64::from(rounds)).clamp(0.0, 1e12))
                };
                let most = of(race.most_rounds.unwrap_or(race.rounds));
                found.add(name, of(race.rounds), most);
            }
            Err(Failure::Interrupted) => return Err(Failure::Interrupted),
            Err(failure) => {
                engine.tell(Event::NotEstimated {
                    cell: &name,
                    failure: &failure,
                });
                found.add_unknown(name);
            }
        }
    }
    Ok(found)
}

/// Returns the race without allocators that are not built. If no allocator is left, adds
/// [`STAND_IN`].
fn of_built(mut race: Race, unbuilt: &[String]) -> Race {
    race.allocators.retain(|name| !unbuilt.contains(name));
    if race.allocators.is_empty() {
        race.allocators = vec![STAND_IN.to_owned()];
    }
    race
}

/// Returns the number of runs in a round. The baseline runs twice.
fn runs(race: &Race) -> f64 {
    race.allocators.len() as f64 + 2.0
}

/// Returns the wall time of one round in seconds: the sum of the entrants' medians.
fn seconds(result: &RaceResult) -> f64 {
    let walls = result.entrants.iter().filter_map(|row| row.wall_s.as_ref());
    walls
        .map(|wall| wall.median)
        .filter(|it| it.is_finite())
        .sum()
}

impl Estimate {
    /// Adds a race that takes `least`, or `most` if no entrant is decided before the maximum number
    /// of rounds.
    pub fn add(&mut self, name: String, least: Duration, most: Duration) {
        self.time += least;
        self.most += most;
        self.races.push((name, least, up_to(least, most)));
    }

    /// Adds a race that cannot be estimated.
    pub fn add_unknown(&mut self, name: String) {
        self.unknown.push(name);
    }

    /// Limits the total time to `longest`, regardless of the times of the parts.
    pub fn end_after(&mut self, longest: Duration) {
        self.time = self.time.min(longest);
        self.most = self.most.min(longest);
    }

    /// Refuses a suite that takes hours, unless the user has consented.
    ///
    /// # Errors
    /// When the suite would take long and `yes` is false.
    pub fn refuse_long(&self, yes: bool) -> Result<(), Failure> {
        match self.time > LONG && !yes {
            true => Err(Failure::usage(
                "this takes long; add --yes to run it, or select a part of it with --only CELL and \
                 -a NAME,...",
            )),
            false => Ok(()),
        }
    }

    /// Formats the estimate, race by race.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (name, time, more) in &self.races {
            let _ = writeln!(text, "{:>12}  {name}{more}", rounded(*time));
        }
        let _ = writeln!(
            text,
            "{:>12}  all together{}, without building, proofs and preparing",
            rounded(self.time),
            up_to(self.time, self.most)
        );
        if !self.unknown.is_empty() {
            let _ = writeln!(text, "{:>12}  {}", "not known", self.unknown.join(", "));
        }
        text
    }
}

/// Describes the maximum time; empty if it does not exceed the minimum time.
fn up_to(least: Duration, most: Duration) -> String {
    match most > least {
        true => format!(
            ", at least; {} if no entrant is decided early",
            rounded(most)
        ),
        false => String::new(),
    }
}

/// Formats a duration: to the minute from one hour on, to the second below.
fn rounded(time: Duration) -> String {
    let seconds = time.as_secs().max(1);
    let step = if seconds >= 3600 { 60 } else { 1 };
    humantime::format_duration(Duration::from_secs(seconds / step * step)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_take_longer_is_told_as_the_least() {
        let mut found = Estimate::default();
        let seconds = Duration::from_secs;
        found.add("fixed".to_owned(), seconds(60), seconds(60));
        let fixed = found.text();
        assert!(!fixed.contains("at least"), "{fixed}");
        found.add("open".to_owned(), seconds(20), seconds(50));
        let text = found.text();
        let has = |words: &str| assert!(text.contains(words), "{text}");
        has("1m  fixed\n");
        has("20s  open, at least; 50s if no entrant is decided early\n");
        has("1m 20s  all together, at least; 1m 50s if no entrant is decided early, without");
    }
}
