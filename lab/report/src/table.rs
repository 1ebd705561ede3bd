//! Columns side by side, for the terminal.

use comfy_table::{CellAlignment, ContentArrangement, Table, TableComponent};
use unicode_width::UnicodeWidthStr;

use crate::foreign;

/// One column of a table; all columns of a table have the same number of cells.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    /// Its head; a newline starts a second line.
    pub(crate) head: String,
    /// Its cells, one line each.
    pub(crate) cells: Vec<String>,
    /// Whether cells stand at the right edge, as figures do.
    pub(crate) right: bool,
}

impl Column {
    /// A column of text.
    pub(crate) fn text(head: impl Into<String>, cells: Vec<String>) -> Self {
        Self {
            head: head.into(),
            cells,
            right: false,
        }
    }

    /// A column of figures.
    pub(crate) fn figures(head: impl Into<String>, cells: Vec<String>) -> Self {
        Self {
            head: head.into(),
            cells,
            right: true,
        }
    }

    /// Whether any cell holds more than a dash.
    pub(crate) fn says_anything(&self) -> bool {
        self.cells
            .iter()
            .any(|cell| !cell.is_empty() && cell != crate::words::NONE)
    }
}

/// The lines of a table: the heads, a rule, then one line for each row.
pub(crate) fn lines(columns: &[Column]) -> Vec<String> {
    let mut table = Table::new();
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.load_preset(comfy_table::presets::NOTHING);
    table.set_style(TableComponent::HeaderLines, '─');
    table.set_style(TableComponent::MiddleHeaderIntersections, '─');
    table.set_header(columns.iter().map(|column| column.head.clone()));
    let rows = columns
        .iter()
        .map(|column| column.cells.len())
        .max()
        .unwrap_or(0);
    for row in 0..rows {
        let cell = |column: &Column| column.cells.get(row).cloned().unwrap_or_default();
        table.add_row(columns.iter().map(cell).collect::<Vec<_>>());
    }
    for (place, column) in columns.iter().enumerate() {
        if let Some(of_table) = table.column_mut(place) {
            of_table.set_padding((0, if place + 1 == columns.len() { 0 } else { 1 }));
            if column.right {
                of_table.set_cell_alignment(CellAlignment::Right);
            }
        }
    }
    table
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect()
}

/// The columns of the widest line.
pub(crate) fn width(lines: &[String]) -> usize {
    lines.iter().map(|line| line.width()).max().unwrap_or(0)
}

/// The first of `choices` that fits into `width`; the last is cut to fit.
pub(crate) fn first_that_fits(
    choices: impl Iterator<Item = Vec<Column>>,
    wanted: usize,
) -> (usize, Vec<String>) {
    let mut last = (0, Vec::new());
    for (place, columns) in choices.enumerate() {
        last = (place, lines(&columns));
        if width(&last.1) <= wanted {
            return last;
        }
    }
    (
        last.0,
        last.1
            .iter()
            .map(|line| foreign::shorten(line, wanted))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> Vec<Column> {
        let text = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect();
        vec![
            Column::text("name", text(&["a", "日本"])),
            Column::figures("wall\ntime", text(&["1.00 s", "12 s"])),
        ]
    }

    #[test]
    fn columns_are_aligned_by_what_the_terminal_shows() {
        let expected = [
            "        wall",
            "name    time",
            "───────────",
            "a     1.00 s",
            "日本    12 s",
        ];
        let lines = lines(&columns());
        assert_eq!(lines.len(), 5, "{lines:#?}");
        assert_eq!(lines[3], expected[3]);
        assert_eq!(lines[4], expected[4]);
    }

    #[test]
    fn what_fits_nowhere_is_cut() {
        let (choice, lines) = first_that_fits([columns()].into_iter(), 6);
        assert_eq!(choice, 0);
        assert!(width(&lines) <= 6, "{lines:?}");
    }
}
