//! The document's published figures, as data.

use heapdrome_schema::Table;
use serde::Deserialize;

const TEXT: &str = include_str!("../data/published.toml");

#[derive(Deserialize)]
struct File {
    tables: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    id: String,
    label: String,
    machine: String,
    sizes: String,
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
    #[serde(default)]
    notes: Vec<String>,
}

/// Returns the published tables with this identifier. The document may have one for each machine.
fn published(id: &str) -> Vec<Entry> {
    let file: File = toml::from_str(TEXT).expect("the program's own data");
    let mut tables = file.tables;
    tables.retain(|entry| entry.id == id);
    tables
}

/// Adds the figures of the published tables `id` to `ours` as further columns, except the column
/// `RAM`. Joins rows that have equal text in the column `key` of both tables, and leaves out a
/// published table without this column. Published rows without a counterpart follow, with dashes
/// for the measured figures. For each published table, a note states the document's sizes and its
/// machine.
///
/// # Panics
/// Never: the data are part of the program, and a test parses them.
pub fn beside(mut ours: Table, id: &str, key: &str) -> Table {
    for theirs in published(id) {
        let place = |heads: &[String]| heads.iter().position(|head| head == key);
        let (Some(our_key), Some(their_key)) = (place(&ours.heads), place(&theirs.heads)) else {
            continue;
        };
        let figures: Vec<usize> = (0..theirs.heads.len())
            .filter(|column| *column != their_key && theirs.heads[*column] != "RAM")
            .collect();
        let mut left: Vec<&Vec<String>> = theirs.rows.iter().collect();
        for row in &mut ours.rows {
            let found = left
                .iter()
                .position(|their| their[their_key] == row[our_key])
                .map(|found| left.remove(found));
            row.extend(figures.iter().map(|column| match found {
                Some(their) => their[*column].clone(),
                None => "-".to_owned(),
            }));
        }
        for their in left {
            let mut row = vec!["-".to_owned(); ours.heads.len()];
            row[our_key].clone_from(&their[their_key]);
            row.extend(figures.iter().map(|column| their[*column].clone()));
            ours.rows.push(row);
        }
        let heads = figures.iter().map(|column| &theirs.heads[*column]);
        ours.heads
            .extend(heads.map(|head| format!("{}: {head}", theirs.label)));
        ours.notes.push(format!(
            "columns that begin with {}: as published ({}; {}), not measured here; {}",
            theirs.label,
            theirs.sizes,
            theirs.machine,
            theirs.notes.join("; ")
        ));
    }
    ours
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_published_table_is_whole() {
        let ids = [
            "ratio",
            "scaling",
            "realloc",
            "realloc-scaling",
            "paging",
            "strategies",
        ];
        for id in ids {
            let tables = published(id);
            assert!(!tables.is_empty(), "{id}");
            for table in tables {
                let width = table.heads.len();
                assert!(table.rows.iter().all(|row| row.len() == width), "{id}");
                assert!(!table.machine.is_empty() && !table.label.is_empty());
            }
        }
        assert!(published("no such table").is_empty());
    }

    fn texts(all: &[&str]) -> Vec<String> {
        all.iter().map(|one| (*one).to_owned()).collect()
    }

    #[test]
    fn published_figures_stand_in_the_row_that_they_belong_to() {
        let ours = Table {
            heads: texts(&["strategy", "ops/s"]),
            rows: vec![
                texts(&["batch8+WILLNEED", "5"]),
                texts(&["prefetch (128 ahead)", "6"]),
            ],
            ..Table::default()
        };
        let both = beside(ours, "strategies", "strategy");
        let column = both.heads.iter().position(|head| head == "NVMe: ops/s");
        let column = column.expect("the published column");
        assert_eq!(both.rows[0][column], "30,362");
        assert_eq!(both.rows[1][column], "-");
        let theirs_alone = |row: &&Vec<String>| row[0] == "baseline" && row[1] == "-";
        assert_eq!(both.rows.iter().filter(theirs_alone).count(), 1);
        let width = both.heads.len();
        assert!(both.rows.iter().all(|row| row.len() == width), "{both:?}");
        let sizes = "as published (512 MiB for 4 GiB; ";
        assert!(both.notes.iter().any(|note| note.contains(sizes)));
    }
}
