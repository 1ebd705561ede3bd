//! Which entrants of a race are decided: no target waits for another round of theirs.

use std::collections::BTreeMap;

use heapdrome_schema::Member;

use super::parts::{self, Compared};
use crate::Suite;
use crate::claim::{Family, HoldsFor, Scope, Side, Test};

/// Comparisons of an entrant that are told in full; of more, the number is told.
const TOLD: usize = 3;

/// What the targets say of a race that goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decided {
    /// The entrants on which every target is decided, by names of the registry in the order of the
    /// rows, each with the comparisons that say so.
    pub entrants: Vec<(String, String)>,
    /// Whether no target is open on anyone.
    pub all: bool,
}

/// What the targets compare an entrant with.
#[derive(Default)]
struct Standing {
    open: bool,
    told: Vec<String>,
}

impl Suite {
    /// Who is decided in a race that goes on: every comparison of theirs that a target makes in it,
    /// with `family = "race"` and for all comparisons, has an interval wholly within or wholly
    /// outside of what the target asks. The intervals are those of the verdicts, so that both
    /// agree. An entrant that no such target compares is decided.
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

    /// How the targets stand on each entrant that they compare in a race.
    fn standings(&self, member: &Member) -> BTreeMap<&str, Standing> {
        let mut standings: BTreeMap<&str, Standing> = BTreeMap::new();
        let counts = |name: &&str| member.result.row(name).is_some();
        for test in self.targets.iter().map(|target| &target.test) {
            let Test::Ratio {
                figure,
                of,
                to,
                scope,
                range,
            } = test
            else {
                continue;
            };
            let compared = match is_of_single_races(scope) {
                true => parts::compared(self, &[member], scope, (figure, *range), [of, to]),
                false => continue,
            };
            for Compared { both, part } in compared.unwrap_or_default() {
                // No round tells more of who has failed.
                for name in both.into_iter().filter(|_| both.iter().all(counts)) {
                    let standing = standings.entry(name).or_default();
                    standing.open |= part.side() == Side::Unclear;
                    standing.told.push(format!("{figure} of {}", part.tell()));
                }
            }
        }
        standings
    }

    /// Whether a target is decided in single races of a cell.
    pub(crate) fn is_decided_in(&self, cell: &str) -> bool {
        let mut tests = self.targets.iter().map(|target| &target.test);
        tests.any(|test| match test {
            Test::Ratio { scope, .. } => {
                is_of_single_races(scope) && scope.cells.iter().any(|one| one == cell)
            }
            _ => false,
        })
    }
}

/// Whether a target waits for every interval of every race: its intervals hold together in one
/// race, and all of them count. What is said of most or some races is decided by their number.
fn is_of_single_races(scope: &Scope) -> bool {
    let all_count = matches!(scope.holds_for, HoldsFor::All | HoldsFor::Uncontradicted);
    scope.family == Family::Race && all_count
}

/// Why an entrant is decided, in words.
fn because(standing: Option<&Standing>) -> String {
    let told = standing.map_or(&[][..], |standing| &standing.told);
    let more = told.len().saturating_sub(TOLD);
    match (told.is_empty(), more) {
        (true, _) => "no target compares it".to_owned(),
        (_, 0) => told.join("; "),
        _ => format!("{}; and {more} more", told[..TOLD].join("; ")),
    }
}
