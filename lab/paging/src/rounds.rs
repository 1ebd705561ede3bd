//! The runs of one cell in one round.

use std::path::Path;

use heapdrome_schema::{Bytes, Limit, PagingCell as Cell, PagingReport};
use heapdrome_system::kernel::HUGE_PAGES;

use crate::words::size;
use crate::{Enclosure, Error, Lab, Mechanism, Setting};

/// Maximum number of reruns of a cell in one round. A cell is run again after a rejected report, or
/// after an OOM kill with swap free.
const AGAIN: u32 = 2;

impl Lab {
    /// Runs a cell in its own process and under its own limit, and adds its reports. If the round
    /// is lost, returns the reason.
    ///
    /// # Errors
    /// When the user interrupts. The cell is then unchanged.
    pub fn run_cell(
        &self,
        cell: &mut Cell,
        round: u32,
        mechanism: Option<Mechanism>,
    ) -> Result<Option<String>, Error> {
        match self.once(cell, round, mechanism) {
            Ok(reports) => cell.add(round, reports),
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            Err(error) => {
                cell.lose(round, error.to_string());
                return Ok(Some(error.to_string()));
            }
        }
        Ok(None)
    }

    /// Runs a cell in one round. Returns the rejected reports, and then the sound report if a run
    /// produced one.
    fn once(
        &self,
        cell: &Cell,
        round: u32,
        mechanism: Option<Mechanism>,
    ) -> Result<Vec<PagingReport>, Error> {
        let _held = match &cell.huge_pages {
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
                Err(Error::OutOfMemory { free_swap, .. }) if left > 0 && free_swap > Bytes(0) => {
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
    ) -> Result<PagingReport, Error> {
        let allocator = cell.allocator.as_ref();
        let Some(limit) = limit else {
            return self.run(&cell.job, None, allocator);
        };
        let mechanism = match mechanism {
            Some(mechanism) => mechanism,
            None => self.mechanism()?,
        };
        let enclosure = Enclosure::make(mechanism, limit, &self.ledger)?;
        self.run(&cell.job, Some(&enclosure), allocator)
    }
}

/// Widens the memory limit by 1/64, rounded up to a multiple of 4 MiB.
fn with_more_room(limit: Limit) -> Limit {
    Limit {
        memory: limit.memory + Bytes(limit.memory.0 / 64).rounded_up_to(Bytes::from_mib(4)),
        ..limit
    }
}

/// Returns a remark if the limit was widened.
fn more_room(asked: Option<Limit>, used: Option<Limit>) -> Option<String> {
    let (asked, used) = (asked?.memory, used?.memory);
    (asked != used).then(|| {
        format!(
            "out of memory under {} although swap was free; measured under {} instead",
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
            memory: Bytes::from_mib(512),
            swap: Bytes::from_gib(1),
            processors: None,
        };
        let wider = with_more_room(limit);
        assert_eq!(wider.memory, Bytes::from_mib(520));
        let told = more_room(Some(limit), Some(wider)).expect("it was widened");
        assert!(told.contains("512M") && told.contains("520M"), "{told}");
        assert_eq!(more_room(Some(limit), Some(limit)), None);
        assert_eq!(more_room(None, None), None);
    }
}
