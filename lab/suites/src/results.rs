//! Tables and verdicts from finished races.

use heapdrome_schema::{Absent, ClaimResult, Collection, Member, Scale, Table};

use crate::races::check_only;
use crate::{Entrant, Suite, SuiteError, claims, tables};

/// The evaluation of the races of suites.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evaluation {
    /// Tables of all suites. Each published table follows the measured table to which it belongs.
    pub tables: Vec<Table>,
    /// The verdicts on the suites' targets and claims.
    pub claims: Vec<ClaimResult>,
    /// The suites' allocators that did not race.
    pub absent: Vec<Absent>,
    /// Differences from the document, and other remarks for the reader.
    pub remarks: Vec<String>,
}

/// Makes tables and verdicts from a collection's races. The collection may be unfinished.
pub fn evaluate(suites: &[Suite], collection: &Collection) -> Evaluation {
    let members: Vec<&Member> = collection.races.iter().collect();
    let mut whole = Evaluation::default();
    for suite in suites {
        let runs = collection.misuse();
        whole.tables.extend(tables::make(suite, &members, runs));
        whole.claims.extend(claims::judge(suite, &members, runs));
        for known in absent(suite, collection) {
            if !whole.absent.contains(&known) {
                whole.absent.push(known);
            }
        }
        let labelled = |text: &String| format!("{}{text}", label(suite));
        whole.remarks.extend(suite.remarks.iter().map(labelled));
        let notes = suite.entrants.iter().filter(|one| one.allocator.is_some());
        let notes =
            notes.filter_map(|one| Some(format!("{}: {}", one.label(), one.note.as_ref()?)));
        whole.remarks.extend(notes.map(|note| labelled(&note)));
    }
    whole
}

/// Returns the prefix of a suite's remarks.
fn label(suite: &Suite) -> String {
    format!("{}: ", suite.name)
}

/// Returns the suite's allocators that are unavailable, then those that could have raced but did
/// not. If the suite has no race, omits the latter.
fn absent(suite: &Suite, collection: &Collection) -> Vec<Absent> {
    let own = format!("{}/", suite.name);
    let races = || {
        let all = collection.races.iter();
        all.filter(|race| race.cell.starts_with(&own))
    };
    let raced = |allocator: &String| {
        let mut rows = races().flat_map(|race| &race.result.entrants);
        rows.any(|row| row.allocator == *allocator)
    };
    let out = |one: &Entrant, reason: String| Absent {
        name: one.name.clone(),
        reason,
    };
    let gone = suite.entrants.iter().filter(|one| one.allocator.is_none());
    let gone = gone.map(|one| out(one, one.absent.clone().unwrap_or_default()));
    let left = |one: &&Entrant| one.allocator.as_ref().is_some_and(|name| !raced(name));
    let unasked = suite.entrants.iter().filter(left);
    let unasked = unasked.map(|one| out(one, why_unasked(one, collection.scale()).to_owned()));
    match races().next() {
        None => gone.collect(),
        Some(_) => gone.chain(unasked).collect(),
    }
}

/// Returns the reason why an available allocator was in no race.
fn why_unasked(one: &Entrant, scale: Option<Scale>) -> &'static str {
    match scale {
        Some(Scale::Quick) if one.not_in_quick => {
            "in the suite, but its quick form races it only if -a names it"
        }
        _ => "in the suite, but not selected for this run (-a, --only)",
    }
}

impl Evaluation {
    /// Stores the evaluation in its collection. The evaluation replaces all earlier tables,
    /// verdicts and absent allocators, and the earlier remarks of these suites. Other remarks are
    /// kept.
    pub fn fill(self, suites: &[Suite], collection: &mut Collection) {
        collection.tables = self.tables;
        collection.claims = self.claims;
        collection.absent = self.absent;
        let labels: Vec<String> = suites.iter().map(label).collect();
        let stale = |remark: &String| labels.iter().any(|label| remark.starts_with(label));
        collection.remarks.retain(|remark| !stale(remark));
        collection.remarks.extend(self.remarks);
    }
}

impl Suite {
    /// Checks that every selector of `only` matches a cell of `suites`.
    ///
    /// # Errors
    /// When a selector matches no cell.
    pub fn check_only(suites: &[Suite], only: &[String]) -> Result<(), SuiteError> {
        check_only(suites, only)
    }
}
