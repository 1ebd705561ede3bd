//! The document's sentences, and whether they hold in what was measured here.

use heapdrome_record::{ClaimResult, Holds};
use serde::Deserialize;

use crate::{Cell, Report};

const TEXT: &str = include_str!("../data/claims.toml");

/// Fewer rounds than this decide nothing.
const LEAST_ROUNDS: usize = 3;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    claims: Vec<Claim>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Claim {
    claim: String,
    source: String,
    #[serde(default)]
    tests: Vec<Test>,
    untestable: Option<String>,
}

/// A figure of one cell, or its ratio to the same of another, lies in a range in every round.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Test {
    of: String,
    to: Option<String>,
    figure: Figure,
    /// Where it is not the same figure of the other.
    to_figure: Option<Figure>,
    #[serde(default)]
    low: Option<f64>,
    #[serde(default)]
    high: Option<f64>,
    /// Processors without which it says nothing.
    #[serde(default)]
    processors: usize,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Figure {
    Name(String),
    Quantile {
        distribution: String,
        quantile: f64,
    },
    Share {
        distribution: String,
        above: u64,
        up_to: u64,
    },
}

impl Figure {
    /// It in a report.
    pub(crate) fn of(&self, report: &Report) -> Option<f64> {
        match self {
            Self::Name(name) => report.figures.get(name).copied(),
            Self::Quantile {
                distribution,
                quantile,
            } => {
                let values = report.distributions.get(distribution)?;
                values.quantile(*quantile).map(|value| value as f64)
            }
            Self::Share {
                distribution,
                above,
                up_to,
            } => {
                let values = report.distributions.get(distribution)?;
                Some(values.share_up_to(*up_to)? - values.share_up_to(*above)?)
            }
        }
    }
}

/// Every sentence of the document, tested by cells of all experiments. A sentence holds if every round
/// of each of its comparisons agrees, and there are at least three rounds; it does not if every round
/// of one comparison disagrees. The sound rounds of a cell that was then given up count as any others.
///
/// # Panics
/// Never: a test reads the data that are part of the program.
#[must_use]
pub fn claims(cells: &[&Cell], processors: usize) -> Vec<ClaimResult> {
    let file: File = toml::from_str(TEXT).expect("the program's own data");
    let judged = file.claims.into_iter().map(|claim| {
        let (holds, because) = match claim.untestable {
            Some(why) => (Holds::CannotBeTested, why),
            None => judge(&claim.tests, cells, processors),
        };
        ClaimResult {
            claim: claim.claim,
            source: claim.source,
            holds,
            because,
            target: false,
        }
    });
    judged.collect()
}

fn judge(tests: &[Test], cells: &[&Cell], processors: usize) -> (Holds, String) {
    let (able, unable): (Vec<&Test>, Vec<&Test>) =
        tests.iter().partition(|test| test.processors <= processors);
    let (mut verdicts, mut told) = (Vec::new(), Vec::new());
    for test in &able {
        let (verdict, text) = test.judge(cells);
        verdicts.push(verdict);
        told.push(text);
    }
    if !unable.is_empty() {
        told.push(format!(
            "{} more need as many processors as threads, and there are {processors} here",
            unable.len()
        ));
    }
    let any = |wanted| verdicts.contains(&wanted);
    let holds = if verdicts.is_empty() || verdicts.iter().all(|one| *one == Holds::CannotBeTested) {
        Holds::CannotBeTested
    } else if any(Holds::NotHeld) {
        Holds::NotHeld
    } else if any(Holds::Undecided) || any(Holds::CannotBeTested) {
        Holds::Undecided
    } else {
        Holds::Held
    };
    (holds, told.join("; "))
}

/// The cell of this experiment and row.
pub(crate) fn find<'a>(cells: &[&'a Cell], key: &str) -> Option<&'a Cell> {
    let (part, name) = key.split_once('/')?;
    let right = |cell: &&&Cell| cell.part == part && cell.name == name;
    cells.iter().find(right).copied()
}

impl Test {
    fn judge(&self, cells: &[&Cell]) -> (Holds, String) {
        let Some(values) = self.values(cells) else {
            return (Holds::CannotBeTested, format!("{}: not run", self.name()));
        };
        let values = match values {
            Ok(values) => values,
            Err(why) => return (Holds::Undecided, format!("{}: {why}", self.name())),
        };
        let inside = |value: &&f64| {
            self.low.is_none_or(|low| **value >= low)
                && self.high.is_none_or(|high| **value <= high)
        };
        let agreeing = values.iter().filter(inside).count();
        let verdict = match agreeing {
            _ if values.len() < LEAST_ROUNDS => Holds::Undecided,
            0 => Holds::NotHeld,
            all if all == values.len() => Holds::Held,
            _ => Holds::Undecided,
        };
        let figures: Vec<String> = values.iter().map(|value| short(*value)).collect();
        let mut told = format!("{}: {}", self.name(), figures.join(", "));
        if let Some(ending) = self.ending(cells) {
            told.push_str(&format!(" ({ending})"));
        }
        (verdict, told)
    }

    /// The figure in each round; `None` where the experiment was not run at all.
    fn values(&self, cells: &[&Cell]) -> Option<Result<Vec<f64>, String>> {
        let of = find(cells, &self.of)?;
        let to = match &self.to {
            Some(key) => Some(find(cells, key)?),
            None => None,
        };
        let value = |report: &Report| {
            let own = self.figure.of(report)?;
            let Some(to) = to else { return Some(own) };
            let same = to.sound().find(|other| other.round == report.round)?;
            let other = self.to_figure.as_ref().unwrap_or(&self.figure).of(same)?;
            (other > 0.0).then(|| own / other)
        };
        let values: Vec<f64> = of.sound().filter_map(value).collect();
        match values.len() {
            0 => Some(Err(self
                .ending(cells)
                .unwrap_or_else(|| "no sound round".to_owned()))),
            _ => Some(Ok(values)),
        }
    }

    /// Why one of its cells has no rounds, or not all.
    fn ending(&self, cells: &[&Cell]) -> Option<String> {
        let mut keys = [Some(&self.of), self.to.as_ref()].into_iter().flatten();
        keys.find_map(|key| find(cells, key)?.ending())
    }

    fn name(&self) -> String {
        let row = |key: &str| key.split_once('/').map_or(key, |(_, name)| name).to_owned();
        match (&self.to, &self.figure, &self.to_figure) {
            (_, Figure::Name(one), Some(Figure::Name(other))) => {
                format!("{}, {one} over {other}", row(&self.of))
            }
            (Some(to), ..) => format!("{} over {}", row(&self.of), row(to)),
            (None, ..) => row(&self.of),
        }
    }
}

fn short(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Distribution, Job};

    fn cell(part: &'static str, name: &str, rates: &[f64]) -> Cell {
        let mut cell = Cell::new(part, name, Job::Probe, None);
        for (place, rate) in rates.iter().enumerate() {
            cell.reports.push(Report {
                round: place as u32 + 1,
                figures: [("reads_per_s".to_owned(), *rate)].into(),
                distributions: [(
                    "read".to_owned(),
                    Distribution::new([(200, 50), (80_000, 50)]),
                )]
                .into(),
                ..Report::default()
            });
        }
        cell
    }

    fn holds(cells: &[Cell], start: &str) -> Holds {
        let cells: Vec<&Cell> = cells.iter().collect();
        let found = claims(&cells, 2);
        let claim = found.iter().find(|claim| claim.claim.starts_with(start));
        claim.expect("the claim is there").holds
    }

    const PREFETCH: &str = "A prefetching thread";

    fn strategies(prefetch: &[f64]) -> [Cell; 2] {
        [
            cell("strategies", "baseline", &[100.0, 50.0, 100.0]),
            cell("strategies", "prefetch (32 ahead)", prefetch),
        ]
    }

    #[test]
    fn a_sentence_holds_if_every_round_agrees() {
        assert_eq!(
            holds(&strategies(&[160.0, 90.0, 200.0]), PREFETCH),
            Holds::Held
        );
        assert_eq!(
            holds(&strategies(&[90.0, 60.0, 90.0]), PREFETCH),
            Holds::NotHeld
        );
        assert_eq!(
            holds(&strategies(&[160.0, 60.0, 90.0]), PREFETCH),
            Holds::Undecided
        );
    }

    #[test]
    fn what_was_not_run_or_failed_decides_nothing() {
        assert_eq!(holds(&[], PREFETCH), Holds::CannotBeTested);
        assert_eq!(
            holds(&strategies(&[160.0, 90.0]), PREFETCH),
            Holds::Undecided
        );
        let mut failed = strategies(&[]);
        failed[1].failure = Some("no swap".to_owned());
        assert_eq!(holds(&failed, PREFETCH), Holds::Undecided);
        let mut rejected = strategies(&[160.0, 90.0, 200.0]);
        rejected[0].reports[1].rejected = Some("crooked".to_owned());
        assert_eq!(holds(&rejected, PREFETCH), Holds::Undecided);
    }

    /// What was measured before a cell was given up is as good as if it had gone on.
    #[test]
    fn rounds_before_a_cell_was_given_up_count_and_its_end_is_told() {
        let mut ended = strategies(&[160.0, 90.0, 200.0]);
        ended[1].failure = Some("killed".to_owned());
        let cells: Vec<&Cell> = ended.iter().collect();
        let told = claims(&cells, 2);
        let told = told.iter().find(|claim| claim.claim.starts_with(PREFETCH));
        let told = told.expect("the claim is there");
        assert_eq!(told.holds, Holds::Held);
        assert!(
            told.because
                .contains("no longer run after 3 rounds: killed"),
            "{told:?}"
        );
    }

    #[test]
    fn shares_and_quantiles_of_distributions_are_tested() {
        let cells = [cell("paging", "random reads", &[1.0, 1.0, 1.0])];
        assert_eq!(holds(&cells, "With three times"), Holds::Held);
        assert_eq!(holds(&cells, "The latencies of random reads"), Holds::Held);
        assert_eq!(holds(&cells, "About half of the reads (40%"), Holds::Held);
    }

    #[test]
    fn every_claim_has_tests_or_a_reason_and_every_test_a_range() {
        let file: File = toml::from_str(TEXT).expect("the program's own data");
        assert!(file.claims.len() > 20);
        for claim in &file.claims {
            assert_eq!(
                claim.tests.is_empty(),
                claim.untestable.is_some(),
                "{}",
                claim.claim
            );
            let ranged = |test: &Test| test.low.is_some() || test.high.is_some();
            assert!(claim.tests.iter().all(ranged), "{}", claim.claim);
        }
    }
}
