//! Verdicts on the document's claims and on the targets of heapdrome's lgalloc, from measurements
//! on this machine. Intervals and verdicts come from `heapdrome-suites`, as in the other suites.

use heapdrome_schema::{ClaimResult, Holds, Nanoseconds, PagingCell as Cell, PagingReport};
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
    /// Part of the document that makes the claim.
    #[serde(default = "own")]
    source: String,
    #[serde(default)]
    tests: Vec<Test>,
    untestable: Option<String>,
}

fn own() -> String {
    "heapdrome's own target".to_owned()
}

/// A test that checks whether a figure lies in a range. With a second cell, the tested value is the
/// ratio to a figure of that cell in the same rounds.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Test {
    of: String,
    to: Option<String>,
    figure: Figure,
    /// Figure of the second cell, if it differs from that of the first.
    to_figure: Option<Figure>,
    low: Option<f64>,
    high: Option<f64>,
    /// Minimum number of processors for the test.
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
    /// Returns the value of the figure in a report.
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

/// Tests every claim of the document with the cells of all experiments. All intervals of a claim
/// hold simultaneously. The sound rounds of a cell count even if the cell was given up later.
/// `processors` is the number of processors available to tests.
///
/// # Panics
/// Never: the data are part of the program, and a test parses them.
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

/// Tests every target of heapdrome's lgalloc whose cells were run. The intervals of all targets
/// hold simultaneously.
///
/// # Panics
/// Never: the data are part of the program, and a test parses them.
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

/// Returns the positions of the open cells. A cell is open if further rounds could decide a target
/// that uses it, or if it belongs to a test of a claim in which some cell has too few rounds for an
/// interval. Tests with a cell that was given up are not counted, nor are tests of claims that need
/// more than `processors` processors.
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

/// Returns the verdict of tests that must all agree. `family` is the number of simultaneous
/// intervals.
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
            "; {} more need as many processors as threads, and this machine has {processors}",
            unable.len()
        ));
    }
    match parts.is_empty() {
        true => (Holds::CannotBeTested, because),
        false => (holds, because),
    }
}

/// Returns the cell whose experiment and name form `key`.
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
    /// Returns the keys of the test's cells.
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
            unless: None,
        }
    }

    /// Returns the figures of the rounds in which all cells of the test have a sound report.
    /// Without a second cell, the second figures are 1.
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
mod tests;
