//! One setting of an experiment, with its results in each round.

use serde::{Deserialize, Serialize};

use super::{Distribution, Job, PagingReport};
use crate::{Bytes, Entrant};

/// Number of lost rounds after which a cell is given up.
const MOST_LOST: usize = 2;

/// An experiment of the paging lab. The variants are in the order of the published document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Experiment {
    /// Allocation and release of regions.
    Throughput,
    /// The paging benchmark: random reads of a working set that does not fit into memory, and
    /// regions that return from swap.
    Paging,
    /// The paging benchmark at a quarter of its size.
    Heavy,
    /// Random reads of one working set under several memory limits.
    RatioSweep,
    /// Effect of memory advice on reads.
    Strategies,
    /// The kernel's policies for transparent huge pages.
    Thp,
    /// Memory that stays resident after a burst.
    Burst,
}

impl Experiment {
    /// Every experiment, in the order of the published document.
    pub const ALL: [Self; 7] = [
        Self::Throughput,
        Self::Paging,
        Self::Heavy,
        Self::RatioSweep,
        Self::Strategies,
        Self::Thp,
        Self::Burst,
    ];

    /// Returns the experiment's name in JSON and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Paging => "paging",
            Self::Heavy => "heavy",
            Self::RatioSweep => "ratio-sweep",
            Self::Strategies => "strategies",
            Self::Thp => "thp",
            Self::Burst => "burst",
        }
    }
}

impl std::fmt::Display for Experiment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Resource limits of a cell's child process.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// Memory limit.
    pub memory: Bytes,
    /// Swap limit, in addition to the memory limit.
    pub swap: Bytes,
    /// Quota of processor time, in processors.
    pub processors: Option<f64>,
}

/// One setting of an experiment, with its results in each round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PagingCell {
    /// Experiment to which the cell belongs.
    pub part: Experiment,
    /// Name within the experiment, as in the first column of a table.
    #[serde(rename = "cell")]
    pub name: String,
    /// Job of the cell's child process.
    pub job: Job,
    /// Resource limits of the cell's child process; `None` for no limits.
    #[serde(flatten)]
    pub limit: Option<Limit>,
    /// Allocator that serves the child's `malloc`; `None` for the C library.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocator: Option<Entrant>,
    /// Kernel policy for huge pages during the run; `None` leaves the policy unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub huge_pages: Option<String>,
    /// Reports of the rounds, in order, including rejected reports.
    pub reports: Vec<PagingReport>,
    /// Reasons for lost rounds, each in one line. The reason for the round at which the cell was
    /// given up is in `failure` instead.
    pub lost: Vec<String>,
    /// Reason why the cell was given up or could not be run, if so.
    pub failure: Option<String>,
    /// Last round in which the cell was run, counted from 1; zero if it was never run.
    #[serde(default)]
    pub last_round: u32,
}

impl PagingCell {
    /// Creates a cell that has not been run.
    pub fn new(part: Experiment, name: impl Into<String>, job: Job, limit: Option<Limit>) -> Self {
        Self {
            part,
            name: name.into(),
            job,
            limit,
            allocator: None,
            huge_pages: None,
            reports: Vec::new(),
            lost: Vec::new(),
            failure: None,
            last_round: 0,
        }
    }

    /// Returns the name of the cell's allocator; without one, the name of the job's holder. A job
    /// without a holder counts as using [`Holder::Lgalloc`](crate::Holder::Lgalloc).
    pub fn held_by(&self) -> &str {
        let holder = self.job.holder().unwrap_or_default();
        holder.name_of(self.allocator.as_ref())
    }

    /// Returns whether `key` consists of the cell's experiment and name, such as `paging/random
    /// reads`.
    pub fn is(&self, key: &str) -> bool {
        let name = key
            .strip_prefix(self.part.name())
            .and_then(|rest| rest.strip_prefix('/'));
        name == Some(&self.name)
    }

    /// Returns whether both cells have the same job, memory limit, processors, allocator and policy
    /// for huge pages, so that their measurements are comparable.
    pub fn is_set_as(&self, other: &Self) -> bool {
        let setting = |cell: &Self| {
            let allocator = cell.allocator.as_ref();
            let served = allocator.map(|one| (one.name.clone(), one.sha256.clone()));
            let limit = cell.limit.map(|limit| (limit.memory, limit.processors));
            (served, limit, cell.huge_pages.clone())
        };
        self.job == other.job && setting(self) == setting(other)
    }

    /// Returns the reports that were not rejected.
    pub fn sound(&self) -> impl Iterator<Item = &PagingReport> {
        self.reports
            .iter()
            .filter(|report| report.rejected.is_none())
    }

    /// Returns the values of a figure in the accepted reports, in ascending order.
    pub fn figures(&self, name: &str) -> Vec<f64> {
        let mut figures: Vec<f64> = self
            .sound()
            .filter_map(|report| report.figures.get(name).copied())
            .collect();
        figures.sort_by(f64::total_cmp);
        figures
    }

    /// Returns the distribution `name`, merged over all accepted reports.
    pub fn distribution(&self, name: &str) -> Distribution {
        let mut all = Distribution::default();
        let parts = self
            .sound()
            .filter_map(|report| report.distributions.get(name));
        parts.for_each(|part| all.merge(part));
        all
    }

    /// Describes why the cell was given up. If it was not given up but has no accepted report,
    /// describes the reason for its latest lost round. Returns `None` in all other cases.
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

    /// Records a lost round. A single lost round may be chance; after the second, the cell is given
    /// up.
    pub fn lose(&mut self, round: u32, why: String) {
        self.last_round = round;
        match self.lost.len() + 1 {
            MOST_LOST => self.failure = Some(why),
            _ => self.lost.push(why),
        }
    }

    /// Adds the reports of a round: any rejected reports, followed by at most one accepted report.
    pub fn add(&mut self, round: u32, reports: Vec<PagingReport>) {
        self.last_round = round;
        self.reports.extend(reports);
    }

    /// Returns remarks for the reader: why the cell was given up or not measured, lost or rejected
    /// rounds, and the remarks of reports. Each remark occurs once.
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
    use crate::Nanoseconds;

    fn report(rate: f64, rejected: Option<&str>) -> PagingReport {
        PagingReport {
            figures: [("rate".to_owned(), rate)].into(),
            distributions: [(
                "reads".to_owned(),
                Distribution::new([(Nanoseconds(rate as u64), 1)]),
            )]
            .into(),
            rejected: rejected.map(str::to_owned),
            ..PagingReport::default()
        }
    }

    #[test]
    fn rejected_rounds_count_for_nothing_and_are_told_of() {
        let mut cell = PagingCell::new(Experiment::Heavy, "one", Job::Probe, None);
        assert_eq!(cell.figures("rate"), [0.0; 0]);
        cell.reports = vec![
            report(5.0, None),
            report(900.0, Some("crooked")),
            report(7.0, None),
        ];
        assert_eq!(cell.figures("rate"), [5.0, 7.0]);
        assert_eq!(cell.distribution("reads").count(), 2);
        assert_eq!(cell.remarks(), ["a round was rejected: crooked"]);
        cell.reports.push(report(6.5, None));
        assert_eq!(cell.figures("rate"), [5.0, 6.5, 7.0]);
    }

    #[test]
    fn one_lost_round_is_told_of_and_the_second_ends_a_cell_whose_rounds_still_count() {
        let mut cell = PagingCell::new(Experiment::Heavy, "one", Job::Probe, None);
        cell.lose(1, "killed".to_owned());
        assert_eq!(cell.failure, None, "it is run again");
        assert_eq!(cell.remarks(), ["not measured: killed"]);
        cell.reports = vec![report(5.0, None), report(7.0, None)];
        assert_eq!(cell.ending(), None);
        assert_eq!(cell.remarks(), ["a round was lost: killed"]);
        cell.lose(4, "killed".to_owned());
        assert!(cell.failure.is_some());
        assert_eq!(cell.last_round, 4);
        assert_eq!(
            cell.remarks(),
            ["no longer run after 2 rounds: killed"],
            "each reason once"
        );
        assert_eq!(cell.figures("rate"), [5.0, 7.0]);
    }
}
