//! Plain lists, such as the list of known allocators, and wrapped text.

use comfy_table::{ContentArrangement, Table, TableComponent};

use crate::foreign;

/// Formats a table of text under `heads`, at most `width` characters wide. Long cells are wrapped.
pub fn listing<const COLUMNS: usize>(
    heads: [&str; COLUMNS],
    rows: &[[String; COLUMNS]],
    width: usize,
) -> String {
    let mut table = Table::new();
    table.load_preset(comfy_table::presets::NOTHING);
    table.set_style(TableComponent::HeaderLines, '─');
    table.set_style(TableComponent::MiddleHeaderIntersections, '─');
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(u16::try_from(width).unwrap_or(u16::MAX));
    table.set_header(heads);
    for row in rows {
        table.add_row(row.iter().map(|cell| foreign::line(cell)));
    }
    let text = table.to_string();
    text.lines()
        .map(|line| line.trim_end().to_owned() + "\n")
        .collect()
}

/// Wraps `text` in lines of at most `width` characters, and keeps its own line breaks.
pub fn wrapped(text: &str, width: usize) -> String {
    textwrap::fill(text, width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_fits_and_loses_nothing() {
        let rows = [
            ["one".to_owned(), "words ".repeat(30)],
            ["two\u{1b}[2J".to_owned(), String::new()],
        ];
        let text = listing(["name", "what"], &rows, 40);
        assert!(
            text.lines().all(|line| line.chars().count() <= 40),
            "{text}"
        );
        assert_eq!(text.matches("words").count(), 30);
        assert!(!text.contains('\u{1b}'));
    }
}
