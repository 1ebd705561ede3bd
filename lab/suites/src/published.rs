//! Figures that were published, word for word.

use heapdrome_schema::Table;
use serde::Deserialize;

/// A table of a document. Its figures never enter a computation.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedTable {
    /// What it shows.
    pub title: String,
    /// Where it was published, and the machine.
    pub source: String,
    /// The title of the measured table that it is shown after; else it comes last.
    pub after: Option<String>,
    /// The heads of its columns.
    pub heads: Vec<String>,
    /// Its rows.
    pub rows: Vec<Vec<String>>,
    /// What a reader should know about it.
    #[serde(default)]
    pub notes: Vec<String>,
}

impl PublishedTable {
    /// The table to print.
    pub fn table(&self) -> Table {
        Table {
            title: self.title.clone(),
            published: Some(self.source.clone()),
            heads: self.heads.clone(),
            rows: self.rows.clone(),
            notes: self.notes.clone(),
        }
    }

    /// What is wrong with it, if anything is.
    pub(crate) fn fault(&self) -> Option<String> {
        misfit(&self.title, &self.heads, &self.rows)
    }
}

/// A row of a table that does not fit its heads, in words.
pub(crate) fn misfit(title: &str, heads: &[String], rows: &[Vec<String>]) -> Option<String> {
    let row = rows.iter().find(|row| row.len() != heads.len())?;
    Some(format!(
        "the table '{title}' has {} heads, and a row of {} cells",
        heads.len(),
        row.len()
    ))
}
