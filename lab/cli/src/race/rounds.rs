//! A race's rounds, and what decides that there are enough of them.

use std::time::{Duration, Instant};

use heapdrome_record::{Ending, JournalLine, MemoryRun, Role};
use heapdrome_statistics::{Decision, Stopping};

use super::assembling::{assemble, differing, wall_estimates};
use super::contest::{Contest, Ended};
use super::measure_failure;
use crate::failure::Failure;
use crate::output;

impl Contest {
    /// Rounds until the intervals are narrow enough, or time or rounds are used up.
    pub(super) fn rounds(&mut self) -> Result<Ended, Failure> {
        loop {
            if let Some(ended) = self.round_or_end()? {
                return Ok(ended);
            }
        }
    }

    /// One more round, or how the race ends where none is needed.
    pub(super) fn round_or_end(&mut self) -> Result<Option<Ended>, Failure> {
        if let Some(ended) = self.enough()? {
            return Ok(Some(ended));
        }
        self.one_round()?;
        self.leave_out_differing()?;
        self.interim_table()?;
        Ok(None)
    }

    /// Whether the rounds are enough, and why.
    fn enough(&mut self) -> Result<Option<Ended>, Failure> {
        let stopping = self.race.plan().stopping.clone();
        let wish = Stopping {
            precision: stopping.precision,
            min_rounds: stopping.min_rounds as usize,
            max_rounds: stopping.max_rounds as usize,
        };
        let most = stopping.max_time.map(Duration::from);
        if let Some(ended) = self.lost() {
            return Ok(Some(ended));
        }
        let rounds = self.race.complete_rounds();
        let enough = rounds >= stopping.min_rounds;
        if enough {
            self.watch_memory()?;
            if let Some(ended) = self.leave_out_decided()? {
                return Ok(Some(ended));
            }
        }
        let estimates = self.with_material("", wall_estimates);
        let reason = match wish.decide(rounds as usize, &estimates) {
            Decision::GoOn if enough && most.is_some_and(|most| self.timed >= most) => {
                "the time was used up".to_owned()
            }
            Decision::GoOn => return Ok(None),
            Decision::Precise => precise(stopping.precision),
            Decision::RoundsDone => format!("{rounds} rounds done"),
        };
        Ok(Some(Ended::Done(reason)))
    }

    fn one_round(&mut self) -> Result<(), Failure> {
        self.check_program()?;
        let started = Instant::now();
        self.guarded(|race, events, interrupt| race.next_round(events, interrupt))?;
        self.timed += started.elapsed();
        Ok(())
    }

    /// Takes those out of the race whose output differs from the baseline's, where all must print
    /// the same. A race that is resumed finds them here, too: nothing else remembers the round.
    fn leave_out_differing(&mut self) -> Result<(), Failure> {
        if !self.race.plan().options.same_output_required {
            return Ok(());
        }
        for entrant in self.with_material("", |material, _| differing(material)) {
            if !self.race.is_racing(entrant) {
                continue;
            }
            let name = &self.race.plan().entrants[entrant].name;
            let round = self.race.complete_rounds();
            self.progress.line(&format!(
                "{name} leaves the race: {} in round {round}",
                Ending::OutputDiffers
            ));
            self.race
                .record(JournalLine::Failed {
                    entrant,
                    ending: Ending::OutputDiffers,
                    during: format!("round {round}"),
                    stderr_tail: WHAT_DIFFERS.to_owned(),
                })
                .map_err(measure_failure)?;
        }
        Ok(())
    }

    /// The untimed runs that watch memory, where they have not been made yet, for every entrant
    /// that still races. The twin needs none.
    fn watch_memory(&mut self) -> Result<(), Failure> {
        let wanted = self.race.plan().options.memory_runs as usize;
        for entrant in 0..self.race.plan().entrants.len() {
            let made = |run: &&MemoryRun| run.entrant == entrant;
            let twin = self.race.plan().entrants[entrant].role == Role::Twin;
            while !twin
                && self.race.is_racing(entrant)
                && self.race.memory_runs().iter().filter(made).count() < wanted
            {
                self.guarded(|race, events, interrupt| {
                    race.memory_run(entrant, events, interrupt)
                })?;
            }
        }
        Ok(())
    }

    /// A table every few minutes, for who waits, on standard error; not where the end comes sooner,
    /// and not for a race of a collection, whose tables come in the end.
    fn interim_table(&mut self) -> Result<(), Failure> {
        let last = self.race.complete_rounds() >= self.race.plan().stopping.max_rounds;
        if last || self.progress.has_title() || self.last_table.elapsed() < TABLE_INTERVAL {
            return Ok(());
        }
        self.last_table = Instant::now();
        let result = self.with_material("still running", assemble);
        let table = heapdrome_report::interim(&result, output::terminal());
        self.progress.aside(|| output::print_aside(&table));
        Ok(())
    }
}

/// What an output that differs means; it stands where others have their standard error.
const WHAT_DIFFERS: &str = "the same load must print the same under every allocator, but for \
     figures: either memory did not hold what was written into it, or the allocator prints itself";

/// Time between tables while a race goes on.
const TABLE_INTERVAL: Duration = Duration::from_secs(180);

fn precise(precision: Option<f64>) -> String {
    format!(
        "every interval is within {:.2}%",
        100.0 * precision.unwrap_or_default()
    )
}
