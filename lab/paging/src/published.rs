//! The figures that the document published, as data.

use heapdrome_record::Table;
use serde::Deserialize;

const TEXT: &str = include_str!("../data/published.toml");

#[derive(Deserialize)]
struct File {
    tables: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    id: String,
    title: String,
    machine: String,
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
    #[serde(default)]
    notes: Vec<String>,
}

/// The published tables of this name; several where the document has one for each machine.
///
/// # Panics
/// Never: a test reads the data that are part of the program.
#[must_use]
pub fn published(id: &str) -> Vec<Table> {
    let file: File = toml::from_str(TEXT).expect("the program's own data");
    let wanted = file.tables.into_iter().filter(|entry| entry.id == id);
    let made = wanted.map(|entry| Table {
        title: entry.title,
        published: Some(entry.machine),
        heads: entry.heads,
        rows: entry.rows,
        notes: entry.notes,
    });
    made.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_published_table_is_whole() {
        for id in ["ratio", "scaling", "realloc", "paging", "strategies"] {
            let tables = published(id);
            assert!(!tables.is_empty(), "{id}");
            for table in tables {
                let width = table.heads.len();
                assert!(
                    table.rows.iter().all(|row| row.len() == width),
                    "{}",
                    table.title
                );
                assert!(table.published.is_some());
            }
        }
        assert!(published("no such table").is_empty());
    }
}
