//! The decided entrants of a race, whose further rounds no target needs.

use std::collections::BTreeMap;

use heapdrome_schema::Member;

use super::parts::{self, Compared};
use crate::Suite;
use crate::claim::{Family, HoldsFor, RatioTest, Scope, Side, Test};

/// Maximum number of an entrant's comparisons that are listed; the rest is only counted.
const TOLD: usize = 3;

/// The state of the targets during a race.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decided {
    /// Decided entrants in the order of the rows: the registry name, and a description of the
    /// comparisons that decided the entrant.
    pub entrants: Vec<(String, String)>,
    /// Whether every entrant is decided.
    pub all: bool,
}

/// The comparisons of one entrant to which targets refer.
#[derive(Default)]
struct Standing {
    open: bool,
    told: Vec<String>,
}

impl Suite {
    /// Returns the entrants that are decided at this point of a race. An entrant is decided if each
    /// of its comparisons that matter has an interval wholly inside or wholly outside the target's
    /// range, or if none of its comparisons matters. A comparison matters if neither entrant has
    /// failed, and if a target on ratios requires it. Such a target has `family = "race"` and
    /// applies to all comparisons. The verdicts use the same intervals, so they always agree with
    /// this decision.
    pub fn decided(&self, member: &Member) -> Decided {
        let standings = self.standings(member);
        let rows = member.result.entrants.iter();
        let names = rows.map(|row| row.allocator.as_str());
        let decided = names.filter(|name| standings.get(name).is_none_or(|one| !one.open));
        Decided {
            entrants: decided
                .map(|name| (name.to_owned(), because(standings.get(name))))
                .collect(),
            all: standings.values().all(|one| !one.open),
        }
    }

    /// Returns each entrant's comparisons in a race, for targets on ratios with `family = "race"`
    /// that apply to all comparisons. Omits comparisons with a failed entrant.
    fn standings(&self, member: &Member) -> BTreeMap<&str, Standing> {
        let mut standings: BTreeMap<&str, Standing> = BTreeMap::new();
        let counts = |name: &&str| member.result.row(name).is_some();
        for test in self.targets.iter().map(|target| &target.test) {
            let ratio = match test {
                Test::Ratio(ratio) if is_of_single_races(&ratio.scope) => ratio,
                _ => continue,
            };
            let compared = parts::compared(self, &[member], ratio);
            for Compared { both, part } in compared.unwrap_or_default() {
                // Further rounds cannot decide a comparison with a failed entrant.
                for name in both.into_iter().filter(|_| both.iter().all(counts)) {
                    let standing = standings.entry(name).or_default();
                    standing.open |= part.side() == Side::Unclear;
                    standing
                        .told
                        .push(format!("{} of {}", ratio.figure, part.tell()));
                }
            }
        }
        standings
    }

    /// Returns whether any target on ratios is decided within single races of this cell.
    pub(crate) fn is_decided_in(&self, cell: &str) -> bool {
        let mut tests = self.targets.iter().map(|target| &target.test);
        tests.any(|test| match test {
            Test::Ratio(RatioTest { scope, .. }) => {
                is_of_single_races(scope) && scope.cells.iter().any(|one| one == cell)
            }
            _ => false,
        })
    }
}

/// Returns whether each race decides its comparisons of a target by itself. This requires that the
/// intervals are simultaneous within one race, and that every comparison must hold or must not be
/// contradicted. A target on most or some comparisons needs all races together.
fn is_of_single_races(scope: &Scope) -> bool {
    let all_count = matches!(scope.holds_for, HoldsFor::All | HoldsFor::Uncontradicted);
    scope.family == Family::Race && all_count
}

/// Formats the reason why an entrant is decided.
fn because(standing: Option<&Standing>) -> String {
    let told = standing.map_or(&[][..], |standing| &standing.told);
    let more = told.len().saturating_sub(TOLD);
    match (told.is_empty(), more) {
        (true, _) => "no target compares it".to_owned(),
        (_, 0) => told.join("; "),
        _ => format!("{}; and {more} more", told[..TOLD].join("; ")),
    }
}
