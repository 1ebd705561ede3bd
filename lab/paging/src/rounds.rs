//! Cells of an experiment, run in rounds so that what drifts meets all of them alike.

use crate::{Distribution, Enclosure, Error, Job, Lab, Limit, Mechanism, Report};

/// One setting of an experiment, and what came of it.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Its name, as in the first column of a table.
    pub name: String,
    /// What its child does.
    pub job: Job,
    /// Under which limit.
    pub limit: Option<Limit>,
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
        cell: &'a str,
        /// In which round, from 1.
        round: u32,
        /// Of how many.
        rounds: u32,
    },
    /// A cell could not be run, and will not be run again.
    Failed {
        /// Which.
        cell: &'a str,
        /// Why.
        reason: &'a str,
    },
}

impl Cell {
    /// A cell that has not been run.
    pub fn new(name: impl Into<String>, job: Job, limit: Option<Limit>) -> Self {
        Self {
            name: name.into(),
            job,
            limit,
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

impl Lab {
    /// Runs every cell once in each round, each in a process and under a limit of its own. The order
    /// is turned by one from round to round.
    ///
    /// # Errors
    /// When someone interrupts; what was measured until then is in the cells.
    pub fn rounds(
        &self,
        cells: &mut [Cell],
        rounds: u32,
        mechanism: Option<Mechanism>,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), Error> {
        let count = cells.len();
        for round in 1..=rounds {
            for place in 0..count {
                let cell = &mut cells[(place + round as usize - 1) % count];
                if cell.failure.is_some() {
                    continue;
                }
                tell(Event::Begins {
                    cell: &cell.name,
                    round,
                    rounds,
                });
                match self.one(cell, mechanism) {
                    Ok(report) => cell.reports.push(report),
                    Err(Error::Interrupted) => return Err(Error::Interrupted),
                    Err(error) => {
                        let reason = error.to_string();
                        tell(Event::Failed {
                            cell: &cell.name,
                            reason: &reason,
                        });
                        cell.failure = Some(reason);
                    }
                }
            }
        }
        Ok(())
    }

    fn one(&self, cell: &Cell, mechanism: Option<Mechanism>) -> Result<Report, Error> {
        let Some(limit) = cell.limit else {
            return self.run(&cell.job, None);
        };
        let mechanism = match mechanism {
            Some(mechanism) => mechanism,
            None => self.mechanism()?,
        };
        let enclosure = Enclosure::make(mechanism, limit, &self.ledger)?;
        self.run(&cell.job, Some(&enclosure))
    }
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
        let mut cell = Cell::new("one", Job::Probe, None);
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
}
