//! What heapdrome's lgalloc is to reach beside the published crate and the memory itself.

use heapdrome_record::{ClaimResult, Holds};
use heapdrome_statistics::{Estimate, FEWEST_ROUNDS, Rule};
use serde::Deserialize;

use crate::Cell;
use crate::claims::{Figure, find};

const TEXT: &str = include_str!("../data/targets.toml");

/// The probability that any of the intervals misses the true ratio.
const ALPHA: f64 = 0.05;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    targets: Vec<Target>,
}

/// The ratio of a figure of one cell to one of another (or of its own), in the same rounds, is at most so
/// much.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Target {
    claim: String,
    of: String,
    to: String,
    figure: Figure,
    /// Where it is not the same figure.
    to_figure: Option<Figure>,
    at_most: f64,
}

/// Every target whose two cells were run. One is reached if the whole interval of the ratio lies at or
/// below its bound, and missed if the whole interval lies above.
///
/// # Panics
/// Never: a test reads the data that are part of the program.
#[must_use]
pub fn targets(cells: &[&Cell]) -> Vec<ClaimResult> {
    let judged = judged(cells).into_iter();
    let told = judged.map(|(target, holds, because)| ClaimResult {
        claim: target.claim,
        source: "heapdrome's own target".to_owned(),
        target: true,
        holds,
        because,
    });
    told.collect()
}

/// Those of the cells whose further rounds could decide a target that is open.
#[must_use]
pub fn open_targets(cells: &[Cell]) -> Vec<usize> {
    let all: Vec<&Cell> = cells.iter().collect();
    let able = |key: &str| find(&all, key).is_some_and(|cell| cell.failure.is_none());
    let open: Vec<Target> = judged(&all)
        .into_iter()
        .filter(|(target, holds, _)| {
            *holds == Holds::Undecided && able(&target.of) && able(&target.to)
        })
        .map(|(target, ..)| target)
        .collect();
    let wanted = |cell: &Cell| {
        let key = format!("{}/{}", cell.part, cell.name);
        open.iter()
            .any(|target| target.of == key || target.to == key)
    };
    let places = cells.iter().enumerate();
    places
        .filter(|(_, cell)| wanted(cell))
        .map(|(place, _)| place)
        .collect()
}

/// Every target whose cells were run, and what came of it.
fn judged(cells: &[&Cell]) -> Vec<(Target, Holds, String)> {
    let file: File = toml::from_str(TEXT).expect("the program's own data");
    let run = |target: &Target| {
        [&target.of, &target.to]
            .iter()
            .all(|key| find(cells, key).is_some())
    };
    let wanted: Vec<Target> = file.targets.into_iter().filter(run).collect();
    let rule = Rule::new(ALPHA, wanted.len());
    let judged = wanted.into_iter().map(|target| {
        let (holds, because) = target.judge(cells, &rule);
        (target, holds, because)
    });
    judged.collect()
}

impl Target {
    fn judge(&self, cells: &[&Cell], rule: &Rule) -> (Holds, String) {
        let (own, other) = self.figures(cells);
        let Some(estimate) = rule.compare(&own, &other, 0.0) else {
            let why = format!(
                "{} rounds of both, and {FEWEST_ROUNDS} are needed for an interval",
                own.len()
            );
            return (Holds::Undecided, why);
        };
        let Estimate {
            ratio,
            low,
            high,
            rounds,
            ..
        } = estimate;
        let holds = match () {
            () if high <= self.at_most => Holds::Held,
            () if low > self.at_most => Holds::NotHeld,
            () => Holds::Undecided,
        };
        let because = format!(
            "{ratio:.3} ({low:.3} to {high:.3}) in {rounds} rounds; at most {} is wanted",
            self.at_most
        );
        (holds, because)
    }

    /// The figures of the rounds in which both cells have a sound report.
    fn figures(&self, cells: &[&Cell]) -> (Vec<f64>, Vec<f64>) {
        let (Some(of), Some(to)) = (find(cells, &self.of), find(cells, &self.to)) else {
            return (Vec::new(), Vec::new());
        };
        let pairs = of.sound().filter_map(|report| {
            let same = to.sound().find(|other| other.round == report.round)?;
            let other = self.to_figure.as_ref().unwrap_or(&self.figure);
            Some((self.figure.of(report)?, other.of(same)?))
        });
        pairs.unzip()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Job, Report};

    fn cell(name: &str, times: &[f64]) -> Cell {
        let mut cell = Cell::new("throughput", name, Job::Probe, None);
        for (place, time) in times.iter().enumerate() {
            cell.reports.push(Report {
                round: place as u32 + 1,
                figures: [("op_without_clock_ns".to_owned(), *time)].into(),
                ..Report::default()
            });
        }
        cell
    }

    /// Both, measured by one process.
    fn both(own: &[f64], other: &[f64]) -> Cell {
        let mut cell = cell("lgalloc x 1", own);
        for (report, time) in cell.reports.iter_mut().zip(other) {
            report.figures.insert("published_ns".to_owned(), *time);
        }
        cell
    }

    fn judged(own: &[f64], other: &[f64]) -> Vec<ClaimResult> {
        targets(&[&both(own, other)])
    }

    #[test]
    fn a_target_is_reached_missed_or_open_by_its_interval() {
        let published = [40.0, 41.0, 42.0, 41.0, 40.0, 41.0, 42.0];
        let times = |each: f64| published.map(|time| time * each);
        let of = |own: &[f64]| judged(own, &published)[0].holds;
        assert_eq!(of(&times(0.4)), Holds::Held);
        assert_eq!(of(&times(0.6)), Holds::NotHeld);
        let noisy = [10.0, 30.0, 12.0, 33.0, 9.0, 28.0, 15.0];
        assert_eq!(of(&noisy), Holds::Undecided);
        assert_eq!(of(&[1.0, 1.0]), Holds::Undecided, "too few rounds");
    }

    #[test]
    fn what_was_not_run_is_not_spoken_of() {
        let told = judged(&[1.0], &[2.0]);
        assert_eq!(told.len(), 1);
        assert!(told[0].because.contains("1 rounds"), "{}", told[0].because);
        assert!(targets(&[]).is_empty());
    }

    #[test]
    fn what_is_open_and_can_be_measured_is_asked_for() {
        let published = [40.0, 41.0, 42.0, 41.0, 40.0, 41.0, 42.0];
        let cells = |own: [f64; 7]| [cell("clock", &published), both(&own, &published)];
        let noisy = [10.0, 30.0, 12.0, 33.0, 9.0, 28.0, 15.0];
        assert_eq!(open_targets(&cells(noisy)), [1]);
        assert!(open_targets(&cells(published.map(|time| time * 0.4))).is_empty());
        let mut failed = cells(noisy);
        failed[1].failure = Some("no swap".to_owned());
        assert!(open_targets(&failed).is_empty());
    }

    #[test]
    fn a_target_may_compare_two_cells() {
        let cold = |name: &str, median: u64| {
            let mut cell = cell(name, &[0.0; 6]);
            cell.part = "paging";
            for report in &mut cell.reports {
                let times = crate::Distribution::new([(median, 10)]);
                report.distributions.insert("cold".to_owned(), times);
            }
            cell
        };
        let own = cold("regions again", 2_000_000);
        let other = cold("regions again, lgalloc-published", 9_000_000);
        let found = targets(&[&own, &other]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].holds, Holds::Held, "{found:?}");
    }

    #[test]
    fn every_target_can_be_read() {
        let file: File = toml::from_str(TEXT).expect("the program's own data");
        assert!(file.targets.len() >= 8);
        assert!(file.targets.iter().all(|target| target.at_most > 0.0));
    }
}
