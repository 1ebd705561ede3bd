//! Proofs of a race, which determine the object that serves malloc. They are taken before any timed
//! run, and again when a library, the executable or the environment has changed.

use heapdrome_measure::{Event, Interrupt, MeasureError, Race};
use heapdrome_schema::{Coverage, Proof, Role, UnservedReason};

use super::contest::{Contest, Ended, program_of};
use super::measure_failure;
use super::prover::Shown;
use super::server;
use super::surroundings;
use crate::event::Aim;
use crate::failure::Failure;
use crate::interrupt;

type Events<'a> = &'a mut dyn FnMut(Event<'_>);

impl Contest {
    /// Takes the proofs that are missing or no longer valid. An entrant whose allocator does not
    /// serve the command is not timed. Returns the end of the race if no comparison is possible.
    pub(super) fn prove_all(&mut self) -> Result<Option<Ended>, Failure> {
        if self.race.plan().options.unproven {
            self.remark(UNPROVEN.to_owned())?;
            return Ok(self.lost());
        }
        for entrant in 0..self.race.plan().entrants.len() {
            if !self.race.is_racing(entrant) || self.prover.holds(&self.race, entrant)? {
                continue;
            }
            interrupt::check(&self.interrupt)?;
            if let Some(ended) = self.no_time_for_rounds() {
                return Ok(Some(ended));
            }
            if self.race.proofs()[entrant].is_some() && !self.race.runs().is_empty() {
                let cause = self.changed_meanwhile(entrant);
                self.prove_again(entrant, &cause)?;
                continue;
            }
            self.progress.untimed(Aim::Proof, entrant);
            let shared = self.shared.as_mut();
            let shown = self.prover.prove(&mut self.race, entrant, shared)?;
            let role = self.race.plan().entrants[entrant].role;
            match shown {
                Shown::Failed {
                    ending,
                    stderr_tail,
                } if role != Role::Rival => {
                    let how = failed_with(&ending.to_string(), &stderr_tail);
                    return self.failed_under_witness(&how).map(Some);
                }
                Shown::Failed { .. } => {}
                Shown::Traces(program) => return Ok(Some(Ended::DifferentWork(traces(&program)))),
                Shown::Proof(proof) => {
                    if let Some(chosen) = self.choice_of_command(entrant, &proof) {
                        let told = self.heed_choice(&chosen)?;
                        let ended = self.prove_all()?;
                        if ended.is_none() {
                            self.remark(told)?;
                        }
                        return Ok(ended);
                    }
                    let excluded = proof.coverage == Coverage::TooLittle;
                    if role == Role::Baseline && excluded && !proof.unserved.is_empty() {
                        return Ok(self.lost());
                    }
                }
            }
        }
        Ok(self.lost())
    }

    /// Returns the end of a race whose command failed under the witness for the baseline or its
    /// twin. One run without the witness shows whether the command or the witness is at fault. A
    /// server cannot be tried this way.
    fn failed_under_witness(&mut self, how: &str) -> Result<Ended, Failure> {
        if self.race.plan().options.server.is_some() {
            return Ok(Ended::BaselineFailed(baseline_failure(how)));
        }
        self.race
            .prepare(&self.interrupt)
            .map_err(measure_failure)?;
        let base = self.race.base_environment();
        let runs = server::succeeds_unwatched(self.race.plan(), base, &self.interrupt)?;
        Ok(Ended::BaselineFailed(match runs {
            true => only_unwatched(how),
            false => baseline_failure(how),
        }))
    }

    /// Returns the end of a race that has lost its baseline, its twin, or all rivals; `None` while
    /// a comparison is possible.
    pub(super) fn lost(&self) -> Option<Ended> {
        let entrants = self.race.plan().entrants.iter().enumerate();
        let (rivals, own): (Vec<_>, Vec<_>) = entrants
            .map(|(place, entrant)| (place, entrant.role))
            .partition(|(_, role)| *role == Role::Rival);
        let gone = |place: usize| !self.race.counts(place);
        if let Some((place, _)) = own.into_iter().find(|(place, _)| gone(*place)) {
            let failure = self
                .race
                .failures()
                .iter()
                .find(|failure| failure.entrant == place);
            if let Some(failure) = failure {
                let how = failed_with(&failure.ending.to_string(), &failure.stderr_tail);
                return Some(Ended::BaselineFailed(baseline_failure(&how)));
            }
        }
        let baseline = self.proof_that_excludes(self.race.plan().baseline());
        let first = rivals
            .iter()
            .find_map(|(place, _)| self.proof_that_excludes(*place));
        if rivals.iter().all(|(place, _)| gone(*place)) {
            // Prefer the reason in a rival's proof, such as a child without LD_PRELOAD. The proof
            // of a baseline without calls contains no reason.
            let why = first
                .or(baseline)
                .map_or_else(|| self.last_failure(), not_served);
            return Some(Ended::NothingToRace(why));
        }
        baseline.map(|proof| Ended::NothingToRace(not_served(proof)))
    }

    /// Returns the latest proof of an entrant, if it shows that the entrant's allocator served too
    /// little of the command.
    fn proof_that_excludes(&self, entrant: usize) -> Option<&Proof> {
        let proof = self.race.proofs().get(entrant)?.as_ref()?;
        (proof.coverage == Coverage::TooLittle).then_some(proof)
    }

    fn last_failure(&self) -> String {
        let last = self.race.failures().last();
        let how =
            last.map(|failure| format!("; the last: {} in {}", failure.ending, failure.during));
        format!(
            "every rival fails to run the command{}",
            how.unwrap_or_default()
        )
    }

    /// Performs one step of the race. If an entrant's library has changed, takes the proof of that
    /// entrant again and repeats the step.
    pub(super) fn guarded<T>(
        &mut self,
        step: impl Fn(&mut Race, Events<'_>, &Interrupt) -> Result<T, MeasureError>,
    ) -> Result<T, Failure> {
        loop {
            let progress = &mut self.progress;
            let done = step(
                &mut self.race,
                &mut |event| progress.follow(event),
                &self.interrupt,
            );
            match done {
                Err(MeasureError::LibraryChanged { entrant, .. }) => {
                    let cause = self.changed_files(entrant);
                    self.prove_again(entrant, &cause)?;
                }
                other => return other.map_err(measure_failure),
            }
        }
    }

    /// Describes a change to the files of an entrant or of the command.
    fn changed_files(&self, entrant: usize) -> String {
        let name = &self.race.plan().entrants[entrant].name;
        format!("{name} or the command changed")
    }

    /// Describes the change that happened while the race was interrupted: a change of the
    /// environment, or else of files.
    fn changed_meanwhile(&self, entrant: usize) -> String {
        let race = &self.race;
        let names = surroundings::changed(race.folder(), race.base_environment());
        match names.as_slice() {
            [] => self.changed_files(entrant),
            names => format!("the environment changed ({})", names.join(", ")),
        }
    }

    /// Takes a proof again after `cause` invalidated it, except with `--unproven`. Adds a remark,
    /// because the rounds before and after the change ran in different environments or used
    /// different files.
    fn prove_again(&mut self, entrant: usize, cause: &str) -> Result<(), Failure> {
        let round = self.race.complete_rounds() + 1;
        let unproven = self.race.plan().options.unproven;
        let then = if unproven { "" } else { "; proven again" };
        self.remark(format!("{cause} before round {round}{then}"))?;
        // Accept the library before the proof, so that a change during the proof is detected before
        // the next run.
        self.race.accept_library(entrant).map_err(measure_failure)?;
        if unproven {
            return Ok(());
        }
        match self.prover.prove(&mut self.race, entrant, None)? {
            Shown::Traces(program) => Err(Failure::Baseline(traces(&program))),
            Shown::Proof(_) | Shown::Failed { .. } => Ok(()),
        }
    }

    /// Takes new proofs in place of those that a changed executable has invalidated.
    pub(super) fn check_program(&mut self) -> Result<(), Failure> {
        let now = program_of(self.race.plan());
        if now == self.program {
            return Ok(());
        }
        self.program = now;
        for entrant in 0..self.race.plan().entrants.len() {
            if self.race.is_racing(entrant) && !self.prover.holds(&self.race, entrant)? {
                let cause = self.changed_files(entrant);
                self.prove_again(entrant, &cause)?;
            }
        }
        Ok(())
    }
}

const UNPROVEN: &str = "no proof was taken (--unproven): nothing shows that any allocator served the \
     command, or that the entrants did the same work";

const NEVER_ALLOCATES: &str = "the command never allocates, so there is nothing to race";

/// Explains why an allocator did not serve the command, with a remedy.
pub fn not_served(proof: &Proof) -> String {
    let greatest = proof.unserved.first();
    match greatest {
        Some(unserved) if unserved.reason == UnservedReason::StaticBinary => {
            format!(
                "{} is a static binary: {}",
                unserved.program, unserved.advice
            )
        }
        Some(unserved) => format!(
            "no allocator can serve {}: {}",
            unserved.program, unserved.advice
        ),
        None => NEVER_ALLOCATES.to_owned(),
    }
}

/// Maximum number of lines of standard error that a message quotes.
const QUOTED: usize = 3;

/// Describes the failure of the command in one line, with the last lines of its standard error.
fn failed_with(ending: &str, stderr_tail: &str) -> String {
    let lines = stderr_tail.lines().map(str::trim);
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    match &lines[lines.len().saturating_sub(QUOTED)..] {
        [] => format!("({ending})"),
        last => format!("({ending}): {}", last.join(" | ")),
    }
}

fn baseline_failure(how: &str) -> String {
    format!("the command fails under the baseline {how}; fix that first")
}

/// Explains the end of a race whose command traces programs, but continues without tracing when the
/// kernel refuses to let it trace.
fn traces(program: &str) -> String {
    format!(
        "{program} traces programs itself, but heapdrome traces them, too, and the kernel allows one tracer for \
         each process: timed runs would do different work than the proof shows; race the traced program itself, \
         race without a proof by --unproven, or race it as it is with --allow-different-work"
    )
}

/// Explains the end of a race whose command fails only under the witness. Debuggers and sanitizers
/// can cause this.
fn only_unwatched(how: &str) -> String {
    format!(
        "the command runs by itself, but fails when heapdrome traces it {how}; the \
         kernel allows one tracer for each process: race it without strace, gdb or LeakSanitizer, or \
         without a proof by --unproven"
    )
}

#[cfg(test)]
mod tests {
    use super::failed_with;

    #[test]
    fn a_failure_quotes_the_last_three_lines_that_are_not_empty() {
        let told = |stderr| failed_with("exit status 1", stderr);
        assert_eq!(told(""), "(exit status 1)");
        assert_eq!(told("one\n"), "(exit status 1): one");
        assert_eq!(
            told("one\ntwo\n\n  three\nfour\n \n"),
            "(exit status 1): two | three | four"
        );
    }
}
