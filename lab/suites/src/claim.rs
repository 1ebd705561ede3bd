//! A document's sentence as the data file of a suite states it.

use heapdrome_statistics::Interval;
use serde::Deserialize;

/// The word for all of the document's entrants that raced.
pub(crate) const EVERYONE: &str = "*";

/// A sentence that was published, in heapdrome's own words.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The sentence. Where it leaves a number open, the reading that is tested stands in it.
    pub claim: String,
    /// The part of the document that says so.
    pub source: String,
    /// How it is tested.
    pub test: Test,
    /// Where the documents tell why it is missed and what was tried, as path and heading.
    #[serde(default)]
    pub see: Vec<String>,
}

/// The races that a claim speaks of.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scope {
    /// The cells.
    pub cells: Vec<String>,
    /// The values of what they sweep; empty for all that were run.
    #[serde(default)]
    pub at: Vec<u64>,
    /// For how many of the comparisons it is claimed.
    #[serde(default)]
    pub holds_for: HoldsFor,
    /// Which intervals hold together.
    #[serde(default)]
    pub family: Family,
}

/// Which intervals of a claim hold together with 95%.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// All of them.
    #[default]
    Claim,
    /// Those of each race: a claim on hundreds of races is one on each of them.
    Race,
}

/// For how many comparisons something is claimed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HoldsFor {
    /// Every one.
    #[default]
    All,
    /// More than half.
    Most,
    /// One at least.
    Some,
    /// That none is shown to be otherwise: it holds where no interval lies wholly elsewhere.
    Uncontradicted,
}

/// Where a figure must lie; an end that is not there is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Range {
    /// The lower end.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
}

/// On which side of a claim an interval lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Wholly where the claim puts it.
    Inside,
    /// Wholly elsewhere.
    Outside,
    /// Neither.
    Unclear,
}

impl Range {
    /// On which side of its ends an interval lies.
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
    /// The cell with less.
    pub small: String,
    /// The figure that tells the size of the data.
    pub size: String,
}

/// How a claim is tested.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Test {
    /// A figure of some entrants over that of others, within the rounds, lies in a range.
    Ratio {
        /// The figure.
        figure: String,
        /// The entrants, by the document's names.
        of: Vec<String>,
        /// Whom they are compared with; `*` for all others of the document that raced.
        to: Vec<String>,
        /// Where.
        #[serde(rename = "in")]
        scope: Scope,
        /// The range.
        range: Range,
    },
    /// The geometric mean over all races of a figure of some entrants over that of others lies in a
    /// range.
    Mean {
        /// The figure.
        figure: String,
        /// The entrants.
        of: Vec<String>,
        /// Whom each is compared with; `*` for all others of the document that raced.
        to: Vec<String>,
        /// Whether it is over whichever of `to` has the least of the figure in each race, and not
        /// over each of them.
        #[serde(default)]
        least: bool,
        /// Where.
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
        /// Where.
        #[serde(rename = "in")]
        scope: Scope,
        /// The range.
        range: Range,
    },
    /// One figure over another of the same entrant lies in a range.
    Share {
        /// The figure.
        figure: String,
        /// The figure that it is part of.
        whole: String,
        /// The entrants.
        of: Vec<String>,
        /// Where.
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
    /// The large cell's data over the small one's lies in a range.
    DataRatio {
        /// The cells.
        between: Sizes,
        /// The range.
        range: Range,
    },
    /// The fast paths of some of heapdrome's own allocators keep to their goldens.
    FastPath {
        /// The allocators.
        of: Vec<String>,
    },
    /// Some entrants catch more kinds of misuse than others.
    Misuse {
        /// The entrants.
        of: Vec<String>,
        /// Those that each of them is to surpass.
        to: Vec<String>,
    },
    /// Nothing that runs here could decide it.
    Untestable {
        /// Why.
        reason: String,
    },
}

impl Test {
    /// The races that it speaks of, where it speaks of any.
    pub(crate) fn scope(&self) -> Option<&Scope> {
        match self {
            Self::Ratio { scope, .. }
            | Self::Mean { scope, .. }
            | Self::Figure { scope, .. }
            | Self::Share { scope, .. } => Some(scope),
            _ => None,
        }
    }

    /// The cells that it speaks of.
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

    /// The entrants that it names.
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
