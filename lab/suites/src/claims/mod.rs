//! Verdicts on the claims and targets of a suite.

mod closest;
mod decided;
mod evidence;
mod fast_path;
mod means;
mod misuse;
mod parts;

use heapdrome_schema::{ClaimResult, Holds, Member, MisuseRun};

use crate::Suite;
use crate::claim::{Claim, HoldsFor, Test};
use evidence::Found;

pub use decided::Decided;
pub use evidence::{Part, weigh, without};
pub use parts::within_rounds;

/// Returns the verdicts on every target and every claim of a suite. Returns no verdicts if no race
/// of the suite was run.
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
    /// Returns the registry names of the allocators whose misuse a claim or a target refers to.
    pub fn misused(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for claim in self.targets.iter().chain(&self.claims) {
            let Test::Misuse { of, to } = &claim.test else {
                continue;
            };
            let named = of.iter().chain(to).filter_map(|name| self.entrant(name));
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
    /// Appends the references in `see` to `because`, unless the claim or target holds or cannot be
    /// tested.
    fn with_reason(&self, holds: Holds, because: String) -> String {
        match holds {
            Holds::NotHeld | Holds::Undecided if !self.see.is_empty() => {
                format!("{because}; see {}", self.see.join(", "))
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
        Test::Ratio(ratio) => parts::ratios(suite, members, ratio),
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
    weighed(suite, members, test, found)
}

/// Returns the verdict on the evidence. Cells and entrants that were not run can make the verdict
/// undecided. The text also lists swept values that were not run here.
fn weighed(suite: &Suite, members: &[&Member], test: &Test, found: Found) -> (Holds, String) {
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
