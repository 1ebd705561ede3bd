//! Rounds of a race, and the decision whether they suffice.

use std::time::{Duration, Instant};

use heapdrome_schema::{self as schema, Ending, JournalLine, MemoryRun, Nanoseconds, Role};
use heapdrome_statistics::{Decision, Stopping, median};

use super::contest::{Contest, Ended};
use super::judge::judged_estimates;
use super::limits::Outlook;
use super::result::{assemble, differing};
use super::{limits, measure_failure};
use crate::event::Found;
use crate::failure::Failure;

impl Contest {
    /// Replaces the limits of the race, even if it had ended. `max_time` counts from now.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn limit(&mut self, stopping: schema::Stopping) -> Result<(), Failure> {
        let until = |time| Duration::from(time) + self.clock.spent();
        let stopping = schema::Stopping {
            max_time: stopping.max_time.map(until).map(Nanoseconds::from),
            ..stopping
        };
        let line = JournalLine::Limits { stopping };
        self.race.record(line).map_err(measure_failure)?;
        self.progress.follow_plan(self.race.plan());
        Ok(())
    }

    /// Runs rounds until the race ends.
    pub(super) fn rounds(&mut self) -> Result<Ended, Failure> {
        loop {
            if let Some(ended) = self.round_or_end()? {
                return Ok(ended);
            }
        }
    }

    /// Runs one more round, or returns the end of the race if none is needed or possible.
    pub(super) fn round_or_end(&mut self) -> Result<Option<Ended>, Failure> {
        self.clock.start();
        let ended = self.next_or_end();
        self.clock.stop();
        ended
    }

    fn next_or_end(&mut self) -> Result<Option<Ended>, Failure> {
        if let Some(ended) = self.enough()? {
            return Ok(Some(ended));
        }
        self.one_round()?;
        self.leave_out_differing()?;
        self.interim_table()?;
        Ok(None)
    }

    /// Reports the expected time left. Does nothing for a race of a collection.
    pub(super) fn announce(&mut self) {
        let race = &self.race;
        let Some(run) = self.one_run().filter(|_| !self.progress.has_title()) else {
            return;
        };
        let racing = (0..race.plan().entrants.len()).filter(|place| race.is_racing(*place));
        let runs = u32::try_from(racing.count()).unwrap_or(u32::MAX);
        let wanted = race
            .plan()
            .options
            .memory_runs
            .saturating_mul(runs.saturating_sub(1));
        let made = u32::try_from(race.memory_runs().len()).unwrap_or(u32::MAX);
        let server = race.plan().options.server.as_ref();
        let outlook = Outlook {
            runs,
            run,
            done: race.complete_rounds(),
            memory_runs: wanted.saturating_sub(made),
            idle: server.map_or(Duration::ZERO, |server| server.idle.into()),
            spent: self.clock.spent(),
        };
        let stopping = &race.plan().stopping;
        self.progress.found(Found::Outlook(&outlook.tell(stopping)));
        self.progress.limit(outlook.longest(stopping));
    }

    /// Runs the baseline once, without recording the run, if the shortest run under the witness was
    /// short. The forecast uses this run, because a short command takes several times as long under
    /// the witness. Does nothing for a race of a collection, which has no forecast.
    pub(super) fn try_baseline(&mut self) -> Result<(), Failure> {
        let watched = self.prover.shortest_run();
        let is_short = watched.is_some_and(|run| run < SHORT && self.fits(run));
        if !is_short || self.progress.has_title() {
            return Ok(());
        }
        let baseline = self.race.plan().baseline();
        let started = Instant::now();
        let ended_well =
            self.guarded(|race, events, interrupt| race.trial(baseline, events, interrupt))?;
        self.trial = ended_well.then(|| started.elapsed());
        Ok(())
    }

    /// Returns the duration of one run: the baseline's median, or else its trial, or else the
    /// shortest run under the witness; `None` without any run.
    fn one_run(&self) -> Option<Duration> {
        let baseline = self.race.plan().baseline();
        let own = self
            .race
            .runs()
            .iter()
            .filter(|run| run.entrant == baseline);
        let walls: Vec<f64> = own.map(|run| run.wall.as_seconds()).collect();
        match median(&walls) {
            Some(seconds) => Some(Duration::from_secs_f64(seconds.max(0.0))),
            None => self.trial.or_else(|| self.prover.shortest_run()),
        }
    }

    /// Returns the end of the race if no further round is needed or possible. After the minimum
    /// number of rounds, makes the missing memory runs first.
    fn enough(&mut self) -> Result<Option<Ended>, Failure> {
        let stopping = self.race.plan().stopping.clone();
        if let Some(ended) = self.lost() {
            return Ok(Some(ended));
        }
        let rounds = self.race.complete_rounds();
        let least = limits::least_rounds(&stopping, self.one_run().unwrap_or_default());
        let may_end = rounds >= least;
        if rounds >= stopping.min_rounds {
            self.watch_memory()?;
            if let Some(ended) = self.leave_out_decided(may_end)? {
                return Ok(Some(ended));
            }
        }
        let wish = Stopping {
            precision: stopping.precision,
            min_rounds: least as usize,
            max_rounds: stopping.max_rounds as usize,
        };
        let estimates = self.with_material("", judged_estimates);
        let reason = match wish.decide(rounds as usize, &estimates) {
            Decision::GoOn => self.out_of_time(rounds, may_end),
            Decision::Precise => Some(precise(stopping.precision)),
            Decision::RoundsDone => Some(format!("{rounds} rounds done")),
        };
        Ok(reason.map(Ended::Done))
    }

    /// Returns the reason why there is no time for another round; `None` if there is time.
    fn out_of_time(&self, rounds: u32, may_end: bool) -> Option<String> {
        let round = self.clock.rounds().checked_div(rounds).unwrap_or_default();
        let run = self.one_run().unwrap_or_default();
        let limit = self.race.plan().stopping.max_time.map(Duration::from);
        let after = limit.map_or(Duration::ZERO, |most| self.time_of_evidence(run, most));
        if !self.fits(round + after) {
            return Some(limits::used_up(rounds));
        }
        let pace = self.race.plan().stopping.pace.filter(|_| may_end)?;
        let most = limits::time_of_rounds(pace, run);
        (self.clock.rounds() + round > most).then(|| limits::used_up(rounds))
    }

    /// Returns whether an action of this duration ends before `--max-time` is used up.
    fn fits(&self, time: Duration) -> bool {
        let most = self.race.plan().stopping.max_time.map(Duration::from);
        most.is_none_or(|most| self.clock.spent() + time < most)
    }

    /// Returns the end of the race if its `--max-time` is used up before the first round.
    pub(super) fn no_time_for_rounds(&self) -> Option<Ended> {
        let first = self.race.runs().is_empty() && !self.fits(Duration::ZERO);
        first.then(|| {
            let run = self.prover.shortest_run().map(limits::about);
            let run = run.map_or_else(String::new, |run| format!(", of which one takes about {run}"));
            Ended::NothingToRace(format!(
                "--max-time was used up before the first round by the untimed runs that prove which allocator serves{run}; \
                 raise it, or race fewer allocators with -a"
            ))
        })
    }

    fn one_round(&mut self) -> Result<(), Failure> {
        self.check_program()?;
        let started = Instant::now();
        self.guarded(|race, events, interrupt| race.next_round(events, interrupt))?;
        self.clock.round_took(started.elapsed());
        Ok(())
    }

    /// Removes entrants whose output differs from the baseline's, if all entrants must print the
    /// same output. Each check covers all runs so far, including those before an interrupt.
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
            let during = format!("round {round}");
            self.progress.found(Found::Left {
                entrant: name,
                ending: Ending::OutputDiffers,
                during: &during,
            });
            self.race
                .record(JournalLine::Failed {
                    entrant,
                    ending: Ending::OutputDiffers,
                    during,
                    stderr_tail: WHAT_DIFFERS.to_owned(),
                })
                .map_err(measure_failure)?;
        }
        Ok(())
    }

    /// Makes the missing memory runs of every entrant that still races, except the twin, while
    /// `--max-time` allows it.
    fn watch_memory(&mut self) -> Result<(), Failure> {
        let wanted = self.race.plan().options.memory_runs as usize;
        for entrant in 0..self.race.plan().entrants.len() {
            let made = |run: &&MemoryRun| run.entrant == entrant;
            let twin = self.race.plan().entrants[entrant].role == Role::Twin;
            while !twin
                && self.race.is_racing(entrant)
                && self.race.memory_runs().iter().filter(made).count() < wanted
            {
                if !self.fits(self.one_run().unwrap_or_default()) {
                    return self.remark(NO_MEMORY_RUN.to_owned());
                }
                self.guarded(|race, events, interrupt| {
                    race.memory_run(entrant, events, interrupt)
                })?;
            }
        }
        Ok(())
    }

    /// Reports an interim table every few minutes, except in finished races and races of a
    /// collection.
    fn interim_table(&mut self) -> Result<(), Failure> {
        let last = self.race.complete_rounds() >= self.race.plan().stopping.max_rounds;
        if last || self.progress.has_title() || self.last_table.elapsed() < TABLE_INTERVAL {
            return Ok(());
        }
        self.last_table = Instant::now();
        let result = self.with_material("still running", assemble);
        self.progress.interim(&result);
        Ok(())
    }
}

/// Remark that explains why memory runs are missing.
const NO_MEMORY_RUN: &str = "--max-time was used up before every memory run was made";

/// Explanation of a differing output, shown in place of standard error.
const WHAT_DIFFERS: &str = "the same load must print the same output under every allocator, \
     except for figures: either memory was corrupted, or the allocator itself printed something";

/// Run time under the witness below which the baseline makes one run without the witness.
const SHORT: Duration = Duration::from_secs(1);

/// Time between interim tables.
const TABLE_INTERVAL: Duration = Duration::from_secs(180);

fn precise(precision: Option<f64>) -> String {
    format!(
        "every interval is within {:.2}%",
        100.0 * precision.unwrap_or_default()
    )
}
