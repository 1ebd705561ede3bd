//! The rounds of a race, and its memory runs.

use heapdrome_schema::{Ending, JournalLine, MemoryRun, Run};

use crate::launchers::{Attempt, Finished};
use crate::{Event, Interrupt, MeasureError, Race, RoundEnd, output, schedule};

/// A timed run that ended, successfully or not.
struct Timed {
    run: Run,
    failed: bool,
}

impl Race {
    /// Runs the plan's warm-up rounds, which are not recorded. An entrant that fails in one of them
    /// leaves the race.
    ///
    /// # Errors
    /// See [`Race::next_round`].
    pub fn warm_up(
        &mut self,
        events: &mut dyn FnMut(Event<'_>),
        interrupt: &Interrupt,
    ) -> Result<(), MeasureError> {
        let of = self.state.plan.options.warmup_rounds;
        for round in 0..of {
            events(Event::WarmupStarted { round, of });
            // Number warm-up rounds downwards from the maximum, so that their random draws differ
            // from those of counted rounds.
            let draw = u32::MAX - round;
            for (position, entrant) in self.order(draw).into_iter().enumerate() {
                let timed = self.timed(draw, position, entrant, events, interrupt)?;
                if timed.failed {
                    let during = format!("warm-up round {}", round + 1);
                    self.fail(&timed.run, during, events)?;
                }
            }
        }
        Ok(())
    }

    /// Runs one entrant once, without recording the run, and returns whether the run succeeded. The
    /// caller measures the duration of this call to estimate the end of the race. An entrant that
    /// fails here stays in the race.
    ///
    /// # Errors
    /// See [`Race::next_round`].
    pub fn trial(
        &mut self,
        entrant: usize,
        events: &mut dyn FnMut(Event<'_>),
        interrupt: &Interrupt,
    ) -> Result<bool, MeasureError> {
        let timed = self.timed(u32::MAX, 0, entrant, events, interrupt)?;
        Ok(!timed.failed)
    }

    /// Runs a round: every entrant that still races runs once, in an order specific to the round. A
    /// round that was interrupted earlier is completed. Each run is on disk before the next one
    /// starts.
    ///
    /// # Errors
    /// Returns an error if something other than an entrant fails, or if the interrupt flag is set.
    /// After [`MeasureError::LibraryChanged`] the caller may prove the entrant again, call
    /// [`Race::accept_library`], and continue the round.
    pub fn next_round(
        &mut self,
        events: &mut dyn FnMut(Event<'_>),
        interrupt: &Interrupt,
    ) -> Result<RoundEnd, MeasureError> {
        let round = self.complete_rounds();
        let mut order = self.order(round);
        order.retain(|&entrant| !self.state.has_run(round, entrant));
        events(Event::RoundStarted {
            round,
            runs: order.len(),
        });
        let during = format!("round {}", round + 1);
        for entrant in order {
            // If the round was interrupted, its earlier runs and failures have taken the first
            // positions.
            let failed = self.state.failed_during(&during).count();
            let position = self.state.runs_in(round).count() + failed;
            let timed = self.timed(round, position, entrant, events, interrupt)?;
            if timed.failed {
                self.fail(&timed.run, during.clone(), events)?;
            } else {
                self.record(JournalLine::Run(Box::new(timed.run)))?;
            }
        }
        let failed = self.state.failed_during(&during).collect();
        Ok(RoundEnd { round, failed })
    }

    /// Returns the entrants that still race, in the order of a round.
    fn order(&self, round: u32) -> Vec<usize> {
        let plan = &self.state.plan;
        let mut order = schedule::order(plan.seed, round, plan.entrants.len());
        order.retain(|&entrant| self.state.is_racing(entrant));
        order
    }

    /// Prepares, performs and checks one timed run, without recording it.
    fn timed(
        &mut self,
        round: u32,
        position: usize,
        entrant: usize,
        events: &mut dyn FnMut(Event<'_>),
        interrupt: &Interrupt,
    ) -> Result<Timed, MeasureError> {
        self.make_ready(entrant, events, interrupt)?;
        events(Event::RunStarted { entrant });
        let padding = schedule::padding(self.state.plan.seed, round, entrant);
        let attempt = Attempt {
            entrant,
            padding,
            counters: true,
        };
        let finished = self
            .launchers
            .attempt(&self.state.plan, attempt, &mut None, interrupt)?;
        let finished = self.checked(finished, interrupt)?;
        let timed = self.timed_of(round, position, attempt, finished, events)?;
        events(Event::RunEnded(&timed.run));
        Ok(timed)
    }

    /// Checks the entrant's library and runs the `--prepare` command.
    fn make_ready(
        &mut self,
        entrant: usize,
        events: &mut dyn FnMut(Event<'_>),
        interrupt: &Interrupt,
    ) -> Result<(), MeasureError> {
        if let Some(libraries) = self.libraries.get_mut(entrant) {
            libraries.check()?;
        }
        if self.state.plan.options.prepare.is_some() {
            events(Event::Preparing { entrant });
        }
        self.prepare(interrupt)
    }

    /// Runs the `--check` command, if there is one, after a successful run. If the check fails, the
    /// run counts as failed.
    fn checked(
        &mut self,
        mut finished: Finished,
        interrupt: &Interrupt,
    ) -> Result<Finished, MeasureError> {
        let Some(check) = self
            .state
            .plan
            .options
            .check
            .as_ref()
            .filter(|_| !finished.failed)
        else {
            return Ok(finished);
        };
        let status = match self.launchers.shell(check, None, interrupt)? {
            Ending::Exited(0) => return Ok(finished),
            Ending::Exited(status) => status,
            Ending::Killed(signal) => 128 + signal,
            Ending::TimedOut | Ending::CheckFailed(_) | Ending::OutputDiffers => 1,
        };
        finished.outcome.ending = Ending::CheckFailed(status);
        finished.failed = true;
        finished.stderr_tail = output::tail(&self.launchers.scratch.step_stderr);
        Ok(finished)
    }

    fn timed_of(
        &self,
        round: u32,
        position: usize,
        attempt: Attempt,
        finished: Finished,
        events: &mut dyn FnMut(Event<'_>),
    ) -> Result<Timed, MeasureError> {
        let Finished {
            outcome,
            failed,
            stderr_tail,
        } = finished;
        let usage = outcome.usage;
        let metrics = if failed {
            Vec::new()
        } else {
            self.launchers.metrics(&self.state.plan, attempt, events)?
        };
        let run = Run {
            round,
            position: u32::try_from(position).unwrap_or(u32::MAX),
            entrant: attempt.entrant,
            wall: outcome.wall,
            user: usage.user,
            system: usage.system,
            peak_rss: usage.peak_rss,
            minor_faults: usage.minor_faults,
            major_faults: usage.major_faults,
            voluntary_switches: usage.voluntary_switches,
            involuntary_switches: usage.involuntary_switches,
            ending: outcome.ending,
            output: self.launchers.output_hash(&self.state.plan)?,
            stderr_tail,
            counters: outcome.counters,
            metrics: metrics.into_iter().collect(),
            environment_padding: attempt.padding,
            detached: outcome.detached,
        };
        Ok(Timed { run, failed })
    }

    /// Records that an entrant failed in `run`, which removes the entrant from the race.
    fn fail(
        &mut self,
        run: &Run,
        during: String,
        events: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), MeasureError> {
        self.record(JournalLine::Failed {
            entrant: run.entrant,
            ending: run.ending,
            during,
            stderr_tail: run.stderr_tail.clone(),
        })?;
        if let Some(failure) = self.state.failures.last() {
            events(Event::EntrantFailed(failure));
        }
        Ok(())
    }

    /// Runs the command once, untimed, and reads the memory of the measured process tree. Returns
    /// `None` if the run failed and the entrant left the race.
    ///
    /// # Errors
    /// See [`Race::next_round`].
    pub fn memory_run(
        &mut self,
        entrant: usize,
        events: &mut dyn FnMut(Event<'_>),
        interrupt: &Interrupt,
    ) -> Result<Option<MemoryRun>, MeasureError> {
        self.make_ready(entrant, events, interrupt)?;
        events(Event::MemoryRunStarted { entrant });
        let mut watch = Some(self.launchers.watch(self.memory_method, interrupt)?);
        let attempt = Attempt {
            entrant,
            padding: 0,
            counters: false,
        };
        let finished = self
            .launchers
            .attempt(&self.state.plan, attempt, &mut watch, interrupt)?;
        let finished = self.checked(finished, interrupt)?;
        if finished.failed {
            let timed = self.timed_of(0, 0, attempt, finished, events)?;
            self.fail(&timed.run, "the memory run".to_owned(), events)?;
            return Ok(None);
        }
        let Some(watch) = watch else { return Ok(None) };
        let run = watch.finish(entrant);
        self.record(JournalLine::Memory(run.clone()))?;
        events(Event::MemoryRunEnded(&run));
        Ok(Some(run))
    }
}
