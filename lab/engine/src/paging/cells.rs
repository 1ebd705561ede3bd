//! Cells of the paging lab, run in turns. Each result is stored before the next turn begins.

use std::time::Duration;

use heapdrome_paging::{Mechanism, Rounds, Schedule, evaluate, last_round, take_up};
use heapdrome_schema::{Collection, PagingCell as Cell, Purpose};

use super::{Opened, failure};
use crate::event::Event;
use crate::failure::Failure;
use crate::kept::Kept;

/// Cells to run, with their schedule.
pub struct Cells<'a> {
    /// Open session of the lab.
    pub opened: Opened<'a>,
    /// Mechanism for memory limits; `None` if the machine has none.
    pub mechanism: Option<Mechanism>,
    /// Numbers of rounds, and the limit of their total time.
    rounds: Rounds,
    /// Number of processors for the test of the claims in "Running lgalloc benchmarks on a target
    /// host"; `None` to skip the test.
    sentences: Option<usize>,
    /// Positions of the cells in the collection.
    places: Vec<usize>,
    /// Total time of earlier sessions.
    spent: Duration,
}

impl<'a> Cells<'a> {
    /// Adds the `wanted` cells to a collection. Keeps a stored cell that already has a report, and
    /// replaces one without a report.
    ///
    /// # Errors
    /// When the collection is not of the paging lab, or a cell was run earlier with other settings.
    /// In the second case, the error is the cell's experiment and name.
    pub fn new(
        opened: Opened<'a>,
        mechanism: Option<Mechanism>,
        rounds: Rounds,
        wanted: Vec<Cell>,
        collection: &mut Collection,
    ) -> Result<Self, String> {
        let Purpose::Paging { cells, time, .. } = &mut collection.purpose else {
            return Err(format!(
                "{} has no experiments of the paging lab",
                collection.name
            ));
        };
        // Use the description from the opening, which preceded every run. A later description would
        // attribute the lab's own load to other programs.
        if cells.iter().all(|cell| cell.reports.is_empty()) {
            collection.machine = opened.machine.clone();
        }
        let places = take_up(cells, wanted)?;
        Ok(Self {
            opened,
            mechanism,
            rounds,
            sentences: None,
            places,
            spent: time.map_or(Duration::ZERO, Duration::from),
        })
    }

    /// Enables the test of the claims in "Running lgalloc benchmarks on a target host".
    #[must_use]
    pub fn with_sentences(self) -> Self {
        Self {
            sentences: Some(self.rounds.processors),
            ..self
        }
    }

    /// Returns the cells to run.
    pub fn wanted<'c>(&self, collection: &'c mut Collection) -> impl Iterator<Item = &'c mut Cell> {
        let cells = collection.paging_cells_mut().iter_mut().enumerate();
        let places = self.places.clone();
        cells.filter_map(move |(place, cell)| places.contains(&place).then_some(cell))
    }

    /// Recomputes the tables and verdicts of a collection.
    pub fn evaluate(&self, collection: &mut Collection) {
        evaluate(collection, self.sentences);
    }

    /// Returns the total time of all sessions. Each session counts from its opening; an earlier
    /// session counts only until the end of its last turn.
    fn elapsed(&self) -> Duration {
        self.spent + self.opened.begun.elapsed()
    }

    fn schedule(&self, collection: &Collection) -> Schedule {
        let cells = collection.paging_cells();
        Schedule::new(self.rounds, cells, self.places.clone(), self.spent)
    }

    /// Returns whether no turn remains: every cell has had all its turns or has failed, or the time
    /// is used up.
    pub fn are_done(&self, collection: &Collection) -> bool {
        let next = self
            .schedule(collection)
            .next(collection.paging_cells(), self.elapsed());
        next.is_none()
    }

    /// Returns the number of cells with missing rounds, including cells that were given up, and the
    /// number of cells with all rounds done.
    pub fn left_and_done(&self, collection: &Collection) -> (usize, usize) {
        let all = collection.paging_cells();
        let cells = self.places.iter().map(|place| &all[*place]);
        let left = cells
            .filter(|cell| cell.last_round < self.rounds.all)
            .count();
        (left, self.places.len() - left)
    }

    /// Runs the cells, beginning with those that have the fewest rounds.
    ///
    /// # Errors
    /// When the user interrupts, or a result cannot be stored.
    pub fn run(&mut self, kept: &mut Kept<'_>) -> Result<(), Failure> {
        for remark in std::mem::take(&mut self.opened.remarks) {
            kept.remark(remark);
        }
        let mut schedule = self.schedule(&kept.collection);
        while let Some(turn) = schedule.next(kept.collection.paging_cells(), self.elapsed()) {
            let cell = &mut kept.collection.paging_cells_mut()[turn.place];
            let engine = self.opened.engine;
            engine.tell(Event::Turn { cell, turn });
            let lost = self.opened.lab.run_cell(cell, turn.round, self.mechanism);
            if let Some(why) = lost.map_err(failure)? {
                engine.tell(Event::RoundLost { cell, why: &why });
            }
            if let Purpose::Paging { time, .. } = &mut kept.collection.purpose {
                *time = Some(self.elapsed().into());
            }
            kept.write(|collection| self.evaluate(collection))?;
        }
        let remarks = self.told_rounds(kept.collection.paging_cells());
        remarks.into_iter().for_each(|remark| kept.remark(remark));
        Ok(())
    }

    /// Returns remarks for the reader on the number of rounds.
    fn told_rounds(&self, cells: &[Cell]) -> Vec<String> {
        let own = self.places.iter().map(|place| &cells[*place]);
        let run = own.filter(|cell| cell.failure.is_none());
        let all = run.map(|cell| cell.last_round).min();
        let mut told = Vec::new();
        if let Some(all) = all.filter(|all| *all < self.rounds.all) {
            told.push(format!(
                "{all} of {} rounds were run: another would have taken too long",
                self.rounds.all
            ));
        }
        let more = last_round(cells).saturating_sub(self.rounds.all);
        if more > 0 {
            told.push(format!(
                "{more} further rounds of cells whose targets or claims were open"
            ));
        }
        told
    }
}

/// Returns the outcome: success if anything was measured.
///
/// # Errors
/// When nothing was measured.
pub fn outcome(collection: &Collection) -> Result<(), Failure> {
    let mut cells = collection.paging_cells().iter();
    match cells.any(|cell| cell.sound().next().is_some()) {
        true => Ok(()),
        false => Err(Failure::Machine(
            "nothing could be measured; the notes below the tables say why".to_owned(),
        )),
    }
}
