//! A document's sentences, and whether they hold here.

mod closest;
mod decided;
mod evidence;
mod fast_path;
mod means;
mod misuse;
mod parts;

use heapdrome_record::{ClaimResult, Holds, Member, MisuseRun};
use serde::Deserialize;

use crate::Suite;
use crate::racers::EVERYONE;
use evidence::Found;

pub use decided::Decided;
pub(crate) use evidence::Side;
pub use evidence::{Part, weigh, without};
pub use parts::within_rounds;

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
    fn scope(&self) -> Option<&Scope> {
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

/// Every target and every claim of a suite that ran at all, tested.
pub(crate) fn judge(suite: &Suite, members: &[&Member], runs: &[MisuseRun]) -> Vec<ClaimResult> {
    let own = format!("{}/", suite.name);
    if !members.iter().any(|member| member.cell.starts_with(&own)) {
        return Vec::new();
    }
    let judged = |claims: &[Claim], target: bool| -> Vec<ClaimResult> {
        let verdict = |claim: &Claim| {
            let (holds, because) = test(suite, &claim.test, members, runs);
            ClaimResult {
                claim: claim.claim.clone(),
                source: format!("{}: {}", suite.name, claim.source),
                holds,
                because: claim.with_reason(holds, because),
                target,
            }
        };
        claims.iter().map(verdict).collect()
    };
    let mut all = judged(&suite.targets, true);
    all.extend(judged(&suite.claims, false));
    all
}

impl Suite {
    /// The allocators whose misuse a claim or a target speaks of, by names of the catalogue.
    pub fn misused(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for claim in self.targets.iter().chain(&self.claims) {
            let Test::Misuse { of, to } = &claim.test else {
                continue;
            };
            let named = of.iter().chain(to).filter_map(|name| self.contender(name));
            for name in named.filter_map(|one| one.allocator.as_ref()) {
                if !names.contains(name) {
                    names.push(name.clone());
                }
            }
        }
        names
    }
}

impl Claim {
    /// The figures, and where the reason is told of what does not hold.
    fn with_reason(&self, holds: Holds, because: String) -> String {
        match holds {
            Holds::NotHeld | Holds::Undecided if !self.see.is_empty() => {
                format!(
                    "{because}; what was found and tried: {}",
                    self.see.join(", ")
                )
            }
            _ => because,
        }
    }
}

fn test(suite: &Suite, test: &Test, members: &[&Member], runs: &[MisuseRun]) -> (Holds, String) {
    let found = match test {
        Test::Untestable { reason } => return (Holds::CannotBeTested, reason.clone()),
        Test::FastPath { of } => return fast_path::judge(members, of),
        Test::Misuse { of, to } => return misuse::judge(suite, runs, [of, to]),
        Test::FastestIsClosest { between } => return closest::judge(suite, between, members),
        Test::Ratio {
            figure,
            of,
            to,
            scope,
            range,
        } => parts::ratios(suite, members, scope, (figure, *range), [of, to]),
        Test::Mean {
            figure,
            of,
            to,
            least,
            scope,
            range,
        } => means::means(suite, members, scope, (figure, *range, *least), [of, to]),
        Test::Figure {
            figure,
            of,
            scope,
            range,
        } => parts::figures(suite, members, scope, (figure, *range), of),
        Test::Share {
            figure,
            whole,
            of,
            scope,
            range,
        } => parts::shares(suite, members, scope, ([figure, whole], *range), of),
        Test::Degradation { of, between, range } => {
            parts::degradations(suite, members, between, *range, of)
        }
        Test::DataRatio { between, range } => parts::data_ratios(suite, members, between, *range),
    };
    let holds_for = test.scope().map_or(HoldsFor::All, |scope| scope.holds_for);
    match found {
        Found::Parts { parts, absent } => {
            let (holds, because) = evidence::weigh(&parts, &absent, holds_for);
            let unrun = parts::unrun(suite, members, test);
            let (holds, because) = evidence::without(&unrun, holds_for, (holds, because));
            match test
                .scope()
                .and_then(|scope| parts::left_out(suite, members, scope))
            {
                Some(values) => (holds, format!("{because}; not run here: {values}")),
                None => (holds, because),
            }
        }
        Found::Untestable(why) => (Holds::CannotBeTested, why),
        Found::NotRun(why) => (Holds::Undecided, why),
    }
}
