//! Cells of an experiment, run in rounds so that what drifts meets all of them alike.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::words::size;
use crate::{
    Distribution, Enclosure, Error, HUGE_PAGES, Job, Lab, Limit, Mechanism, Preload, Report,
    Setting,
};

/// How often a cell is run again in a round whose report was rejected, or that ended for want of
/// memory while there was swap.
const AGAIN: u32 = 2;

/// One setting of an experiment, and what came of it.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The experiment that it is part of.
    pub part: &'static str,
    /// Its name in it, as in the first column of a table.
    pub name: String,
    /// What its child does.
    pub job: Job,
    /// Under which limit.
    pub limit: Option<Limit>,
    /// What its `malloc` comes from.
    pub preload: Option<Preload>,
    /// The kernel's choice about huge pages while it runs; `None` leaves it as it is.
    pub huge_pages: Option<&'static str>,
    /// One report for each round.
    pub reports: Vec<Report>,
    /// Why it is no longer run.
    pub failure: Option<String>,
}

/// What happens in an experiment.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A cell begins.
    Begins {
        /// Which.
        cell: &'a Cell,
        /// In which round, from 1.
        round: u32,
        /// Of how many.
        rounds: u32,
    },
    /// A cell could not be run, and will not be run again.
    Failed {
        /// Which.
        cell: &'a Cell,
        /// Why.
        reason: &'a str,
    },
}

impl Cell {
    /// A cell that has not been run.
    pub fn new(
        part: &'static str,
        name: impl Into<String>,
        job: Job,
        limit: Option<Limit>,
    ) -> Self {
        Self {
            part,
            name: name.into(),
            job,
            limit,
            preload: None,
            huge_pages: None,
            reports: Vec::new(),
            failure: None,
        }
    }

    /// Reports that may be used.
    pub fn sound(&self) -> impl Iterator<Item = &Report> {
        self.reports
            .iter()
            .filter(|report| report.rejected.is_none())
    }

    /// A figure in every sound report, in order of size.
    #[must_use]
    pub fn figures(&self, name: &str) -> Vec<f64> {
        let mut figures: Vec<f64> = self
            .sound()
            .filter_map(|report| report.figures.get(name).copied())
            .collect();
        figures.sort_by(f64::total_cmp);
        figures
    }

    /// The median of a figure over the sound reports.
    #[must_use]
    pub fn median(&self, name: &str) -> Option<f64> {
        let figures = self.figures(name);
        let middle = figures.len() / 2;
        match figures.len() {
            0 => None,
            odd if odd % 2 == 1 => Some(figures[middle]),
            _ => Some((figures[middle - 1] + figures[middle]) / 2.0),
        }
    }

    /// A distribution over the sound reports together.
    #[must_use]
    pub fn distribution(&self, name: &str) -> Distribution {
        let mut all = Distribution::default();
        let parts = self
            .sound()
            .filter_map(|report| report.distributions.get(name));
        parts.for_each(|part| all.merge(part));
        all
    }

    /// What a reader should know: failures, rejections, remarks, each once.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let failure = self
            .failure
            .iter()
            .map(|why| format!("not measured: {why}"));
        let rejected = self
            .reports
            .iter()
            .filter_map(|report| report.rejected.as_ref());
        let rejected = rejected.map(|why| format!("a round was rejected: {why}"));
        let remarks = self
            .reports
            .iter()
            .flat_map(|report| report.remarks.iter().cloned());
        let mut texts: Vec<String> = Vec::new();
        for text in failure.chain(rejected).chain(remarks) {
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        texts
    }
}

/// How cells are run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// How many rounds.
    pub rounds: u32,
    /// How limits are made, where it is known.
    pub mechanism: Option<Mechanism>,
    /// No round is begun that would end later than this after the first began, if it took as long as
    /// the longest before it; the first is always run.
    pub within: Option<Duration>,
}

impl Lab {
    /// Runs every cell once in each round, each in a process and under a limit of its own. The order
    /// is turned by one from round to round. Returns how many rounds were run.
    ///
    /// # Errors
    /// When someone interrupts; what was measured until then is in the cells.
    pub fn rounds(
        &self,
        cells: &mut [Cell],
        plan: Plan,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<u32, Error> {
        let (begin, mut longest) = (Instant::now(), Duration::ZERO);
        for round in 1..=plan.rounds {
            let now = Instant::now();
            let late = |within| (now - begin) + longest > within;
            if round > 1 && plan.within.is_some_and(late) {
                return Ok(round - 1);
            }
            let all: Vec<usize> = (0..cells.len()).collect();
            self.round(cells, &all, [round, plan.rounds], plan.mechanism, tell)?;
            longest = longest.max(now.elapsed());
        }
        Ok(plan.rounds)
    }

    /// Runs more rounds, after `done` of all cells: in each those cells alone that `wanted` names, until it
    /// names none. Of `plan`, rounds and time are those of these rounds. Returns how many were run.
    ///
    /// # Errors
    /// As [`Lab::rounds`].
    pub fn more_rounds(
        &self,
        cells: &mut [Cell],
        done: u32,
        plan: Plan,
        wanted: &dyn Fn(&[Cell]) -> Vec<usize>,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<u32, Error> {
        let (begin, mut longest) = (Instant::now(), Duration::ZERO);
        for more in 0..plan.rounds {
            let (now, these) = (Instant::now(), wanted(cells));
            let late = |within| (now - begin) + longest > within;
            if these.is_empty() || plan.within.is_some_and(late) {
                return Ok(more);
            }
            let numbers = [done + more + 1, done + plan.rounds];
            self.round(cells, &these, numbers, plan.mechanism, tell)?;
            longest = longest.max(now.elapsed());
        }
        Ok(plan.rounds)
    }

    /// Runs these cells once, in an order that is turned by one from round to round.
    fn round(
        &self,
        cells: &mut [Cell],
        these: &[usize],
        [round, rounds]: [u32; 2],
        mechanism: Option<Mechanism>,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), Error> {
        let count = these.len();
        for place in 0..count {
            let cell = &mut cells[these[(place + round as usize - 1) % count]];
            if cell.failure.is_some() {
                continue;
            }
            tell(Event::Begins {
                cell,
                round,
                rounds,
            });
            match self.cell(cell, round, mechanism) {
                Ok(reports) => cell.reports.extend(reports),
                Err(Error::Interrupted) => return Err(Error::Interrupted),
                Err(error) => {
                    let reason = error.to_string();
                    tell(Event::Failed {
                        cell,
                        reason: &reason,
                    });
                    cell.failure = Some(reason);
                }
            }
        }
        Ok(())
    }

    /// One cell in one round: rejected reports, if any, and then one that is sound; or, where none
    /// became sound, rejected ones alone.
    fn cell(
        &self,
        cell: &Cell,
        round: u32,
        mechanism: Option<Mechanism>,
    ) -> Result<Vec<Report>, Error> {
        let _held = match cell.huge_pages {
            None => None,
            Some(chosen) => Some(Setting::choose(
                Path::new(HUGE_PAGES),
                chosen,
                &self.ledger,
            )?),
        };
        let (mut reports, mut limit) = (Vec::new(), cell.limit);
        for left in (0..=AGAIN).rev() {
            match self.one(cell, limit, mechanism) {
                Ok(mut report) => {
                    report.round = round;
                    report.remarks.extend(more_room(cell.limit, limit));
                    let rejected = report.rejected.is_some();
                    reports.push(report);
                    if !rejected {
                        break;
                    }
                }
                Err(Error::OutOfMemory { free_swap, .. }) if left > 0 && free_swap > 0 => {
                    limit = limit.map(with_more_room);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(reports)
    }

    fn one(
        &self,
        cell: &Cell,
        limit: Option<Limit>,
        mechanism: Option<Mechanism>,
    ) -> Result<Report, Error> {
        let preload = cell.preload.as_ref();
        let Some(limit) = limit else {
            return self.run(&cell.job, None, preload);
        };
        let mechanism = match mechanism {
            Some(mechanism) => mechanism,
            None => self.mechanism()?,
        };
        let enclosure = Enclosure::make(mechanism, limit, &self.ledger)?;
        self.run(&cell.job, Some(&enclosure), preload)
    }
}

/// A limit that is a little wider.
fn with_more_room(limit: Limit) -> Limit {
    Limit {
        memory: limit.memory + (limit.memory / 64).next_multiple_of(4 << 20),
        ..limit
    }
}

/// That a limit was widened, if it was.
fn more_room(asked: Option<Limit>, used: Option<Limit>) -> Option<String> {
    let (asked, used) = (asked?.memory, used?.memory);
    (asked != used).then(|| {
        format!(
            "killed for memory under {} although swap was free; measured under {} instead",
            size(asked),
            size(used)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(rate: f64, rejected: Option<&str>) -> Report {
        Report {
            figures: [("rate".to_owned(), rate)].into(),
            distributions: [("reads".to_owned(), Distribution::new([(rate as u64, 1)]))].into(),
            rejected: rejected.map(str::to_owned),
            ..Report::default()
        }
    }

    #[test]
    fn rejected_rounds_count_for_nothing_and_are_told_of() {
        let mut cell = Cell::new("a part", "one", Job::Probe, None);
        assert_eq!(cell.median("rate"), None);
        cell.reports = vec![
            report(5.0, None),
            report(900.0, Some("crooked")),
            report(7.0, None),
        ];
        assert_eq!(cell.median("rate"), Some(6.0));
        assert_eq!(cell.distribution("reads").count(), 2);
        assert_eq!(cell.remarks(), ["a round was rejected: crooked"]);
        cell.reports.push(report(6.5, None));
        assert_eq!(cell.median("rate"), Some(6.5));
    }

    #[test]
    fn a_wider_limit_is_told_of() {
        let limit = Limit {
            memory: 512 << 20,
            swap: 1 << 30,
            processors: None,
        };
        let wider = with_more_room(limit);
        assert_eq!(wider.memory, 520 << 20);
        let told = more_room(Some(limit), Some(wider)).expect("it was widened");
        assert!(told.contains("512M") && told.contains("520M"), "{told}");
        assert_eq!(more_room(Some(limit), Some(limit)), None);
        assert_eq!(more_room(None, None), None);
    }
}
