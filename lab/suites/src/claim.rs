//! A claim of a document or a target, as a suite's data file states it.

use heapdrome_statistics::Interval;
use serde::Deserialize;

/// Name that stands for all available entrants of the document.
pub(crate) const EVERYONE: &str = "*";

/// A published claim, in heapdrome's own words, or a target of heapdrome's own allocators.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The claim as a sentence. If the original leaves a number open, the sentence states the
    /// tested number.
    pub claim: String,
    /// The part of the document that makes the claim.
    pub source: String,
    /// Test that decides the claim from races or counts, or the reason why there is none.
    pub test: Test,
    /// Paths and headings of documents that explain why the claim does not hold. The verdict names
    /// them if the claim does not hold or is undecided.
    #[serde(default)]
    pub see: Vec<String>,
}

/// The races to which a claim applies.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scope {
    /// Names of the suite's cells whose races count.
    pub cells: Vec<String>,
    /// The values of the swept parameter; empty for all values that were run.
    #[serde(default)]
    pub at: Vec<u64>,
    /// The number of comparisons for which the claim must hold.
    #[serde(default)]
    pub holds_for: HoldsFor,
    /// The intervals that are simultaneously valid. Only [`Test::Ratio`] uses this field; the
    /// intervals of all other tests are simultaneously valid for the whole claim.
    #[serde(default)]
    pub family: Family,
}

/// Set of a claim's intervals that are simultaneously valid with 95% confidence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// All intervals of the claim.
    #[default]
    Claim,
    /// The intervals of each race, for a claim that applies to many races separately.
    Race,
}

/// The number of comparisons for which a claim must hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HoldsFor {
    /// Every comparison.
    #[default]
    All,
    /// More than half of the comparisons.
    Most,
    /// At least one comparison.
    Some,
    /// Every comparison, but an unclear interval counts as agreeing. An interval that lies wholly
    /// outside the range contradicts the claim. A comparison without an interval leaves the claim
    /// undecided.
    Uncontradicted,
}

/// Range in which the tested figure, ratio or mean must lie for the claim to hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Range {
    /// Exclusive lower end; `None` for no bound.
    pub low: Option<f64>,
    /// Exclusive upper end; `None` for no bound.
    pub high: Option<f64>,
}

/// The position of an interval relative to a claim's range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Wholly inside the range.
    Inside,
    /// Wholly outside the range.
    Outside,
    /// Neither wholly inside nor wholly outside, or an end of the interval is not a number.
    Unclear,
}

impl Range {
    /// Returns the position of an interval relative to the range.
    pub(crate) fn side(&self, found: &Interval) -> Side {
        let low = self.low.unwrap_or(f64::NEG_INFINITY);
        let high = self.high.unwrap_or(f64::INFINITY);
        if found.low.is_nan() || found.high.is_nan() {
            Side::Unclear
        } else if found.low > low && found.high < high {
            Side::Inside
        } else if found.high < low || found.low > high {
            Side::Outside
        } else {
            Side::Unclear
        }
    }
}

/// Ratios that a claim compares, and the range in which they must lie.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RatioTest {
    /// Name of the compared figure.
    pub figure: String,
    /// Entrants that are compared, by the document's names.
    pub of: Vec<String>,
    /// Entrants with which each entrant of `of` is compared; `*` for all others of the document
    /// that raced.
    pub to: Vec<String>,
    /// Races in which the entrants are compared.
    #[serde(rename = "in")]
    pub scope: Scope,
    /// Range in which each ratio must lie.
    pub range: Range,
    /// Excess over the other entrant's median, in units of the figure, that is always within the
    /// range.
    pub allowance: Option<f64>,
    /// Second ratio of each comparison. A comparison contradicts the claim only if both ratios lie
    /// wholly outside their ranges. Requires [`HoldsFor::Uncontradicted`].
    pub unless: Option<Unless>,
}

/// Figure and range of the second ratio of a comparison.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unless {
    /// Name of the compared figure.
    pub figure: String,
    /// Range in which the ratio must lie.
    pub range: Range,
}

/// Two cells that differ in the amount of data.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sizes {
    /// The cell with more data.
    pub large: String,
    /// The cell with less data.
    pub small: String,
    /// The figure that measures the size of the data.
    pub size: String,
}

/// Statement that a claim makes about races or counts.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Test {
    /// The ratio of one entrant's figure to another's, within the rounds, lies in a range.
    Ratio(RatioTest),
    /// The geometric mean of the ratio of one entrant's figure to another's, over the races of the
    /// scope, lies in a range.
    Mean {
        /// Name of the compared figure.
        figure: String,
        /// Entrants that are compared, by the document's names.
        of: Vec<String>,
        /// Entrants with which each entrant of `of` is compared; `*` for all others of the document
        /// that raced.
        to: Vec<String>,
        /// Whether one mean is computed, with the entrant of `to` that has the smallest figure in
        /// each race, instead of one mean for each entrant of `to`.
        #[serde(default)]
        least: bool,
        /// Races over which the mean is taken.
        #[serde(rename = "in")]
        scope: Scope,
        /// Range in which each mean must lie.
        range: Range,
    },
    /// The mean of a figure lies in a range.
    Figure {
        /// Name of the figure whose mean is tested.
        figure: String,
        /// Entrants by the document's names; `*` for all entrants of the document that raced.
        of: Vec<String>,
        /// Races in which each mean is tested.
        #[serde(rename = "in")]
        scope: Scope,
        /// Range in which each mean must lie.
        range: Range,
    },
    /// The ratio of one figure to another of the same entrant lies in a range.
    Share {
        /// Name of the figure that is divided.
        figure: String,
        /// Name of the figure by which the first one is divided.
        whole: String,
        /// Entrants by the document's names.
        of: Vec<String>,
        /// Races in which each ratio is tested.
        #[serde(rename = "in")]
        scope: Scope,
        /// Range in which each ratio must lie.
        range: Range,
    },
    /// The degradation (extra cost of parallel work) of some entrants lies in a range.
    Degradation {
        /// Entrants by the document's names.
        of: Vec<String>,
        /// Cells whose times and sizes give the degradation.
        between: Sizes,
        /// Range in which each degradation must lie.
        range: Range,
    },
    /// The fastest entrant has the degradation closest to 1.
    FastestIsClosest {
        /// Cells that give the degradation. The times in the large cell determine the fastest
        /// entrant.
        between: Sizes,
    },
    /// The ratio of the large cell's data to the small cell's lies in a range.
    DataRatio {
        /// Cells whose data are compared.
        between: Sizes,
        /// Range in which the ratio must lie.
        range: Range,
    },
    /// The fast paths of some of heapdrome's own allocators stay within their stored instruction
    /// counts.
    FastPath {
        /// Names of the allocators whose fast paths are counted.
        of: Vec<String>,
    },
    /// Every entrant of `of` catches more kinds of misuse than every entrant of `to`.
    Misuse {
        /// Entrants that must catch more kinds than those of `to`, by the document's names.
        of: Vec<String>,
        /// Entrants with which each entrant of `of` is compared.
        to: Vec<String>,
    },
    /// No race of the suite can decide the claim, on any machine.
    Untestable {
        /// Reason that the report gives to the reader.
        reason: String,
    },
}

impl Test {
    /// Returns the scope of the test, if it has one.
    pub(crate) fn scope(&self) -> Option<&Scope> {
        match self {
            Self::Ratio(ratio) => Some(&ratio.scope),
            Self::Mean { scope, .. } | Self::Figure { scope, .. } | Self::Share { scope, .. } => {
                Some(scope)
            }
            _ => None,
        }
    }

    /// Returns the cells that the test refers to.
    pub(crate) fn cells(&self) -> Vec<&String> {
        match self {
            Self::Degradation { between, .. }
            | Self::FastestIsClosest { between }
            | Self::DataRatio { between, .. } => vec![&between.large, &between.small],
            _ => self
                .scope()
                .map_or_else(Vec::new, |scope| scope.cells.iter().collect()),
        }
    }

    /// Returns the lists of cells and of entrants of the test, which may contain groups.
    pub(crate) fn lists(&mut self) -> Vec<&mut Vec<String>> {
        match self {
            Self::Ratio(ratio) => vec![&mut ratio.of, &mut ratio.to, &mut ratio.scope.cells],
            Self::Mean { of, to, scope, .. } => vec![of, to, &mut scope.cells],
            Self::Figure { of, scope, .. } | Self::Share { of, scope, .. } => {
                vec![of, &mut scope.cells]
            }
            Self::Misuse { of, to } => vec![of, to],
            Self::Degradation { of, .. } | Self::FastPath { of } => vec![of],
            Self::FastestIsClosest { .. } | Self::DataRatio { .. } | Self::Untestable { .. } => {
                Vec::new()
            }
        }
    }

    /// Returns the entrants that the test names. `*` is not among them.
    pub(crate) fn entrants(&self) -> Vec<&String> {
        let named: Vec<&String> = match self {
            Self::Ratio(RatioTest { of, to, .. })
            | Self::Mean { of, to, .. }
            | Self::Misuse { of, to } => of.iter().chain(to).collect(),
            Self::Figure { of, .. }
            | Self::Share { of, .. }
            | Self::Degradation { of, .. }
            | Self::FastPath { of } => of.iter().collect(),
            _ => Vec::new(),
        };
        named.into_iter().filter(|name| *name != EVERYONE).collect()
    }
}
