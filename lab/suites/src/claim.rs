//! A claim of a document, as the data file of a suite states it.

use heapdrome_statistics::Interval;
use serde::Deserialize;

/// The name that stands for all of the document's entrants that raced.
pub(crate) const EVERYONE: &str = "*";

/// A published claim, in heapdrome's own words.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The claim as a sentence. If the original leaves a number open, the sentence states the
    /// number that is tested.
    pub claim: String,
    /// The part of the document that makes the claim.
    pub source: String,
    /// The test of the claim.
    pub test: Test,
    /// Path and heading of the documents that explain why the target is missed and what was tried.
    #[serde(default)]
    pub see: Vec<String>,
}

/// The races that a claim is about.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scope {
    /// The names of the cells.
    pub cells: Vec<String>,
    /// The values of the swept parameter; empty for all that were run.
    #[serde(default)]
    pub at: Vec<u64>,
    /// The number of comparisons for which the claim must hold.
    #[serde(default)]
    pub holds_for: HoldsFor,
    /// The intervals that hold simultaneously.
    #[serde(default)]
    pub family: Family,
}

/// The set of a claim's intervals that hold simultaneously with 95%.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// All intervals of the claim.
    #[default]
    Claim,
    /// The intervals of each race, for a claim that hundreds of races make one by one.
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
    /// No comparison may contradict the claim: it holds unless an interval lies wholly outside.
    Uncontradicted,
}

/// The range in which a figure must lie; a missing end is unbounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Range {
    /// The lower end.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
}

/// The position of an interval relative to a claim's range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Wholly inside the range.
    Inside,
    /// Wholly outside the range.
    Outside,
    /// Neither wholly inside nor wholly outside.
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

/// The test of a claim.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Test {
    /// The ratio of some entrants' figure to that of others, within the rounds, lies in a range.
    Ratio {
        /// The figure.
        figure: String,
        /// The entrants, by the document's names.
        of: Vec<String>,
        /// The entrants that they are compared with; `*` for all others of the document that raced.
        to: Vec<String>,
        /// The races.
        #[serde(rename = "in")]
        scope: Scope,
        /// The range.
        range: Range,
    },
    /// The geometric mean over all races of such a ratio lies in a range.
    Mean {
        /// The figure.
        figure: String,
        /// The entrants.
        of: Vec<String>,
        /// The entrants that each is compared with; `*` for all others of the document that raced.
        to: Vec<String>,
        /// Whether the mean is over the entrant of `to` with the smallest figure in each race,
        /// instead of over each of them.
        #[serde(default)]
        least: bool,
        /// The races.
        #[serde(rename = "in")]
        scope: Scope,
        /// The range.
        range: Range,
    },
    /// The mean of a figure lies in a range.
    Figure {
        /// The figure.
        figure: String,
        /// The entrants; `*` for all of the document that raced.
        of: Vec<String>,
        /// The races.
        #[serde(rename = "in")]
        scope: Scope,
        /// The range.
        range: Range,
    },
    /// One figure over another of the same entrant lies in a range.
    Share {
        /// The figure.
        figure: String,
        /// The figure that it is a part of.
        whole: String,
        /// The entrants.
        of: Vec<String>,
        /// The races.
        #[serde(rename = "in")]
        scope: Scope,
        /// The range.
        range: Range,
    },
    /// The degradation of some entrants lies in a range.
    Degradation {
        /// The entrants.
        of: Vec<String>,
        /// The cells.
        between: Sizes,
        /// The range.
        range: Range,
    },
    /// The fastest entrant's degradation is the closest to 1.
    FastestIsClosest {
        /// The cells; the fastest is that of the larger one.
        between: Sizes,
    },
    /// The ratio of the large cell's data to the small cell's lies in a range.
    DataRatio {
        /// The cells.
        between: Sizes,
        /// The range.
        range: Range,
    },
    /// The fast paths of some of heapdrome's own allocators match their goldens.
    FastPath {
        /// The allocators.
        of: Vec<String>,
    },
    /// Some entrants catch more kinds of misuse than others.
    Misuse {
        /// The entrants.
        of: Vec<String>,
        /// The entrants that each of them must surpass.
        to: Vec<String>,
    },
    /// No race here can decide the claim.
    Untestable {
        /// The reason.
        reason: String,
    },
}

impl Test {
    /// Returns the scope of the test, if it has one.
    pub(crate) fn scope(&self) -> Option<&Scope> {
        match self {
            Self::Ratio { scope, .. }
            | Self::Mean { scope, .. }
            | Self::Figure { scope, .. }
            | Self::Share { scope, .. } => Some(scope),
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

    /// Returns the entrants that the test names.
    pub(crate) fn entrants(&self) -> Vec<&String> {
        let named: Vec<&String> = match self {
            Self::Ratio { of, to, .. } | Self::Mean { of, to, .. } | Self::Misuse { of, to } => {
                of.iter().chain(to).collect()
            }
            Self::Figure { of, .. }
            | Self::Share { of, .. }
            | Self::Degradation { of, .. }
            | Self::FastPath { of } => of.iter().collect(),
            _ => Vec::new(),
        };
        named.into_iter().filter(|name| *name != EVERYONE).collect()
    }
}
