//! Suites: the tables of a document, measured here.

mod estimate;
mod misuse;
mod running;
mod selecting;

use std::path::PathBuf;

use heapdrome_record::{Collection, RaceResult, SCHEMA, Scale, Status};
use heapdrome_suites::Suite;

use crate::engine::Engine;
use crate::failure::Failure;
use crate::race::seed_from_clock;

pub use estimate::Estimate;
pub use misuse::misuse;
pub use running::Session;

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
    /// heapdrome's own arguments, by which the suite was asked for.
    pub asked: Vec<String>,
}

impl<'a> Session<'a> {
    /// Everything that can be wrong with a suite is found, and every allocator that it needs is built.
    ///
    /// # Errors
    /// When there is no suite of this name, it cannot be run, or it cannot go on.
    pub fn open(request: &SuiteRequest, engine: &'a Engine) -> Result<Self, Failure> {
        let scale = request.scale;
        let mut suites = selecting::suites(&request.name)?;
        Suite::check_only(&suites, &request.only).map_err(Failure::usage)?;
        let before = selecting::taken_up(request, scale)?;
        let equipment = selecting::equip(&mut suites, request, engine, scale)?;
        let mut races = selecting::races(&suites, request, &equipment.rivals, scale);
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
        if let Some(before) = &before {
            selecting::check_rivals(request, before, &races)?;
        }
        let seed = request.seed.unwrap_or_else(seed_from_clock);
        let collection = before.unwrap_or_else(|| empty(request));
        let work = running::Work {
            suites,
            races,
            unbuilt: equipment.unbuilt,
            seed,
        };
        Self::new(work, collection, request, engine)
    }

    /// How long the suite would take.
    ///
    /// # Errors
    /// When someone interrupts.
    pub fn estimate(&mut self) -> Result<Estimate, Failure> {
        estimate::estimate(self)
    }

    /// Runs what has not been run, misuse included where a target speaks of it.
    ///
    /// # Errors
    /// When the file cannot be written, someone interrupts, or a race could not be run for another
    /// reason than that its program is not installed; where nothing at all was run, for that, too.
    pub fn run(&mut self) -> Result<(), Failure> {
        let ended = self.run_races();
        // Cells that were picked are all that was asked for; and whoever interrupts waits for nothing.
        if self.is_picked() || matches!(ended, Err(Failure::Interrupted)) {
            return ended;
        }
        let tried = misuse::beside_races(self);
        ended.and(tried)
    }
}

fn empty(request: &SuiteRequest) -> Collection {
    let now = std::time::SystemTime::now();
    Collection {
        schema: SCHEMA,
        heapdrome: env!("CARGO_PKG_VERSION").to_owned(),
        started: humantime::format_rfc3339_seconds(now).to_string(),
        asked: request.asked.clone(),
        name: request.name.clone(),
        scale: Some(request.scale),
        ..Collection::default()
    }
}

/// What a suite that has been reported ends with.
///
/// # Errors
/// When an entrant failed.
pub fn outcome(collection: &Collection) -> Result<(), Failure> {
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
