//! Published figures, verbatim.

use heapdrome_schema::Table;
use serde::Deserialize;

/// A table of a document. Its figures never enter a computation.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedTable {
    /// The title.
    pub title: String,
    /// The place of publication, and the machine.
    pub source: String,
    /// The title of the measured table that it follows; without one it comes last.
    pub after: Option<String>,
    /// The heads of its columns.
    pub heads: Vec<String>,
    /// Its rows.
    pub rows: Vec<Vec<String>>,
    /// Notes for the reader.
    #[serde(default)]
    pub notes: Vec<String>,
}

impl PublishedTable {
    /// Converts it to a printable table.
    pub fn table(&self) -> Table {
        Table {
            title: self.title.clone(),
            published: Some(self.source.clone()),
            heads: self.heads.clone(),
            rows: self.rows.clone(),
            notes: self.notes.clone(),
        }
    }

    /// Returns the first fault of the table, if it has one.
    pub(crate) fn fault(&self) -> Option<String> {
        misfit(&self.title, &self.heads, &self.rows)
    }
}

/// Describes a row that does not match the number of heads, if there is one.
pub(crate) fn misfit(title: &str, heads: &[String], rows: &[Vec<String>]) -> Option<String> {
    let row = rows.iter().find(|row| row.len() != heads.len())?;
    Some(format!(
        "the table '{title}' has {} heads, and a row of {} cells",
        heads.len(),
        row.len()
    ))
}
