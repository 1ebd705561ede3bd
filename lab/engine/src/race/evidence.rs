//! Untimed runs that follow every block, after the rounds, so that a result can say why.
//!
//! The baseline and the leading entrant come first; the others only while all untimed runs together
//! take less than a third of the race's time. A run that fails is no failure of the race. `--memory-runs 0`
//! asks for no such runs either.

use std::time::{Duration, Instant};

use heapdrome_record::{EntrantResult, JournalLine, Role, Status};

use super::assembling::assemble;
use super::contest::{Contest, Ended};
use super::figures::WALL;
use super::measure_failure;
use crate::event::Aim;
use crate::failure::Failure;

/// Part of the time of the rounds that untimed runs may take together.
const SHARE: u32 = 3;

/// However short the race: so long may the runs of the baseline and the leading entrant take.
const LEAST: Duration = Duration::from_secs(2);

/// A run that follows every block takes about this many times as long as a timed one, as a rule.
const SLOWDOWN: u32 = 3;

impl Contest {
    /// Follows the blocks of those entrants whose runs the time allows, and returns how the race ended.
    ///
    /// # Errors
    /// When it is interrupted, or the journal cannot be written.
    pub(super) fn with_evidence(&mut self, ended: Ended) -> Result<Ended, Failure> {
        let options = &self.plan().options;
        let wanted = options.memory_runs > 0 && !options.unproven && !self.is_part();
        if !wanted || !matches!(ended, Ended::Done(_)) {
            return Ok(ended);
        }
        let began = Instant::now();
        let timed = self.clock.rounds();
        let untimed = self.clock.spent().saturating_sub(timed);
        let left = (timed / SHARE).saturating_sub(untimed);
        let most = self.plan().stopping.max_time.map_or(Duration::MAX, |most| {
            Duration::from(most).saturating_sub(timed + untimed)
        });
        for (rank, (entrant, wall)) in self.ranked().into_iter().enumerate() {
            let budget = if rank < 2 { left.max(LEAST) } else { left };
            let limit = budget.min(most).saturating_sub(began.elapsed());
            let followed = self.race.evidence()[entrant].is_some();
            if !followed && wall.saturating_mul(SLOWDOWN) <= limit {
                self.follow(entrant, limit)?;
            }
        }
        Ok(ended)
    }

    /// Whether the race is one of several, whose time is not its own.
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

    /// The baseline and the rivals that count, the fastest rival first, with their usual wall times.
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
