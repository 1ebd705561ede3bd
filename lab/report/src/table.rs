//! Tables of columns, and their lines for the terminal.

use comfy_table::{
    Attribute, CellAlignment, Color, ContentArrangement, Row, Table, TableComponent,
};
use unicode_width::UnicodeWidthStr;

use crate::foreign;
use crate::paint::{Paint, Tone};

/// The content of one row of a column.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    pub(crate) text: String,
    /// Meaning for a reader, if the cell is a verdict.
    pub(crate) tone: Option<Tone>,
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { text, tone: None }
    }
}

impl Cell {
    fn styled(&self) -> comfy_table::Cell {
        let cell = comfy_table::Cell::new(&self.text);
        match self.tone {
            None => cell,
            Some(Tone::Good) => cell.fg(Color::DarkGreen),
            Some(Tone::Bad) => cell.fg(Color::DarkRed),
            Some(Tone::Faint) => cell.add_attribute(Attribute::Dim),
        }
    }
}

/// One column of a table. In a column that is shorter than the table, the missing cells are empty.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    /// Head of the column. A newline begins its second line.
    pub(crate) head: String,
    /// Cells of the column, one line each.
    pub(crate) cells: Vec<Cell>,
    /// Whether cells are aligned to the right, as figures are.
    pub(crate) right: bool,
}

impl Column {
    /// Returns a column of text.
    pub(crate) fn text<C: Into<Cell>>(head: impl Into<String>, cells: Vec<C>) -> Self {
        Self {
            head: head.into(),
            cells: cells.into_iter().map(Into::into).collect(),
            right: false,
        }
    }

    /// Returns a column of figures.
    pub(crate) fn figures<C: Into<Cell>>(head: impl Into<String>, cells: Vec<C>) -> Self {
        Self {
            right: true,
            ..Self::text(head, cells)
        }
    }

    /// Returns whether any cell is neither empty nor a dash.
    pub(crate) fn says_anything(&self) -> bool {
        self.cells
            .iter()
            .any(|cell| !cell.text.is_empty() && cell.text != crate::words::NONE)
    }

    /// Returns the cell in `row`, or an empty cell if the column is shorter.
    pub(crate) fn at(&self, row: usize) -> Cell {
        self.cells.get(row).cloned().unwrap_or_default()
    }
}

/// Returns the number of rows of a table.
pub(crate) fn rows(columns: &[Column]) -> usize {
    let lengths = columns.iter().map(|column| column.cells.len());
    lengths.max().unwrap_or(0)
}

/// Returns the lines of a table without colours: the heads, a rule, then one line for each row.
pub(crate) fn lines(columns: &[Column]) -> Vec<String> {
    painted(columns, Paint(false))
}

/// Returns the lines of a table, with the colours of its verdicts if `paint` uses colours.
fn painted(columns: &[Column], paint: Paint) -> Vec<String> {
    let mut table = Table::new();
    // The caller decides whether there are colours, so the table must not look for a terminal
    // itself.
    match paint {
        Paint(true) => table.enforce_styling(),
        Paint(false) => table.force_no_tty(),
    };
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.load_preset(comfy_table::presets::NOTHING);
    table.set_style(TableComponent::HeaderLines, '─');
    table.set_style(TableComponent::MiddleHeaderIntersections, '─');
    table.set_header(columns.iter().map(|column| column.head.clone()));
    for row in 0..rows(columns) {
        let cells = columns.iter().map(|column| column.at(row).styled());
        table.add_row(Row::from(cells.collect::<Vec<_>>()));
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

/// Returns the width of the widest line, in characters.
pub(crate) fn width(lines: &[String]) -> usize {
    lines.iter().map(|line| line.width()).max().unwrap_or(0)
}

/// Returns the position and the lines of the first of `choices` that fits into `wanted` characters.
/// If none fits, truncates the last and removes its colours.
pub(crate) fn first_that_fits(
    choices: impl Iterator<Item = Vec<Column>>,
    wanted: usize,
    paint: Paint,
) -> (usize, Vec<String>) {
    let mut last = (0, Vec::new());
    for (place, columns) in choices.enumerate() {
        last = (place, lines(&columns));
        if width(&last.1) <= wanted {
            return (place, painted(&columns, paint));
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
        let (choice, lines) = first_that_fits([columns()].into_iter(), 6, Paint(true));
        assert_eq!(choice, 0);
        assert!(width(&lines) <= 6, "{lines:?}");
    }
}
