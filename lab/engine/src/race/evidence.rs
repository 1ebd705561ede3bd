//! Untimed runs after the rounds. They track every block to explain the result.
//!
//! The baseline and the leading entrant are tracked first, the others only while all untimed work
//! takes at most a third of the race's time. A failing run does not fail the race. There are no
//! such runs with `--memory-runs 0` or `--unproven`, or in a race of a collection.

use std::time::{Duration, Instant};

use heapdrome_schema::{EntrantResult, JournalLine, Role, Status};

use super::contest::{Contest, Ended};
use super::figures::WALL;
use super::measure_failure;
use super::result::assemble;
use crate::event::Aim;
use crate::failure::Failure;

/// Ratio of the rounds' time to the maximum time of untimed work, which is thus a third of the
/// total.
const SHARE: u32 = 2;

/// Minimum time allowed for each tracked run of the baseline and the leading entrant, even in a
/// short race. Only `--max-time` allows less.
const LEAST: Duration = Duration::from_secs(2);

/// Reciprocal of the maximum share of the race's time limit that is reserved for tracked runs. The
/// share is small, because rounds matter more.
const RESERVED: u32 = 6;

/// Number of entrants that are tracked even in a short race: the baseline and the leading entrant.
const ALWAYS: usize = 2;

/// Typical ratio of a tracked run's duration to that of a timed run.
const SLOWDOWN: u32 = 3;

impl Contest {
    /// Tracks the blocks of one entrant after another while the time allows, and returns the race's
    /// end.
    ///
    /// # Errors
    /// When the user interrupts, or the journal cannot be written.
    pub(super) fn with_evidence(&mut self, ended: Ended) -> Result<Ended, Failure> {
        if !self.wants_evidence() || !matches!(ended, Ended::Done(_)) {
            return Ok(ended);
        }
        let began = Instant::now();
        let timed = self.clock.rounds();
        let untimed = self.clock.spent().saturating_sub(timed);
        let most = self.plan().stopping.max_time.map_or(Duration::MAX, |most| {
            Duration::from(most).saturating_sub(timed + untimed)
        });
        for (rank, (entrant, wall)) in self.ranked().into_iter().enumerate() {
            let took = began.elapsed();
            let limit = budget(rank, timed, untimed + took).min(most.saturating_sub(took));
            let followed = self.race.evidence()[entrant].is_some();
            if !followed && wall.saturating_mul(SLOWDOWN) <= limit {
                self.follow(entrant, limit)?;
            }
        }
        Ok(ended)
    }

    /// Returns the time to reserve, within the limit `most`, for the tracked runs of the baseline
    /// and the leading entrant. `run` is the duration of a timed run.
    pub(super) fn time_of_evidence(&self, run: Duration, most: Duration) -> Duration {
        match self.wants_evidence() {
            true => reserve(run, most),
            false => Duration::ZERO,
        }
    }

    fn wants_evidence(&self) -> bool {
        let options = &self.plan().options;
        options.memory_runs > 0 && !options.unproven && !self.is_part()
    }

    /// Returns whether the race is one of several races that share their time.
    fn is_part(&self) -> bool {
        self.progress.has_title() || self.plan().part.is_some()
    }

    fn follow(&mut self, entrant: usize, limit: Duration) -> Result<(), Failure> {
        self.progress.untimed(Aim::Blocks, entrant);
        let evidence = self.prover.follow_blocks(&mut self.race, entrant, limit)?;
        let Some(evidence) = evidence else {
            return Ok(());
        };
        let evidence = Box::new(evidence);
        let line = JournalLine::Evidence { entrant, evidence };
        self.race.record(line).map_err(measure_failure)
    }

    /// Returns the baseline and then the valid rivals, the fastest first, each with its median wall
    /// time.
    fn ranked(&self) -> Vec<(usize, Duration)> {
        let result = self.with_material("", assemble);
        let ratio = |row: &EntrantResult| match row.role {
            Role::Baseline => 0.0,
            _ => row
                .versus_baseline
                .get(WALL.name)
                .map_or(f64::INFINITY, |it| it.ratio),
        };
        let counts = |row: &&EntrantResult| row.role != Role::Twin && row.status == Status::Ok;
        let mut rows: Vec<_> = result.entrants.iter().filter(counts).collect();
        rows.sort_by(|a, b| ratio(a).total_cmp(&ratio(b)));
        let entrants = &self.race.plan().entrants;
        let place = |row: &EntrantResult| {
            let place = entrants
                .iter()
                .position(|entrant| entrant.name == row.allocator);
            let wall = row.wall_s.as_ref().map(|wall| wall.median);
            let wall = wall.and_then(|wall| Duration::try_from_secs_f64(wall).ok());
            Some((place?, wall?))
        };
        rows.into_iter().filter_map(place).collect()
    }
}

/// Returns the time allowed for tracking the entrant at this position in the order of tracking.
/// The rounds took `timed`, and other untimed work took `untimed`.
fn budget(rank: usize, timed: Duration, untimed: Duration) -> Duration {
    let left = (timed / SHARE).saturating_sub(untimed);
    match rank < ALWAYS {
        true => left.max(LEAST),
        false => left,
    }
}

/// Returns the time to reserve, within the limit `most`, for tracking the first [`ALWAYS`]
/// entrants. `run` is the duration of a timed run.
fn reserve(run: Duration, most: Duration) -> Duration {
    let wanted = run.saturating_mul(SLOWDOWN * ALWAYS as u32);
    wanted.min(most / RESERVED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn untimed_work_takes_a_third_and_two_are_followed_in_any_race() {
        let seconds = Duration::from_secs;
        for (rank, untimed, most) in [(0, 20, 10), (5, 20, 10), (5, 29, 1), (5, 40, 0)] {
            assert_eq!(budget(rank, seconds(60), seconds(untimed)), seconds(most));
        }
        // The baseline's run does not reduce the time of the leading entrant's run.
        for untimed in [0, 2, 100] {
            assert_eq!(budget(1, seconds(3), seconds(untimed)), LEAST);
        }
        assert_eq!(budget(2, seconds(3), seconds(2)), Duration::ZERO);
    }

    #[test]
    fn a_limit_leaves_time_for_two_and_most_of_it_for_rounds() {
        let (ms, limit) = (Duration::from_millis, Duration::from_secs(30));
        assert_eq!(reserve(ms(100), limit), ms(600));
        assert_eq!(reserve(ms(10_000), limit), ms(5_000));
        assert_eq!(reserve(Duration::MAX, limit), ms(5_000));
    }
}
