//! A result in the Markdown that software forges render.

use std::fmt::Write;

use heapdrome_schema::RaceResult;

use crate::conclusion::{Conclusion, others};
use crate::foreign;
use crate::grid::{self, Extent};
use crate::memory;
use crate::prose;
use crate::reproduce;
use crate::sheet::{Sheet, why_out};
use crate::table::{self, Column};
use crate::terminal::FIGURES;
use crate::words;
use crate::{Exporter, ReportError};

/// A result as Markdown: tables, paragraphs and code blocks.
#[derive(Clone, Copy, Debug)]
pub struct Markdown;

impl Exporter for Markdown {
    fn export(&self, result: &RaceResult) -> Result<Vec<u8>, ReportError> {
        let mut page = Page(String::new());
        let rounds = words::count(u64::from(result.rounds), "round");
        page.paragraph(&format!("### Allocators raced over {rounds}"));
        page.race(result);
        Ok(page.0.into_bytes())
    }
}

/// A page of Markdown. Empty lines separate its blocks.
pub(crate) struct Page(pub(crate) String);

impl Page {
    /// Adds the tables and the texts of a race.
    pub(crate) fn race(&mut self, result: &RaceResult) {
        let sheet = Sheet::new(result);
        let page = self;
        page.code(&reproduce::for_the_eye(&result.command));
        if sheet.rows.is_empty() {
            page.paragraph("No allocator counts.");
        } else {
            page.table(&grid::main_table(&sheet, Extent::WHOLE));
        }
        let (names, figures) = grid::figures(&sheet, usize::MAX);
        if !figures.is_empty() {
            page.paragraph(&format!("#### {FIGURES}"));
            let columns: Vec<_> = std::iter::once(names).chain(figures).collect();
            page.table(&columns);
        }
        for metric in sheet.metrics() {
            page.paragraph(&format!(
                "#### {}",
                escaped(&grid::metric_heading(&sheet, &metric))
            ));
            page.table(&grid::metric_table(&sheet, &metric, usize::MAX));
        }
        page.memory(&sheet);
        let conclusion = Conclusion::drawn(&sheet);
        page.labelled("Conclusion", &conclusion.to_string());
        if let Some(reason) = conclusion.reason(&sheet) {
            page.labelled("Why", &format!("{reason}."));
        }
        page.list("Others", &others(&sheet));
        page.not_counted(&sheet);
        page.numbered("Notes", &sheet.notes);
        page.list("More notes", &grid::more_marks(&sheet));
        page.list(
            "Comparisons in full",
            &prose::in_full(&sheet, Extent::WHOLE),
        );
        page.paragraph("#### Proof");
        page.table(&grid::proof_table(&sheet, usize::MAX, true));
        page.labelled("Noise floor", &prose::noise_floor(result));
        page.list("Remarks", &prose::remarks(result));
        page.list("Measured", &memory::methods(&sheet));
        page.labelled("Machine", &prose::machine(&result.machine));
        page.labelled("Race", &prose::race(result));
        page.paragraph("Run it again:");
        page.code(&reproduce::command_line(result).join(" "));
    }

    /// Adds the memory of the process trees over time and in parts, and the remarks on it.
    fn memory(&mut self, sheet: &Sheet<'_>) {
        let (names, columns) = memory::table(sheet, usize::MAX, 24);
        if !columns.is_empty() {
            self.paragraph(&format!("#### {}", memory::HEADING));
            let columns: Vec<_> = std::iter::once(names).chain(columns).collect();
            self.table(&columns);
            let remarks = memory::remarks(sheet);
            let lines: Vec<_> = remarks
                .iter()
                .map(|remark| format!("- {}", escaped(remark)))
                .collect();
            if !lines.is_empty() {
                self.paragraph(&lines.join("\n"));
            }
        }
    }

    /// Adds a block of Markdown.
    pub(crate) fn paragraph(&mut self, block: &str) {
        if !self.0.is_empty() {
            self.0.push('\n');
        }
        self.0.push_str(block);
        self.0.push('\n');
    }

    /// Adds a paragraph after a bold label.
    pub(crate) fn labelled(&mut self, label: &str, text: &str) {
        self.paragraph(&format!("**{label}**: {}", escaped(text)));
    }

    /// Adds a label and a list, if the list has entries.
    pub(crate) fn list(&mut self, label: &str, entries: &[String]) {
        let lines: Vec<_> = entries
            .iter()
            .map(|entry| format!("- {}", escaped(entry)))
            .collect();
        self.entries(label, &lines);
    }

    /// Adds a label and a numbered list, if the list has entries.
    fn numbered(&mut self, label: &str, entries: &[String]) {
        let numbered = entries.iter().enumerate();
        let lines: Vec<_> = numbered
            .map(|(place, entry)| format!("{}. {}", place + 1, escaped(entry)))
            .collect();
        self.entries(label, &lines);
    }

    /// Adds a label and lines of Markdown, if there are lines.
    fn entries(&mut self, label: &str, lines: &[String]) {
        if !lines.is_empty() {
            self.paragraph(&format!("**{label}**:"));
            self.paragraph(&lines.join("\n"));
        }
    }

    /// Adds the entrants without a valid row, with the reasons and the last lines of their standard
    /// error.
    fn not_counted(&mut self, sheet: &Sheet<'_>) {
        if !sheet.out.is_empty() {
            self.paragraph("**Not counted**:");
        }
        for entrant in &sheet.out {
            let (headline, details) = why_out(entrant);
            let name = escaped(&foreign::name(&entrant.allocator));
            self.paragraph(&format!("{name}: {}", escaped(&headline)));
            if !details.is_empty() {
                self.code(&details.join("\n"));
            }
        }
    }

    /// Adds text in a code fence, which is longer than any run of backticks in the text.
    pub(crate) fn code(&mut self, text: &str) {
        let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
        let fence = "`".repeat(longest.max(2) + 1);
        self.paragraph(&format!("{fence}text\n{text}\n{fence}"));
    }

    /// Adds a table. Figures are aligned to the right.
    pub(crate) fn table(&mut self, columns: &[Column]) {
        let row = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
        let heads = columns
            .iter()
            .map(|column| escaped(column.head.trim_start()));
        let rules = columns
            .iter()
            .map(|column| if column.right { "---:" } else { "---" });
        let mut block = row(heads.collect());
        let _ = write!(block, "\n{}", row(rules.map(str::to_owned).collect()));
        for place in 0..table::rows(columns) {
            let cells = columns.iter().map(|column| escaped(&column.at(place).text));
            let _ = write!(block, "\n{}", row(cells.collect()));
        }
        self.paragraph(&block);
    }
}

/// Escapes text so that Markdown shows it unchanged and on one line.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' => safe.push(' '),
            '\\' | '`' | '*' | '_' | '|' | '[' | ']' | '#' | '~' | '$' => safe.extend(['\\', c]),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            '@' => safe.push_str("&#64;"),
            c => safe.push(c),
        }
    }
    safe
}
