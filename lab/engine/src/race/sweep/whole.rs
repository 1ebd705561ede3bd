//! Common data of the races of a sweep. Each race stores them in its journal, so that an
//! interrupted sweep can be resumed as a whole.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::SystemTime;

use heapdrome_measure::journal;
use heapdrome_schema::{Plan, Stopping};

use crate::engine::Engine;
use crate::event::{Event, GoingOn, RoundsDone};
use crate::failure::Failure;
use crate::program;
use crate::race::contest::unused_name;
use crate::race::plan::seed_from_clock;

/// A sweep that begins or is resumed.
pub struct Whole {
    /// Name by which the sweep can be resumed.
    pub name: String,
    /// Arguments of heapdrome that requested the sweep.
    pub asked: Vec<String>,
    /// Start time, in UTC, as RFC 3339.
    pub started: String,
    /// Seed of every random draw.
    pub seed: u64,
    /// Folders of the races that have begun, by cell.
    pub begun: BTreeMap<String, PathBuf>,
    /// Number of races that have ended.
    pub ended: usize,
    /// Total number of rounds done.
    rounds: u32,
    started_in: PathBuf,
}

impl Whole {
    /// Creates a sweep that begins now in the current folder, requested by these arguments of
    /// heapdrome.
    pub fn new(asked: Vec<String>, seed: Option<u64>, engine: &Engine) -> Self {
        let started = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        Self {
            name: unused_name(&engine.folders.races, &started),
            asked,
            started,
            seed: seed.unwrap_or_else(seed_from_clock),
            begun: BTreeMap::new(),
            ended: 0,
            rounds: 0,
            started_in: PathBuf::from("."),
        }
    }

    /// Returns the sweep to which the race of this plan belongs, with the races that it has so far;
    /// `None` for a single race.
    pub fn of(plan: &Plan, engine: &Engine) -> Option<Self> {
        let name = &plan.part.as_ref()?.of;
        let mut whole = Self {
            name: name.clone(),
            asked: plan.asked.clone(),
            started: plan.started.clone(),
            seed: plan.seed,
            begun: BTreeMap::new(),
            ended: 0,
            rounds: 0,
            started_in: plan.started_in.clone(),
        };
        for race in journal::list(&engine.folders.races) {
            let part = race.plan.part.filter(|part| part.of == *name);
            let Some(part) = part else { continue };
            whole.begun.insert(part.cell, race.folder);
            whole.ended += usize::from(race.finished);
            whole.rounds += race.rounds;
            whole.started = whole.started.min(race.plan.started);
        }
        Some(whole)
    }

    /// Reports that this sweep of `races` races is resumed, before any race continues.
    pub fn announce(&self, raced: &str, races: usize, stopping: &Stopping, engine: &Engine) {
        let of = u32::try_from(races).unwrap_or(u32::MAX);
        engine.tell(Event::GoingOn(GoingOn {
            name: &self.name,
            raced: &program::one_line(raced),
            begun: &self.started,
            folder: &self.started_in,
            races: Some((self.ended, races)),
            rounds: RoundsDone::of(self.rounds, of, stopping),
        }));
    }

    /// Changes to the folder in which the sweep was started, so that relative paths keep their
    /// meaning.
    ///
    /// # Errors
    /// When the folder cannot be entered, for example because it no longer exists.
    pub fn enter_folder(&self) -> Result<(), Failure> {
        std::env::set_current_dir(&self.started_in).map_err(|error| {
            Failure::Machine(format!(
                "cannot go to {}, where the sweep was started: {error}",
                self.started_in.display()
            ))
        })
    }
}
