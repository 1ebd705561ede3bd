//! Cells of an experiment, run in rounds so that what drifts meets all of them alike.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::words::size;
use crate::{Cell, Enclosure, Error, HUGE_PAGES, Lab, Limit, Mechanism, Report, Setting};

/// How often a cell is run again in a round whose report was rejected, or that ended for want of
/// memory while there was swap.
const AGAIN: u32 = 2;

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
    /// A cell could not be run in this round.
    Failed {
        /// Which.
        cell: &'a Cell,
        /// Why.
        reason: &'a str,
    },
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
    /// Runs rounds, after `done` others: in each those cells that `wanted` names, each in a process and
    /// under a limit of its own, until it names none. The order is turned by one from round to round.
    /// Returns how many rounds were run.
    ///
    /// # Errors
    /// When someone interrupts; what was measured until then is in the cells.
    pub fn rounds(
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
            let begun = done + more > 0;
            if these.is_empty() || begun && plan.within.is_some_and(late) {
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
                    cell.lose(reason);
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
