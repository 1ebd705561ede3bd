//! How long a suite would take, from one run of each allocator on its smallest form.

use std::fmt::Write as _;
use std::time::Duration;

use heapdrome_record::{RaceResult, Scale};
use heapdrome_suites::{Probe, Race, probe};

use super::running::{Session, label};
use crate::destinations::Destinations;
use crate::failure::Failure;
use crate::output;

/// A published form that takes longer than this is run only where `--yes` says so.
const LONG: Duration = Duration::from_secs(2 * 60 * 60);

/// What was estimated.
pub struct Estimate {
    /// The time of all races that could be estimated.
    time: Duration,
    races: Vec<(String, Duration)>,
    unknown: Vec<String>,
}

/// Runs one round of the smallest form of each race, and scales its times by the operations.
///
/// # Errors
/// When someone interrupts; a race whose small form cannot be run is left out of the estimate.
pub fn estimate(session: &mut Session<'_>, races: &[Race]) -> Result<Estimate, Failure> {
    let mut found = Estimate {
        time: Duration::ZERO,
        races: Vec::new(),
        unknown: Vec::new(),
    };
    output::tell("running each allocator once on a small form, to estimate the time");
    for race in races {
        let name = label(race);
        let suites = session.suites();
        let Some(Probe { race: small, times }) = probe(suites, race) else {
            found.unknown.push(name);
            continue;
        };
        let title = format!("estimate: {}", race.title);
        match session.race(&small, &title, 1, Some(Scale::Quick)) {
            Ok(result) => {
                let seconds = seconds(&result) * times * f64::from(race.rounds);
                let time = Duration::from_secs_f64(seconds.clamp(0.0, 1e12));
                found.time += time;
                found.races.push((name, time));
            }
            Err(Failure::Interrupted) => return Err(Failure::Interrupted),
            Err(failure) => {
                output::tell(format_args!("{name} cannot be estimated: {failure}"));
                found.unknown.push(name);
            }
        }
    }
    Ok(found)
}

/// The wall time of one round.
fn seconds(result: &RaceResult) -> f64 {
    let walls = result.entrants.iter().filter_map(|row| row.wall_s.as_ref());
    walls
        .map(|wall| wall.median)
        .filter(|it| it.is_finite())
        .sum()
}

impl Estimate {
    /// Prints the estimate; beside a file that goes to standard output it is told on standard error.
    ///
    /// # Errors
    /// When it cannot be printed.
    pub fn tell(&self, files: &Destinations<'_>) -> Result<(), Failure> {
        let text = self.text();
        match files.take_stdout() {
            true => output::print_aside(text.trim_end()),
            false => output::print(text.as_bytes())?,
        }
        Ok(())
    }

    /// Takes care that nobody waits for hours who did not ask to.
    ///
    /// # Errors
    /// When it would take long and nobody said yes.
    pub fn refuse_long(&self, yes: bool) -> Result<(), Failure> {
        match self.time > LONG && !yes {
            true => Err(Failure::usage(
                "that is long; add --yes to run it, or take less of it with --only CELL and \
                 -a NAME,...",
            )),
            false => Ok(()),
        }
    }

    /// The estimate, race by race.
    fn text(&self) -> String {
        let mut text = String::new();
        for (name, time) in &self.races {
            let _ = writeln!(text, "{:>12}  {name}", rounded(*time));
        }
        let _ = writeln!(
            text,
            "{:>12}  all together, without building, proofs and preparing",
            rounded(self.time)
        );
        if !self.unknown.is_empty() {
            let _ = writeln!(text, "{:>12}  {}", "not known", self.unknown.join(", "));
        }
        text
    }
}

/// To the minute where it is hours, to the second where it is less.
fn rounded(time: Duration) -> String {
    let seconds = time.as_secs().max(1);
    let step = if seconds >= 3600 { 60 } else { 1 };
    humantime::format_duration(Duration::from_secs(seconds / step * step)).to_string()
}
