//! A race from its plan to its end: proofs, rounds, memory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use heapdrome_measure::Race;
use heapdrome_schema::{Finding, JournalLine, Plan, Proof, RaceResult};

use super::judge::Judge;
use super::limits::Clock;
use super::material::Material;
use super::measure_failure;
use super::progress::Progress;
use super::prover::Prover;
use super::result::assemble;
use super::rules::Rules;
use super::store::{ProofStore, Shared};
use super::surroundings;
use crate::engine::Engine;
use crate::event::Found;
use crate::failure::Failure;
use crate::program;
use crate::program::Fingerprint;

/// End of a race, with its reason.
pub enum Ended {
    /// The race is complete. The value is the reason in words.
    Done(String),
    /// The command fails under the baseline.
    BaselineFailed(String),
    /// The entrants do different amounts of work, or the command traces programs, so times are not
    /// comparable.
    DifferentWork(String),
    /// No comparison is possible, for example because no allocator can serve the command.
    NothingToRace(String),
}

impl Ended {
    /// Returns the reason in words.
    fn reason(&self) -> &str {
        match self {
            Self::Done(reason)
            | Self::BaselineFailed(reason)
            | Self::DifferentWork(reason)
            | Self::NothingToRace(reason) => reason,
        }
    }
}

/// A race in progress.
pub struct Contest {
    pub(super) race: Race,
    name: String,
    pub(super) prover: Prover,
    pub(super) libc: Option<PathBuf>,
    pub(super) rules: Rules,
    pub(super) progress: Progress,
    pub(super) interrupt: Arc<AtomicBool>,
    pub(super) clock: Clock,
    /// Duration of the baseline's unrecorded run before the first round; `None` without such a run.
    pub(super) trial: Option<Duration>,
    pub(super) last_table: Instant,
    pub(super) program: Option<Fingerprint>,
    pub(super) remarks: Vec<String>,
    pub(super) shared: Option<Shared>,
    pub(super) judge: Option<Judge>,
}

impl Contest {
    /// Creates a race, and writes its plan into a new journal.
    ///
    /// # Errors
    /// When the command does not exist, or something cannot be written or started.
    pub fn start(engine: &Engine, plan: Plan) -> Result<Self, Failure> {
        let name = unused_name(&engine.folders.races, &plan.started);
        let machine = engine.machine();
        let folder = engine.folders.races.join(&name);
        let race = Race::start_with(engine.launcher(), plan, machine, &folder);
        let race = race.map_err(measure_failure)?;
        Self::around(race, name, engine)
    }

    /// Resumes the race in `folder`.
    ///
    /// # Errors
    /// When its journal is unusable.
    pub fn resume(folder: &Path, engine: &Engine) -> Result<Self, Failure> {
        let race = Race::resume_with(engine.launcher(), folder).map_err(measure_failure)?;
        let name = folder
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        Self::around(race, name, engine)
    }

    fn around(race: Race, name: String, engine: &Engine) -> Result<Self, Failure> {
        let prover = Prover::new(engine.folders.cache.root(), Arc::clone(&engine.interrupt))?;
        Ok(Self {
            rules: Rules::new(race.plan()),
            clock: Clock::after(race.runs()),
            trial: None,
            program: program_of(race.plan()),
            remarks: [removed_variables(&race), race.remarks().to_vec()].concat(),
            last_table: Instant::now(),
            progress: Progress::new(race.plan(), engine.sink()),
            libc: heapdrome_registry::system_libc(),
            race,
            name,
            prover,
            interrupt: Arc::clone(&engine.interrupt),
            shared: None,
            judge: None,
        })
    }

    /// Makes the race a part of a collection. `title` precedes every progress line. The race does
    /// not report a missing metric `untold`, because the collection reports it.
    pub fn entitle(&mut self, title: &str, untold: Option<&'static str>) {
        self.progress.entitle(title, untold);
    }

    /// Sets the judge of the race. Once the minimum number of rounds is done, the judge decides
    /// after each round which entrants stop.
    pub fn judged_by(&mut self, judge: Option<Judge>) {
        self.judge = judge;
    }

    /// Begins the race like [`Contest::begin`], but looks for proofs in `proofs` first and stores
    /// new ones there. Commands with the same first `program_words` words share a proof.
    ///
    /// # Errors
    /// See [`Contest::run`].
    pub fn begin_with(
        &mut self,
        proofs: &mut ProofStore,
        cell: &str,
        program_words: usize,
    ) -> Result<Option<Ended>, Failure> {
        self.shared = Some(Shared {
            store: std::mem::take(proofs),
            cell: cell.to_owned(),
            program_words,
        });
        let begun = self.begin();
        if let Some(shared) = self.shared.take() {
            *proofs = shared.store;
        }
        begun
    }

    /// Returns the name by which the race can be resumed.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the plan of the race.
    pub fn plan(&self) -> &Plan {
        self.race.plan()
    }

    /// Returns whether the race has ended.
    pub fn is_finished(&self) -> bool {
        self.race.finished().is_some()
    }

    /// Returns the number of complete rounds.
    pub fn rounds_done(&self) -> u32 {
        self.race.complete_rounds()
    }

    /// Returns the workload of the race, as the words after `-w`; `None` if it races a command.
    pub fn workload(&self) -> Option<&str> {
        self.race.plan().options.workload.as_deref()
    }

    /// Runs the rest of the race, including `--setup` and `--cleanup`.
    ///
    /// # Errors
    /// When the race cannot continue. The journal keeps the measurements.
    pub fn run(&mut self) -> Result<Ended, Failure> {
        let begun = self.begin();
        self.go_on(begun)
    }

    /// Does all work that precedes the rounds, such as `--setup`, the proofs and the warm-up.
    /// Returns the end of the race if it has already ended or cannot go on, for example because the
    /// command fails under the baseline.
    ///
    /// # Errors
    /// See [`Contest::run`].
    pub fn begin(&mut self) -> Result<Option<Ended>, Failure> {
        if let Some(reason) = self.race.finished() {
            let ended = Ended::Done(reason.to_owned());
            return Ok(Some(self.lost().unwrap_or(ended)));
        }
        self.clock.start();
        let begun = self.make_ready();
        self.clock.stop();
        begun
    }

    fn make_ready(&mut self) -> Result<Option<Ended>, Failure> {
        self.race.setup(&self.interrupt).map_err(measure_failure)?;
        if let Some(ended) = self.prove_all()? {
            return Ok(Some(ended));
        }
        if let Some(ended) = self.check_work()? {
            return Ok(Some(ended));
        }
        surroundings::keep(self.race.folder(), self.race.base_environment())?;
        if self.race.complete_rounds() == 0 {
            self.guarded(|race, events, interrupt| race.warm_up(events, interrupt))?;
            self.try_baseline()?;
        }
        self.announce();
        Ok(None)
    }

    /// Runs the rounds that follow [`Contest::begin`], if any, and ends the race.
    ///
    /// # Errors
    /// See [`Contest::run`].
    pub fn go_on(&mut self, begun: Result<Option<Ended>, Failure>) -> Result<Ended, Failure> {
        let ended = match begun {
            Ok(None) => self.rounds().and_then(|ended| self.with_evidence(ended)),
            Ok(Some(ended)) => Ok(ended),
            Err(failure) => Err(failure),
        };
        self.end(ended)
    }

    /// Does all work that follows the rounds, unless already done: runs `--cleanup`, and writes the
    /// end to the journal. A failure is written only for a race of a suite or a check; any other
    /// failed race can be resumed.
    ///
    /// # Errors
    /// See [`Contest::run`]. A failure of the rounds takes precedence over one of `--cleanup`.
    pub fn end(&mut self, ended: Result<Ended, Failure>) -> Result<Ended, Failure> {
        if self.is_finished() {
            return ended;
        }
        let cleaned = self.race.cleanup().map_err(measure_failure);
        let ended = ended.and_then(|ended| cleaned.map(|()| ended));
        let reason = match &ended {
            Ok(ended) => ended.reason().to_owned(),
            Err(failure) if self.progress.has_title() && self.plan().part.is_none() => {
                failure.to_string()
            }
            Err(_) => return ended,
        };
        let recorded = self.race.record(JournalLine::Finished { reason });
        ended.and_then(|ended| recorded.map(|()| ended).map_err(measure_failure))
    }

    /// Returns the result so far. `ended` gives the reason why the race ended.
    pub fn result(&self, ended: &Result<Ended, Failure>) -> RaceResult {
        let words = match ended {
            Ok(ended) => ended.reason().to_owned(),
            Err(failure) => failure.to_string(),
        };
        self.with_material(&words, assemble)
    }

    /// Reports that the race stops working, which hides its progress bar.
    pub fn close(&self) {
        self.progress.close();
    }

    /// Reports that the race works again, which shows its progress bar.
    pub fn open(&self) {
        self.progress.open();
    }

    /// Reports a remark to the user and to the reader of the result. Each remark is reported once,
    /// even if the race is resumed.
    pub(super) fn remark(&mut self, text: String) -> Result<(), Failure> {
        if self.remarks.contains(&text) {
            return Ok(());
        }
        self.progress.found(Found::Remark(&text));
        self.remarks.push(text.clone());
        let line = JournalLine::Remark { text };
        self.race.record(line).map_err(measure_failure)
    }

    pub(super) fn with_material<T>(
        &self,
        ended: &str,
        use_it: impl Fn(&Material<'_>, &Rules) -> T,
    ) -> T {
        let proofs: BTreeMap<usize, Proof> = self
            .race
            .proofs()
            .iter()
            .enumerate()
            .filter_map(|(entrant, proof)| Some((entrant, proof.clone()?)))
            .collect();
        let failures = self.race.failures().iter().map(|failure| {
            let finding = Finding {
                ending: failure.ending,
                during: failure.during.clone(),
                stderr_tail: failure.stderr_tail.clone(),
            };
            (failure.entrant, finding)
        });
        let material = Material {
            plan: self.race.plan(),
            machine: self.race.machine(),
            runs: self.race.runs(),
            proofs: &proofs,
            failures: &failures.collect(),
            decided: self.race.decided(),
            evidence: self.race.evidence(),
            memory: self.race.memory_runs(),
            remarks: &self.remarks,
            ended,
        };
        use_it(&material, &self.rules)
    }
}

/// Returns an unused name for a race. One process, such as a suite, may start several races within
/// one second, so the later ones get a number.
pub(super) fn unused_name(races: &Path, started: &str) -> String {
    let name = format!("{}-{}", started.replace(':', "-"), std::process::id());
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let mut names = std::iter::once(name.clone()).chain(numbered);
    names
        .find(|name| !races.join(name).exists())
        .unwrap_or_default()
}

/// Returns a remark on the environment variables that were removed. Entrants are comparable only
/// without outside settings.
fn removed_variables(race: &Race) -> Vec<String> {
    match race.base_environment().removed.as_slice() {
        [] => Vec::new(),
        names => vec![format!(
            "removed from the environment: {}",
            names.join(", ")
        )],
    }
}

/// Returns the fingerprint of the command's executable file, if the file can be found.
pub(super) fn program_of(plan: &Plan) -> Option<Fingerprint> {
    let path = program::find(plan.command.first()?, &plan.directory())?;
    program::fingerprint(&path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn races_of_the_same_second_have_names_of_their_own() {
        let races = tempfile::tempdir().expect("a folder");
        let name = |_| {
            let name = unused_name(races.path(), "2026-11-21T10:09:44Z");
            std::fs::create_dir(races.path().join(&name)).expect("an unused name");
            name
        };
        let names: Vec<String> = (0..3).map(name).collect();
        assert_eq!(names[1], format!("{}-2", names[0]));
        assert_eq!(names[2], format!("{}-3", names[0]));
    }
}
