//! Races of suites, run one after another. Each result is stored before the next race begins.

use heapdrome_schema::{Collection, Nanoseconds, Options, RaceResult, Scale, Stopping};
use heapdrome_suites::{Race, Suite, evaluate};

use crate::event::{Event, Piece};
use crate::failure::Failure;
use crate::kept::Kept;
use crate::placement;
use crate::race::{CellRequest, Judge, Load, ProofStore, run_cell, usual_options};
use crate::workload::Workload;

/// Value of `min_rounds` for a race with a fixed number of rounds, unless that number is smaller.
const LEAST_ROUNDS: u32 = 5;

/// Time after which a run counts as hung, except at the published scale.
const HANGS: Nanoseconds = Nanoseconds(900_000_000_000);

/// The races of suites.
pub struct Races {
    /// The suites without their unavailable allocators.
    pub suites: Vec<Suite>,
    /// Races of these suites.
    pub races: Vec<Race>,
    /// Allocators that are not built, because only an estimate is wanted.
    pub unbuilt: Vec<String>,
    /// Seed of every random draw.
    pub seed: u64,
    /// Whether the user selected cells. Misuse is not tested then.
    pub picked: bool,
    /// Proofs from the cells so far.
    pub proofs: ProofStore,
}

impl Races {
    /// Runs the remaining races. A race that cannot be run is reported and left out.
    ///
    /// # Errors
    /// When the file cannot be written, the user interrupts, or a race could not be run. A missing
    /// program is an error only if no race was run.
    pub fn run_races(&mut self, kept: &mut Kept<'_>) -> Result<(), Failure> {
        let races = self.races.clone();
        let done = |race: &&Race| kept.collection.races.iter().any(|member| race.is(member));
        let left: Vec<&Race> = races.iter().filter(|race| !done(race)).collect();
        let of = left.len();
        kept.engine().tell(Event::SuiteStarted {
            pieces: Piece::Race,
            left: of,
            done: races.len() - of,
            file: kept.file(),
        });
        let (mut first_failure, mut first_absent) = (None, None);
        for (place, race) in left.into_iter().enumerate() {
            let title = format!("[{} of {of}] {}", place + 1, race.title);
            let scale = kept.collection.scale();
            match self.race(race, &title, race.rounds, (scale, kept)) {
                Ok(result) => self.keep(race, result, kept)?,
                Err(Failure::Interrupted) => return Err(Failure::Interrupted),
                Err(failure) => {
                    kept.remark_on(&not_run(race), &failure.to_string());
                    let installed = Workload::find(&race.workload).map(|one| one.is_installed());
                    match installed {
                        Ok(false) => first_absent.get_or_insert(failure),
                        _ => first_failure.get_or_insert(failure),
                    };
                }
            }
        }
        match first_failure.or(first_absent.filter(|_| kept.collection.races.is_empty())) {
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }

    /// Runs one race for `rounds` rounds. A race with a maximum of its own continues until all its
    /// entrants are decided or that maximum is reached.
    ///
    /// # Errors
    /// See [`run_cell`].
    pub fn race(
        &mut self,
        race: &Race,
        title: &str,
        rounds: u32,
        (scale, kept): (Option<Scale>, &Kept<'_>),
    ) -> Result<RaceResult, Failure> {
        let engine = kept.engine();
        engine.check()?;
        engine.tell(Event::CellStarted(title));
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
            seed: self.seed,
            asked: kept.collection.asked.clone(),
            untold: None,
            part_of: None,
            new_limits: false,
            begun: None,
        };
        let proofs = Some(&mut self.proofs);
        run_cell(&request, engine, proofs)
    }

    /// Returns the judge that decides which entrants stop early, if the race has one.
    fn judge(&self, race: &Race) -> Option<Judge> {
        race.most_rounds?;
        let (name, _) = race.cell.split_once('/')?;
        let suite = self.suites.iter().find(|suite| suite.name == name)?;
        Some(Judge {
            suite: suite.clone(),
            race: race.clone(),
        })
    }

    /// Adds the result of a race to the collection, and writes the collection.
    fn keep(&self, race: &Race, result: RaceResult, kept: &mut Kept<'_>) -> Result<(), Failure> {
        if kept.collection.races.is_empty() {
            kept.collection.machine = result.machine.clone();
        }
        kept.forget(&not_run(race));
        kept.collection
            .races
            .push(race.member(result, pinned(race)));
        kept.write(|collection| self.evaluate(collection))
    }

    /// Computes the tables and verdicts from all results.
    pub fn evaluate(&self, collection: &mut Collection) {
        evaluate(&self.suites, collection).fill(&self.suites, collection);
    }
}

/// Returns the beginning of a remark on a race that was not run.
fn not_run(race: &Race) -> String {
    format!("{} was not run", label(race))
}

/// Returns the conditions for the end of a race. Without `most`, the race runs exactly `rounds`
/// rounds. Otherwise it runs from `rounds` to `most` rounds, until everything is decided.
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

/// Returns the cell of a race, with its value of the swept parameter.
pub fn label(race: &Race) -> String {
    match race.swept {
        Some(value) => format!("{} at {value}", race.cell),
        None => race.cell.clone(),
    }
}

/// Returns the processors for a race: one for each thread if the number of threads is swept,
/// otherwise an empty list for all.
fn pinned(race: &Race) -> Vec<usize> {
    match race.swept {
        Some(threads) if race.sweeps_threads => placement::processors(threads),
        _ => Vec::new(),
    }
}
