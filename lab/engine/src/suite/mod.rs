//! Suites: the tables of a document, measured here.

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

/// A suite, as it is asked for.
pub struct SuiteRequest {
    /// The name of a suite or of several, or a file of the user's own.
    pub name: String,
    /// How much of it.
    pub scale: Scale,
    /// Whether only an estimate is wanted, so that no allocator is built.
    pub estimate: bool,
    /// Names, paths or groups of allocators that race instead of the suite's own; none for those.
    pub allocators: Vec<String>,
    /// The cells to run; none for all.
    pub only: Vec<String>,
    /// Rounds of each race, instead of the suite's own.
    pub rounds: Option<u32>,
    /// The file of a suite that goes on.
    pub resume: Option<PathBuf>,
    /// The file that keeps what is done of a suite that begins; `None` for one of its own.
    pub file: Option<PathBuf>,
    /// Whether that file has variables for the names of folders.
    pub redact: bool,
    /// The seed of every draw; `None` for one from the clock.
    pub seed: Option<u64>,
    /// What only the suite lgalloc has.
    pub document: DocumentRequest,
    /// heapdrome's own arguments, by which the suite was asked for.
    pub asked: Vec<String>,
}

/// What a suite is made of: races, or cells of the paging lab.
trait Pieces {
    /// How long what is left would take.
    fn estimate(&mut self, kept: &mut Kept<'_>) -> Result<Estimate, Failure>;

    /// Runs what is left, and keeps each piece before the next begins.
    fn run(&mut self, kept: &mut Kept<'_>) -> Result<(), Failure>;

    /// Makes tables and verdicts of all that there is.
    fn evaluate(&self, collection: &mut Collection);

    /// What the suite ends with when it has been reported.
    fn outcome(&self, collection: &Collection) -> Result<(), Failure>;
}

/// A suite while it runs.
pub struct Session<'a> {
    kept: Kept<'a>,
    pieces: Box<dyn Pieces + 'a>,
}

impl<'a> Session<'a> {
    /// Everything that can be wrong with a suite is found, and every allocator that it needs is
    /// built.
    ///
    /// # Errors
    /// When there is no suite of this name, it cannot be run, or it cannot go on.
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

    /// How long the suite would take.
    ///
    /// # Errors
    /// When someone interrupts.
    pub fn estimate(&mut self) -> Result<Estimate, Failure> {
        self.pieces.estimate(&mut self.kept)
    }

    /// Runs what has not been run, misuse included where a target speaks of it. Tells how to go on
    /// where someone interrupts.
    ///
    /// # Errors
    /// When the file cannot be written, someone interrupts, or a piece could not be run for another
    /// reason than that its program is not installed; where nothing at all was run, for that, too.
    pub fn run(&mut self) -> Result<(), Failure> {
        match self.pieces.run(&mut self.kept) {
            Err(Failure::Interrupted) => Err(self.kept.interrupted()),
            ended => ended,
        }
    }

    /// The result as far as it came, written where it is kept; `None` where nothing was run.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn result(&mut self) -> Result<Option<&Collection>, Failure> {
        let collection = &self.kept.collection;
        if collection.races.is_empty() && collection.paging_cells().is_empty() {
            return Ok(None);
        }
        let pieces = &self.pieces;
        self.kept.write(|collection| pieces.evaluate(collection))?;
        Ok(Some(&self.kept.collection))
    }

    /// What the suite ends with when it has been reported.
    ///
    /// # Errors
    /// When an entrant failed, or nothing was measured.
    pub fn outcome(&self) -> Result<(), Failure> {
        self.pieces.outcome(&self.kept.collection)
    }
}

impl Races {
    /// Finds everything that can be wrong with the suites, and builds every allocator that they
    /// need.
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
        // Misuse follows only where the whole suite was asked for and not interrupted.
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

/// Fails where an entrant failed.
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
