//! One race after the other, each on disk as soon as it is done.

use std::path::{Path, PathBuf};

use heapdrome_record::{
    Collection, Nanoseconds, Options, RaceResult, Scale, Stopping, collection_to_json,
    compressed_if_named, write_atomically,
};
use heapdrome_suites::{Race, Suite, evaluate};

use super::SuiteRequest;
use crate::engine::Engine;
use crate::event::Event;
use crate::failure::Failure;
use crate::placement;
use crate::race::{CellRequest, Judge, Load, ProofStore, run_cell, usual_options};
use crate::workload::Workload;

/// Rounds that are run whatever the intervals say.
const LEAST_ROUNDS: u32 = 5;

/// A run that takes longer than this at a smaller scale than the published one hangs.
const HANGS: Nanoseconds = Nanoseconds(900_000_000_000);

/// A suite while it runs.
pub struct Session<'a> {
    /// What there is of it.
    pub collection: Collection,
    work: Work,
    engine: &'a Engine,
    proofs: ProofStore,
    file: PathBuf,
    redacted: bool,
    picked: bool,
}

/// What a suite is going to do.
pub(super) struct Work {
    /// The suites, without what cannot be had.
    pub(super) suites: Vec<Suite>,
    /// Their races.
    pub(super) races: Vec<Race>,
    /// Allocators that are not built, since only an estimate is wanted.
    pub(super) unbuilt: Vec<String>,
    /// The seed of every draw.
    pub(super) seed: u64,
}

impl<'a> Session<'a> {
    /// A session that writes into the file of `--resume` or `--json`, or else into one of its own
    /// beside the journals of races.
    ///
    /// # Errors
    /// When there is no folder for that file.
    pub(super) fn new(
        work: Work,
        collection: Collection,
        request: &SuiteRequest,
        engine: &'a Engine,
    ) -> Result<Self, Failure> {
        let file = match request.resume.as_ref().or(request.file.as_ref()) {
            Some(path) => path.clone(),
            None => own_file(engine, &collection)?,
        };
        Ok(Self {
            collection,
            work,
            engine,
            proofs: ProofStore::default(),
            file,
            redacted: request.redact,
            picked: !request.only.is_empty(),
        })
    }

    /// Runs what has not been run. A race that cannot be run is told and left out.
    ///
    /// # Errors
    /// When the file cannot be written, someone interrupts, or a race could not be run for another
    /// reason than that its program is not installed; where nothing at all was run, for that, too.
    pub(super) fn run_races(&mut self) -> Result<(), Failure> {
        let races = self.work.races.clone();
        let done = |race: &&Race| self.collection.races.iter().any(|member| race.is(member));
        let left: Vec<&Race> = races.iter().filter(|race| !done(race)).collect();
        let of = left.len();
        self.engine.tell(Event::SuiteStarted {
            races: of,
            done: races.len() - of,
            file: &self.file,
        });
        let (mut first_failure, mut first_absent) = (None, None);
        for (place, race) in left.into_iter().enumerate() {
            let title = format!("[{} of {of}] {}", place + 1, race.title);
            let scale = self.collection.scale;
            match self.race(race, &title, race.rounds, scale) {
                Ok(result) => self.keep(race, result)?,
                Err(Failure::Interrupted) => return Err(self.interrupted()),
                Err(failure) => {
                    let remark = format!("{} was not run: {failure}", label(race));
                    self.engine.tell(Event::Remark(&remark));
                    self.remark(remark);
                    let installed = Workload::find(&race.workload).map(|one| one.is_installed());
                    match installed {
                        Ok(false) => first_absent.get_or_insert(failure),
                        _ => first_failure.get_or_insert(failure),
                    };
                }
            }
        }
        match first_failure.or(first_absent.filter(|_| self.collection.races.is_empty())) {
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }

    /// The suites, without what cannot be had.
    pub fn suites(&self) -> &[Suite] {
        &self.work.suites
    }

    /// The races of the suites.
    pub fn races(&self) -> &[Race] {
        &self.work.races
    }

    /// Allocators that are not built, since only an estimate is wanted.
    pub fn unbuilt(&self) -> &[String] {
        &self.work.unbuilt
    }

    /// Whether cells were picked.
    pub fn is_picked(&self) -> bool {
        self.picked
    }

    /// What the suite works with.
    pub fn engine(&self) -> &'a Engine {
        self.engine
    }

    /// One race of so many rounds.
    ///
    /// # Errors
    /// As [`run_cell`].
    pub fn race(
        &mut self,
        race: &Race,
        title: &str,
        rounds: u32,
        scale: Option<Scale>,
    ) -> Result<RaceResult, Failure> {
        self.engine.check()?;
        self.engine.tell(Event::CellStarted(title));
        let limit = (scale != Some(Scale::Published)).then_some(HANGS);
        let request = CellRequest {
            cell: label(race),
            title: title.to_owned(),
            load: Load::Workload {
                name: race.workload.clone(),
                words: race.words.clone(),
                quick: false,
            },
            allocators: race.allocators.clone(),
            baseline: race.baseline.clone(),
            stopping: stopping(rounds, race.most_rounds),
            judge: self.judge(race),
            options: Options {
                pin: pinned(race),
                memory_runs: race.memory_runs,
                timeout: limit,
                ..usual_options()
            },
            seed: self.work.seed,
            asked: self.collection.asked.clone(),
            untold: None,
            part_of: None,
            new_limits: false,
            begun: None,
        };
        let proofs = Some(&mut self.proofs);
        run_cell(&request, self.engine, proofs)
    }

    /// Who tells which entrants are decided, where they run no more then.
    fn judge(&self, race: &Race) -> Option<Judge> {
        race.most_rounds?;
        let (name, _) = race.cell.split_once('/')?;
        let suite = self.work.suites.iter().find(|suite| suite.name == name)?;
        Some(Judge {
            suite: suite.clone(),
            race: race.clone(),
        })
    }

    /// Adds a race, makes tables and verdicts of all that there is, and writes it.
    fn keep(&mut self, race: &Race, result: RaceResult) -> Result<(), Failure> {
        if self.collection.races.is_empty() {
            self.collection.machine = result.machine.clone();
        }
        let old = format!("{} was not run:", label(race));
        let stale = |remark: &String| !remark.starts_with(&old);
        self.collection.remarks.retain(stale);
        let member = race.member(result, pinned(race));
        self.collection.races.push(member);
        self.write()
    }

    /// Tells why an allocator could not be misused.
    pub fn untried(&mut self, name: &str, why: &str) {
        let begins = format!("misuse was not tried under {name}: ");
        let stale = |remark: &String| !remark.starts_with(&begins);
        self.collection.remarks.retain(stale);
        let remark = format!("{begins}{why}");
        self.engine.tell(Event::Remark(&remark));
        self.remark(remark);
    }

    fn remark(&mut self, remark: String) {
        if !self.collection.remarks.contains(&remark) {
            self.collection.remarks.push(remark);
        }
    }

    fn write(&mut self) -> Result<(), Failure> {
        let evaluation = evaluate(&self.work.suites, &self.collection);
        evaluation.fill(&self.work.suites, &mut self.collection);
        let mut bytes = collection_to_json(&self.collection).map_err(Failure::machine)?;
        if self.redacted {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            bytes = self.engine.folders.redaction().text(&text).into_bytes();
        }
        let bytes = compressed_if_named(&self.file, bytes).map_err(Failure::machine)?;
        write_atomically(&self.file, &bytes).map_err(Failure::machine)
    }

    /// Tells how to go on after an interrupt.
    pub fn interrupted(&self) -> Failure {
        let file = self.file.to_string_lossy();
        self.engine.tell(Event::SuiteInterrupted {
            arguments: &again(&self.collection.asked),
            file: &shlex::try_quote(&file).unwrap_or_default(),
        });
        Failure::Interrupted
    }

    /// The result as far as it came, written where it is kept; `None` where no race was run.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn result(&mut self) -> Result<Option<&Collection>, Failure> {
        if self.collection.races.is_empty() {
            return Ok(None);
        }
        self.write()?;
        Ok(Some(&self.collection))
    }
}

/// So many rounds; with a most of them as many again as it takes until all is decided.
fn stopping(rounds: u32, most: Option<u32>) -> Stopping {
    Stopping {
        min_rounds: match most {
            None => rounds.min(LEAST_ROUNDS),
            Some(_) => rounds,
        },
        max_rounds: most.unwrap_or(rounds),
        until_decided: most.is_some(),
        ..Stopping::default()
    }
}

/// heapdrome's own arguments without an earlier `--resume`.
fn again(asked: &[String]) -> String {
    let mut words: Vec<&str> = Vec::new();
    let mut all = asked.iter().map(String::as_str);
    while let Some(word) = all.next() {
        match word {
            "--resume" => {
                all.next();
            }
            word if word.starts_with("--resume=") => {}
            word => words.push(word),
        }
    }
    shlex::try_join(words).unwrap_or_default()
}

/// The cell of a race, and its value of what the cell sweeps.
pub fn label(race: &Race) -> String {
    match race.swept {
        Some(value) => format!("{} at {value}", race.cell),
        None => race.cell.clone(),
    }
}

/// The processors of a race: one for each thread where its threads are swept, else all.
fn pinned(race: &Race) -> Vec<usize> {
    match race.swept {
        Some(threads) if race.sweeps_threads => placement::processors(threads),
        _ => Vec::new(),
    }
}

/// A file that no other suite writes to.
fn own_file(engine: &Engine, collection: &Collection) -> Result<PathBuf, Failure> {
    let folder = engine.folders.races.with_file_name("suites");
    std::fs::create_dir_all(&folder).map_err(|error| {
        Failure::Machine(format!(
            "cannot make {}: {error}; name a file with --json",
            folder.display()
        ))
    })?;
    let name = Path::new(&collection.name).file_stem().unwrap_or_default();
    let started = collection.started.replace(':', "-");
    let process = std::process::id();
    let name = name.to_string_lossy();
    Ok(folder.join(format!("{name}-{started}-{process}.json")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suite_that_is_taken_up_twice_names_one_file() {
        let asked = [
            "suite",
            "real",
            "--resume",
            "a b.json",
            "--quick",
            "--resume=x",
        ];
        let asked = asked.map(str::to_owned);
        assert_eq!(again(&asked), "suite real --quick");
    }
}
