//! Figures of documents, verbatim.

use heapdrome_schema::Table;
use serde::Deserialize;

/// A table of a document. Its figures are never used in a computation.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedTable {
    /// Title that is printed above the table, after the suite's name.
    pub title: String,
    /// Place of publication, and the machine on which the figures were measured.
    pub source: String,
    /// Title of the measured table after which this table is printed, if that table has rows;
    /// `None` to print it last.
    pub after: Option<String>,
    /// Column heads.
    pub heads: Vec<String>,
    /// Rows, each with one cell for every head.
    pub rows: Vec<Vec<String>>,
    /// Notes that are printed under the table.
    #[serde(default)]
    pub notes: Vec<String>,
}

impl PublishedTable {
    /// Converts the published table to a printable table.
    pub fn table(&self) -> Table {
        Table {
            title: self.title.clone(),
            published: Some(self.source.clone()),
            heads: self.heads.clone(),
            rows: self.rows.clone(),
            notes: self.notes.clone(),
        }
    }

    /// Returns the first fault of the table; `None` if it has none.
    pub(crate) fn fault(&self) -> Option<String> {
        misfit(&self.title, &self.heads, &self.rows)
    }
}

/// Describes a row whose length differs from the number of heads, if there is one.
pub(crate) fn misfit(title: &str, heads: &[String], rows: &[Vec<String>]) -> Option<String> {
    let row = rows.iter().find(|row| row.len() != heads.len())?;
    Some(format!(
        "the table '{title}' has {} heads, and a row of {} cells",
        heads.len(),
        row.len()
    ))
}
