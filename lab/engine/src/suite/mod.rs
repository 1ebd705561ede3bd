//! Suites: sets of races, of paging-lab cells, or of tests of misuse.

mod document;
mod estimate;
mod misuse;
mod races;
mod selection;

use std::path::PathBuf;

use heapdrome_schema::{Collection, Purpose, RaceResult, Scale, Status};
use heapdrome_suites::Suite;

use crate::engine::Engine;
use crate::failure::Failure;
use crate::kept::{Kept, started};
use crate::race::{ProofStore, seed_from_clock};

use races::Races;

pub use document::{DocumentRequest, NAME as LGALLOC};
pub use estimate::Estimate;
pub use misuse::misuse;
pub use selection::is_file;

/// Request for a suite.
pub struct SuiteRequest {
    /// Name of a suite or of a group of suites, or a file of the user's own.
    pub name: String,
    /// Scale at which the suite is run.
    pub scale: Scale,
    /// Whether only an estimate is wanted. Then no allocator is built.
    pub estimate: bool,
    /// Names, paths or groups of allocators that replace those of the suite; empty for the suite's
    /// own.
    pub allocators: Vec<String>,
    /// Cells, experiments or kinds of misuse to run, depending on the suite; empty for all.
    pub only: Vec<String>,
    /// Number of rounds of each race or paging-lab cell; `None` for the suite's own.
    pub rounds: Option<u32>,
    /// File of a suite to resume.
    pub resume: Option<PathBuf>,
    /// File for the results of a new suite; `None` for a file in heapdrome's own folder.
    pub file: Option<PathBuf>,
    /// Whether variables replace folder names in the file for the results.
    pub redact: bool,
    /// Seed of every random draw. If `None`, the seed comes from the clock, or is fixed in the
    /// suite `lgalloc`.
    pub seed: Option<u64>,
    /// Options that only the suite `lgalloc` has.
    pub document: DocumentRequest,
    /// Arguments of heapdrome that requested the suite.
    pub asked: Vec<String>,
}

/// Pieces of a suite: races, or cells of the paging lab.
trait Pieces {
    /// Estimates the time of the remaining pieces.
    fn estimate(&mut self, kept: &mut Kept<'_>) -> Result<Estimate, Failure>;

    /// Runs the remaining pieces. Stores the result of each race, or of each turn of a cell, before
    /// the next begins.
    fn run(&mut self, kept: &mut Kept<'_>) -> Result<(), Failure>;

    /// Computes the tables and verdicts from all results.
    fn evaluate(&self, collection: &mut Collection);

    /// Returns heapdrome's outcome for a suite. The report already contains the details.
    fn outcome(&self, collection: &Collection) -> Result<(), Failure>;
}

/// An open suite: its collection, and the pieces to run.
pub struct Session<'a> {
    kept: Kept<'a>,
    pieces: Box<dyn Pieces + 'a>,
}

impl<'a> Session<'a> {
    /// Opens a suite, and reports errors of the request. Unless only an estimate is wanted, builds
    /// every missing allocator that the suite needs.
    ///
    /// # Errors
    /// When the suite is unknown, cannot be run, or cannot be resumed.
    pub fn open(request: &SuiteRequest, engine: &'a Engine) -> Result<Self, Failure> {
        let before = selection::taken_up(request, request.scale)?;
        let file = request.resume.as_ref().or(request.file.as_ref());
        let keep = |before: Option<Collection>| {
            let collection = before.unwrap_or_else(|| empty(request));
            Kept::in_file(collection, file.cloned(), request.redact, engine)
        };
        if request.name == LGALLOC {
            let mut kept = keep(before)?;
            let pieces = Box::new(document::Document::open(request, &mut kept)?);
            return Ok(Self { kept, pieces });
        }
        let races = Races::of(request, before.as_ref(), engine)?;
        Ok(Self {
            kept: keep(before)?,
            pieces: Box::new(races),
        })
    }

    /// Estimates the time of the suite.
    ///
    /// # Errors
    /// When the user interrupts, or the paging lab cannot run its probes.
    pub fn estimate(&mut self) -> Result<Estimate, Failure> {
        self.pieces.estimate(&mut self.kept)
    }

    /// Runs the remaining pieces, and tests misuse if a target or a claim depends on it. After an
    /// interrupt, reports how to resume.
    ///
    /// # Errors
    /// When the file cannot be written, the user interrupts, or a piece could not be run. A missing
    /// program is an error only if no piece was run.
    pub fn run(&mut self) -> Result<(), Failure> {
        match self.pieces.run(&mut self.kept) {
            Err(Failure::Interrupted) => Err(self.kept.interrupted()),
            ended => ended,
        }
    }

    /// Returns the result so far, and writes it to its file; `None` if no piece was run.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn result(&mut self) -> Result<Option<&Collection>, Failure> {
        let collection = &self.kept.collection;
        if collection.races.is_empty() && collection.paging_cells().is_empty() {
            return Ok(None);
        }
        let pieces = &self.pieces;
        self.kept.write(|collection| pieces.evaluate(collection))?;
        Ok(Some(&self.kept.collection))
    }

    /// Returns heapdrome's outcome for a suite. The report already contains the details.
    ///
    /// # Errors
    /// When an entrant failed, or nothing was measured.
    pub fn outcome(&self) -> Result<(), Failure> {
        self.pieces.outcome(&self.kept.collection)
    }
}

impl Races {
    /// Opens races of suites, and reports errors in the suites. Unless only an estimate is wanted,
    /// builds every missing allocator that the races need.
    fn of(
        request: &SuiteRequest,
        before: Option<&Collection>,
        engine: &Engine,
    ) -> Result<Self, Failure> {
        let scale = request.scale;
        let mut suites = selection::suites(&request.name)?;
        Suite::check_only(&suites, &request.only).map_err(Failure::usage)?;
        let equipment = selection::equip(&mut suites, request, engine, scale)?;
        let mut races = selection::races(&suites, request, &equipment.rivals, scale);
        if let Some(rounds) = request.rounds {
            for race in &mut races {
                (race.rounds, race.most_rounds) = (rounds, None);
            }
        }
        if races.is_empty() {
            return Err(Failure::usage(
                "nothing to run: no cell has an allocator to compare at this scale",
            ));
        }
        if let Some(before) = before {
            selection::check_rivals(request, before, &races)?;
        }
        Ok(Self {
            suites,
            races,
            unbuilt: equipment.unbuilt,
            seed: request.seed.unwrap_or_else(seed_from_clock),
            picked: !request.only.is_empty(),
            proofs: ProofStore::default(),
        })
    }
}

impl Pieces for Races {
    fn estimate(&mut self, kept: &mut Kept<'_>) -> Result<Estimate, Failure> {
        estimate::estimate(self, kept)
    }

    fn run(&mut self, kept: &mut Kept<'_>) -> Result<(), Failure> {
        let ended = self.run_races(kept);
        // Misuse is tested only if all cells are selected and the user has not interrupted.
        if self.picked || matches!(ended, Err(Failure::Interrupted)) {
            return ended;
        }
        let tried = misuse::beside_races(self, kept);
        ended.and(tried)
    }

    fn evaluate(&self, collection: &mut Collection) {
        self.evaluate(collection);
    }

    fn outcome(&self, collection: &Collection) -> Result<(), Failure> {
        outcome(collection)
    }
}

fn empty(request: &SuiteRequest) -> Collection {
    let purpose = match request.name == LGALLOC {
        true => Purpose::paging(request.scale),
        false => Purpose::suite(request.scale),
    };
    started(&request.name, purpose, request.asked.clone())
}

/// Returns heapdrome's outcome for races: a failure if an entrant failed in any of them.
fn outcome(collection: &Collection) -> Result<(), Failure> {
    let out = |result: &RaceResult| {
        let rows = result.entrants.iter();
        let failed = rows.filter(|row| row.status != Status::Ok);
        failed.map(|row| row.allocator.clone()).collect::<Vec<_>>()
    };
    let races = collection.races.iter();
    let mut names: Vec<String> = races.flat_map(|race| out(&race.result)).collect();
    names.sort();
    names.dedup();
    match names.as_slice() {
        [] => Ok(()),
        names => Err(Failure::Entrant(format!(
            "not in every race: {}",
            names.join(", ")
        ))),
    }
}
