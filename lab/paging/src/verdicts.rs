//! The document's sentences and what heapdrome's lgalloc is to reach, and whether they hold in what was
//! measured here: by the intervals and the verdicts of every other suite.

use heapdrome_record::{ClaimResult, Holds, Nanoseconds, PagingCell as Cell, PagingReport};
use heapdrome_statistics::{FEWEST_ROUNDS, Interval, mean_interval};
use heapdrome_suites::{ALPHA, HoldsFor, Part, Range, rule, weigh, within_rounds, without};
use serde::Deserialize;

const CLAIMS: &str = include_str!("../data/claims.toml");
const TARGETS: &str = include_str!("../data/targets.toml");

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    claims: Vec<Claim>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Claim {
    claim: String,
    /// The part of the document that says so.
    #[serde(default = "own")]
    source: String,
    #[serde(default)]
    tests: Vec<Test>,
    untestable: Option<String>,
}

fn own() -> String {
    "heapdrome's own target".to_owned()
}

/// A figure of one cell, or its ratio in the same rounds to the same figure of another, lies in a range.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Test {
    of: String,
    to: Option<String>,
    figure: Figure,
    /// Where it is not the same figure of the other.
    to_figure: Option<Figure>,
    low: Option<f64>,
    high: Option<f64>,
    /// Processors without which it says nothing.
    #[serde(default)]
    processors: usize,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Figure {
    Name(String),
    Quantile {
        distribution: String,
        quantile: f64,
    },
    Share {
        distribution: String,
        above: Nanoseconds,
        up_to: Nanoseconds,
    },
}

impl Figure {
    /// Its value in a report.
    fn of(&self, report: &PagingReport) -> Option<f64> {
        match self {
            Self::Name(name) => report.figures.get(name).copied(),
            Self::Quantile {
                distribution,
                quantile,
            } => {
                let values = report.distributions.get(distribution)?;
                values.quantile(*quantile).map(|time| time.0 as f64)
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

fn read(text: &str) -> Vec<Claim> {
    let file: File = toml::from_str(text).expect("the program's own data");
    file.claims
}

/// Every sentence of the document, tested by cells of all experiments. All intervals of a sentence hold
/// together. The sound rounds of a cell that was then given up count as any others.
///
/// # Panics
/// Never: a test reads the data that are part of the program.
#[must_use]
pub fn claims(cells: &[&Cell], processors: usize) -> Vec<ClaimResult> {
    let judged = read(CLAIMS).into_iter().map(|claim| {
        let found = match &claim.untestable {
            Some(why) => (Holds::CannotBeTested, why.clone()),
            None => judge(&claim.tests, cells, processors, claim.tests.len()),
        };
        claim.result(found, false)
    });
    judged.collect()
}

/// Every target of heapdrome's lgalloc whose cells were run. The intervals of all of them hold together.
///
/// # Panics
/// Never: a test reads the data that are part of the program.
#[must_use]
pub fn targets(cells: &[&Cell]) -> Vec<ClaimResult> {
    let judged = judged_targets(cells).into_iter();
    judged
        .map(|(target, found)| target.result(found, true))
        .collect()
}

fn judged_targets(cells: &[&Cell]) -> Vec<(Claim, (Holds, String))> {
    let run = |target: &Claim| target.tests.iter().all(|test| test.is_run(cells));
    let wanted: Vec<Claim> = read(TARGETS).into_iter().filter(run).collect();
    let family = wanted.len();
    let judged = wanted.into_iter().map(|target| {
        let found = judge(&target.tests, cells, usize::MAX, family);
        (target, found)
    });
    judged.collect()
}

/// Those of the cells whose further rounds could decide a target that is open, or that have fewer rounds
/// than an interval of a sentence needs.
#[must_use]
pub fn open_cells(cells: &[Cell], processors: usize) -> Vec<usize> {
    let all: Vec<&Cell> = cells.iter().collect();
    let able = |test: &Test| {
        let mut keys = test.keys();
        keys.all(|key| find(&all, key).is_some_and(|cell| cell.failure.is_none()))
    };
    let targets = judged_targets(&all).into_iter();
    let targets = targets.filter(|(_, (holds, _))| *holds == Holds::Undecided);
    let targets = targets.flat_map(|(target, _)| target.tests);
    let few = |test: &Test| {
        let rounds = |key| find(&all, key).map_or(0, |cell| cell.sound().count());
        test.processors <= processors && test.keys().any(|key| rounds(key) < FEWEST_ROUNDS)
    };
    let sentences = read(CLAIMS).into_iter().flat_map(|claim| claim.tests);
    let open: Vec<Test> = targets.chain(sentences.filter(few)).filter(able).collect();
    let wanted = |cell: &Cell| open.iter().any(|test| test.keys().any(|key| cell.is(key)));
    let places = cells.iter().enumerate();
    places
        .filter(|(_, cell)| wanted(cell))
        .map(|(place, _)| place)
        .collect()
}

/// The verdict of tests that must all agree, by intervals of which `family` hold together.
fn judge(tests: &[Test], cells: &[&Cell], processors: usize, family: usize) -> (Holds, String) {
    let (able, unable): (Vec<&Test>, Vec<&Test>) =
        tests.iter().partition(|test| test.processors <= processors);
    let (run, unrun): (Vec<&Test>, Vec<&Test>) =
        able.into_iter().partition(|test| test.is_run(cells));
    let parts: Vec<Part> = run.iter().map(|test| test.part(cells, family)).collect();
    let found = weigh(&parts, &[], HoldsFor::All);
    let names: Vec<String> = unrun.iter().map(|test| test.name()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (holds, mut because) = without(&names, HoldsFor::All, found);
    if !unable.is_empty() {
        because.push_str(&format!(
            "; {} more need as many processors as threads, and there are {processors} here",
            unable.len()
        ));
    }
    match parts.is_empty() {
        true => (Holds::CannotBeTested, because),
        false => (holds, because),
    }
}

/// The cell of this experiment and row.
fn find<'a>(cells: &[&'a Cell], key: &str) -> Option<&'a Cell> {
    cells.iter().find(|cell| cell.is(key)).copied()
}

impl Claim {
    fn result(self, (holds, because): (Holds, String), target: bool) -> ClaimResult {
        ClaimResult {
            claim: self.claim,
            source: self.source,
            holds,
            because,
            target,
        }
    }
}

impl Test {
    /// The cells that it names.
    fn keys(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.of).chain(&self.to)
    }

    fn is_run(&self, cells: &[&Cell]) -> bool {
        self.keys().all(|key| find(cells, key).is_some())
    }

    fn part(&self, cells: &[&Cell], family: usize) -> Part {
        let ending = self.keys().find_map(|key| find(cells, key)?.ending());
        let (own, other) = self.figures(cells);
        let found = match (own.is_empty(), &self.to) {
            (true, _) => Err(ending
                .clone()
                .unwrap_or_else(|| "no sound round".to_owned())),
            (_, Some(_)) => within_rounds(rule(family).compare(&own, &other, 0.0)),
            (_, None) => mean(&own, family),
        };
        let label = match ending {
            Some(ending) if found.is_ok() => format!("{} ({ending})", self.name()),
            _ => self.name(),
        };
        Part {
            label,
            found,
            range: Range {
                low: self.low,
                high: self.high,
            },
        }
    }

    /// The figures of the rounds in which its cells have a sound report; those of the other cell are 1
    /// where there is none.
    fn figures(&self, cells: &[&Cell]) -> (Vec<f64>, Vec<f64>) {
        let to = self.to.as_ref().and_then(|key| find(cells, key));
        let pair = |report: &PagingReport| {
            let own = self.figure.of(report)?;
            let Some(to) = to else {
                return Some((own, 1.0));
            };
            let same = to.sound().find(|other| other.round == report.round)?;
            let other = self.to_figure.as_ref().unwrap_or(&self.figure);
            Some((own, other.of(same)?))
        };
        let of = find(cells, &self.of).into_iter().flat_map(Cell::sound);
        of.filter_map(pair).unzip()
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

fn mean(figures: &[f64], family: usize) -> Result<Interval, String> {
    let found = mean_interval(figures, 1.0 - ALPHA / family.max(1) as f64);
    found.ok_or_else(|| "too few rounds for an interval".to_owned())
}

#[cfg(test)]
mod tests {
    use heapdrome_record::{Distribution, Experiment, Job};

    use super::*;

    const BASE: [f64; 7] = [100.0, 50.0, 100.0, 80.0, 90.0, 60.0, 110.0];

    fn cell(part: Experiment, name: &str, figure: &str, values: &[f64]) -> Cell {
        let mut cell = Cell::new(part, name, Job::Probe, None);
        for (place, value) in values.iter().enumerate() {
            cell.reports.push(PagingReport {
                round: place as u32 + 1,
                figures: [(figure.to_owned(), *value)].into(),
                distributions: [(
                    "read".to_owned(),
                    Distribution::new([200, 80_000].map(|time| (Nanoseconds(time), 50))),
                )]
                .into(),
                ..PagingReport::default()
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
        let of = |name, rates| cell(Experiment::Strategies, name, "reads_per_s", rates);
        [of("baseline", &BASE), of("prefetch (32 ahead)", prefetch)]
    }

    fn times(factor: f64) -> [f64; 7] {
        let mut off = [1.0, 1.01, 0.99, 1.0, 1.01, 0.99, 1.0].into_iter();
        BASE.map(|rate| rate * factor * off.next().unwrap_or(1.0))
    }

    const NOISY: [f64; 7] = [160.0, 60.0, 90.0, 190.0, 95.0, 100.0, 140.0];

    #[test]
    fn a_sentence_holds_if_its_interval_lies_where_it_says() {
        assert_eq!(holds(&strategies(&times(2.0)), PREFETCH), Holds::Held);
        assert_eq!(holds(&strategies(&times(1.0)), PREFETCH), Holds::NotHeld);
        assert_eq!(holds(&strategies(&NOISY), PREFETCH), Holds::Undecided);
    }

    #[test]
    fn what_was_not_run_or_failed_decides_nothing() {
        assert_eq!(holds(&[], PREFETCH), Holds::CannotBeTested);
        let few = strategies(&times(2.0)[..4]);
        assert_eq!(holds(&few, PREFETCH), Holds::Undecided);
        let mut failed = strategies(&[]);
        failed[1].failure = Some("no swap".to_owned());
        assert_eq!(holds(&failed, PREFETCH), Holds::Undecided);
        let mut rejected = strategies(&times(2.0));
        for report in &mut rejected[0].reports[1..4] {
            report.rejected = Some("crooked".to_owned());
        }
        assert_eq!(holds(&rejected, PREFETCH), Holds::Undecided);
    }

    /// What was measured before a cell was given up is as good as if it had gone on.
    #[test]
    fn rounds_before_a_cell_was_given_up_count_and_its_end_is_told() {
        let mut ended = strategies(&times(2.0));
        ended[1].failure = Some("killed".to_owned());
        let cells: Vec<&Cell> = ended.iter().collect();
        let told = claims(&cells, 2);
        let told = told.iter().find(|claim| claim.claim.starts_with(PREFETCH));
        let told = told.expect("the claim is there");
        assert_eq!(told.holds, Holds::Held);
        let because = &told.because;
        assert!(
            because.contains("no longer run after 7 rounds: killed"),
            "{because}"
        );
    }

    #[test]
    fn shares_and_quantiles_of_distributions_are_tested() {
        let cells = [cell(
            Experiment::Paging,
            "random reads",
            "reads_per_s",
            &[1.0; 3],
        )];
        assert_eq!(holds(&cells, "With three times"), Holds::Held);
        assert_eq!(holds(&cells, "The latencies of random reads"), Holds::Held);
        assert_eq!(holds(&cells, "About half of the reads (40%"), Holds::Held);
    }

    /// Both, measured by one process.
    fn both(own: &[f64], published: &[f64]) -> Cell {
        let mut cell = cell(
            Experiment::Throughput,
            "lgalloc x 1",
            "op_without_clock_ns",
            own,
        );
        for (report, time) in cell.reports.iter_mut().zip(published) {
            report.figures.insert("published_ns".to_owned(), *time);
        }
        cell
    }

    #[test]
    fn a_target_is_reached_missed_or_open_by_its_interval() {
        let of = |own: &[f64]| targets(&[&both(own, &BASE)])[0].holds;
        assert_eq!(of(&times(0.4)), Holds::Held);
        assert_eq!(of(&times(0.6)), Holds::NotHeld);
        assert_eq!(of(&NOISY.map(|time| time / 2.5)), Holds::Undecided);
        assert_eq!(of(&[1.0, 1.0]), Holds::Undecided, "too few rounds");
        assert!(targets(&[]).is_empty(), "what was not run is not spoken of");
    }

    #[test]
    fn what_is_open_and_can_be_measured_is_asked_for() {
        let cells = |own: &[f64]| {
            let clock = cell(Experiment::Throughput, "clock", "op_ns", &BASE);
            [clock, both(own, &BASE)]
        };
        let noisy = NOISY.map(|time| time / 2.5);
        assert_eq!(open_cells(&cells(&noisy), 1), [1]);
        assert!(open_cells(&cells(&times(0.4)), 1).is_empty());
        let mut failed = cells(&noisy);
        failed[1].failure = Some("no swap".to_owned());
        assert!(open_cells(&failed, 1).is_empty());
        let few = strategies(&times(2.0)[..4]);
        assert_eq!(
            open_cells(&few, 1),
            [0, 1],
            "no interval of its sentence yet"
        );
        assert!(open_cells(&strategies(&NOISY), 1).is_empty());
    }

    #[test]
    fn a_target_may_compare_two_cells() {
        let cold = |name: &str, median: u64| {
            let mut cell = cell(Experiment::Paging, name, "rate", &[0.0; 6]);
            for report in &mut cell.reports {
                let times = Distribution::new([(Nanoseconds(median), 10)]);
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
    fn every_claim_has_tests_or_a_reason_and_every_test_a_range() {
        let (claims, targets) = (read(CLAIMS), read(TARGETS));
        assert!(claims.len() > 20 && targets.len() >= 8);
        for claim in claims.iter().chain(&targets) {
            let told = &claim.claim;
            assert_eq!(claim.tests.is_empty(), claim.untestable.is_some(), "{told}");
            let ranged = |test: &Test| test.low.is_some() || test.high.is_some();
            assert!(claim.tests.iter().all(ranged), "{told}");
        }
    }
}
