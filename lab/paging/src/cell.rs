//! One setting of an experiment, and what came of it in each round.

use heapdrome_statistics::median;

use crate::{Distribution, Job, Limit, Preload, Report};

/// With so many rounds that came to nothing, a cell is given up.
const MOST_LOST: usize = 2;

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
    /// Why rounds of it came to nothing, one line for each.
    pub lost: Vec<String>,
    /// Why it is no longer run.
    pub failure: Option<String>,
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
            lost: Vec::new(),
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
        median(&self.figures(name))
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

    /// Why it was not measured, or is no longer run, if so.
    #[must_use]
    pub fn ending(&self) -> Option<String> {
        let rounds = self.sound().count();
        let lost = || self.lost.last().filter(|_| rounds == 0);
        let why = self.failure.as_ref().or_else(lost)?;
        Some(match rounds {
            0 => format!("not measured: {why}"),
            1 => format!("no longer run after 1 round: {why}"),
            rounds => format!("no longer run after {rounds} rounds: {why}"),
        })
    }

    /// A round of it came to nothing: one may by chance, and with a second it is given up.
    pub(crate) fn lose(&mut self, why: String) {
        match self.lost.len() + 1 {
            MOST_LOST => self.failure = Some(why),
            _ => self.lost.push(why),
        }
    }

    /// What a reader should know: how it ended, rounds that were lost or rejected, remarks, each once.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let ending = self.ending();
        let known = |why: &&String| ending.as_ref().is_some_and(|ending| ending.ends_with(*why));
        let lost = self.lost.iter().filter(|why| !known(why));
        let lost = lost.map(|why| format!("a round was lost: {why}"));
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
        for text in ending
            .iter()
            .cloned()
            .chain(lost)
            .chain(rejected)
            .chain(remarks)
        {
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        texts
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
    fn one_lost_round_is_told_of_and_the_second_ends_a_cell_whose_rounds_still_count() {
        let mut cell = Cell::new("a part", "one", Job::Probe, None);
        cell.lose("killed".to_owned());
        assert_eq!(cell.failure, None, "it is run again");
        assert_eq!(cell.remarks(), ["not measured: killed"]);
        cell.reports = vec![report(5.0, None), report(7.0, None)];
        assert_eq!(cell.ending(), None);
        assert_eq!(cell.remarks(), ["a round was lost: killed"]);
        cell.lose("killed".to_owned());
        assert!(cell.failure.is_some());
        assert_eq!(
            cell.remarks(),
            ["no longer run after 2 rounds: killed"],
            "each reason once"
        );
        assert_eq!(cell.median("rate"), Some(6.0));
    }
}
