//! Tables and verdicts of finished races.

use heapdrome_schema::{Absent, ClaimResult, Collection, Member, Scale, Table};

use crate::races::check_only;
use crate::{Entrant, Suite, SuiteError, claims, tables};

/// What a suite makes of its races.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evaluation {
    /// The tables, each published one after the measured one that it belongs to.
    pub tables: Vec<Table>,
    /// The document's sentences, tested.
    pub claims: Vec<ClaimResult>,
    /// The document's allocators that did not race.
    pub absent: Vec<Absent>,
    /// How the suite differs from the document, and what else a reader should know.
    pub remarks: Vec<String>,
}

/// Makes tables and verdicts of a collection's races, also of one that is not finished.
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

/// What the remarks of a suite begin with.
fn label(suite: &Suite) -> String {
    format!("{}: ", suite.name)
}

/// The suite's allocators that cannot be had; then, of a suite that was run, those that could have
/// raced in it and did not.
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

/// Why an allocator that can be had is in no race.
fn why_unasked(one: &Entrant, scale: Option<Scale>) -> &'static str {
    match scale {
        Some(Scale::Quick) if one.not_in_quick => {
            "the suite has it; its quick form races it only where -a names it"
        }
        _ => "the suite has it; this run was not asked for it (-a, --only)",
    }
}

impl Evaluation {
    /// Puts it into the collection that it was made of, in place of what an earlier evaluation of
    /// the same suites made; other remarks that are there stay.
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
    /// Checks that every selector of `only` picks a cell of `suites`.
    ///
    /// # Errors
    /// When one picks nothing.
    pub fn check_only(suites: &[Suite], only: &[String]) -> Result<(), SuiteError> {
        check_only(suites, only)
    }
}
