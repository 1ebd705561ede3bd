//! Tables and verdicts of finished races.

use heapdrome_record::{Absent, ClaimResult, Collection, Member, Table};

use crate::Suite;
use crate::races::check_only;
use crate::{SuiteError, claims, tables};

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
        whole.tables.extend(tables::make(suite, &members));
        whole.claims.extend(claims::judge(suite, &members));
        let absent = suite.entrants.iter().filter(|one| one.allocator.is_none());
        for one in absent {
            let reason = one.absent.clone().unwrap_or_default();
            let name = one.name.clone();
            let known = Absent { name, reason };
            if !whole.absent.contains(&known) {
                whole.absent.push(known);
            }
        }
        let label = |text: &String| format!("{}: {text}", suite.name);
        whole.remarks.extend(suite.remarks.iter().map(label));
        let notes = suite.entrants.iter().filter(|one| one.allocator.is_some());
        let notes =
            notes.filter_map(|one| Some(format!("{}: {}", one.label(), one.note.as_ref()?)));
        whole.remarks.extend(notes.map(|note| label(&note)));
    }
    whole
}

impl Evaluation {
    /// Puts it into the collection that it was made of; remarks that are there stay.
    pub fn fill(self, collection: &mut Collection) {
        collection.tables = self.tables;
        collection.claims = self.claims;
        collection.absent = self.absent;
        for remark in self.remarks {
            if !collection.remarks.contains(&remark) {
                collection.remarks.push(remark);
            }
        }
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
