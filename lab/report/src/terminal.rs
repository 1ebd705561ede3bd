//! The full output of a race for a terminal, the interim table of a running race, and the page to
//! which several outputs for a terminal append.

use std::fmt::Write;

use heapdrome_schema::{RaceResult, Role};
use unicode_width::UnicodeWidthStr;

use crate::bars;
use crate::conclusion::{Conclusion, others};
use crate::entrant::OPERATIONS;
use crate::foreign;
use crate::grid::{self, Extent};
use crate::memory;
use crate::paint::Paint;
use crate::prose;
use crate::reproduce;
use crate::sheet::{Sheet, why_out};
use crate::table::{self, Column};
use crate::words;
use crate::{Exporter, ReportError};

/// Heading of the figures that a workload reports.
pub(crate) const FIGURES: &str = "Figures of the workload (medians)";

/// The full output of a result, as text for a terminal.
#[derive(Clone, Copy, Debug)]
pub struct Terminal {
    /// Maximum width of a line in characters. Widths below 40 count as 40. In a command line to
    /// copy, a single word may be wider, because words are never broken.
    pub width: usize,
    /// Whether ANSI colours are used.
    pub colour: bool,
}

impl Exporter for Terminal {
    fn export(&self, result: &RaceResult) -> Result<Vec<u8>, ReportError> {
        let sheet = Sheet::new(result);
        let mut page = Page::new(*self);
        page.title(
            result,
            &format!("after {}", words::count(u64::from(result.rounds), "round")),
        );
        let extent = page.main_table(&sheet);
        page.bars(&sheet);
        page.figures(&sheet);
        page.metrics(&sheet);
        page.memory(&sheet);
        let conclusion = Conclusion::drawn(&sheet);
        page.section("Conclusion", &conclusion.to_string());
        if let Some(reason) = conclusion.reason(&sheet) {
            page.section("Why", &format!("{reason}."));
        }
        page.list("Others", others(&sheet));
        page.list(
            "Not counted",
            sheet.out.iter().map(|out| not_counted(out)).collect(),
        );
        page.list("Notes", numbered(&sheet));
        page.list("Comparisons in full", prose::in_full(&sheet, extent));
        page.proof(&sheet);
        page.section("Noise floor", &prose::noise_floor(result));
        page.list("Remarks", prose::remarks(result));
        page.list("Measured", memory::methods(&sheet));
        page.section("Machine", &prose::machine(&result.machine));
        page.section("Race", &prose::race(result));
        page.command("Run it again", &reproduce::command_line(result));
        Ok(page.text.into_bytes())
    }
}

/// Formats only the table, for a running race, under a title that ends with `so far, round N`. Each
/// entrant without a valid row follows on its own line.
pub fn interim(result: &RaceResult, terminal: Terminal) -> String {
    let sheet = Sheet::new(result);
    let mut page = Page::new(terminal);
    page.title(result, &format!("so far, round {}", result.rounds));
    page.main_table(&sheet);
    page.list(
        "Not counted",
        sheet
            .out
            .iter()
            .map(|out| not_counted(out)[..1].to_vec())
            .collect(),
    );
    page.text
}

/// Returns the lines for an entrant without a valid row, with the reason.
pub(crate) fn not_counted(entrant: &heapdrome_schema::EntrantResult) -> Vec<String> {
    let (headline, details) = why_out(entrant);
    let mut lines = vec![format!("{}: {headline}", foreign::name(&entrant.allocator))];
    lines.extend(details);
    lines
}

/// Returns the notes with their numbers, then all numbers of each row that shows only some of its
/// numbers.
pub(crate) fn numbered(sheet: &Sheet<'_>) -> Vec<String> {
    let notes = sheet.notes.iter().enumerate();
    notes
        .map(|(place, note)| format!("[{}] {note}", place + 1))
        .chain(grid::more_marks(sheet))
        .collect()
}

/// An entry of a list: one line, or a headline with further lines.
pub(crate) trait Entry {
    /// Returns the headline, then the further lines.
    fn lines(&self) -> &[String];
}

impl Entry for String {
    fn lines(&self) -> &[String] {
        std::slice::from_ref(self)
    }
}

impl Entry for Vec<String> {
    fn lines(&self) -> &[String] {
        self
    }
}

/// Text to which sections are appended. Sections wrap their lines at `width`, except commands to
/// copy.
pub(crate) struct Page {
    pub(crate) width: usize,
    pub(crate) paint: Paint,
    pub(crate) text: String,
}

impl Page {
    pub(crate) fn new(terminal: Terminal) -> Self {
        Self {
            width: terminal.width.max(40),
            paint: Paint(terminal.colour),
            text: String::new(),
        }
    }

    /// Adds one line unchanged.
    pub(crate) fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Adds the command or the workload, and the state of the race.
    pub(crate) fn title(&mut self, result: &RaceResult, state: &str) {
        let room = self.width.saturating_sub(state.len() + 2);
        let command = match &result.options.workload {
            Some(workload) => foreign::line(workload),
            None => reproduce::for_the_eye(&result.command),
        };
        let command = foreign::shorten(&command, room);
        let command = self.paint.strong(&command);
        self.line(&format!("{command}, {state}"));
        self.text.push('\n');
    }

    /// Adds the main table and returns its extent. If no entrant has a valid row, adds a sentence
    /// instead.
    pub(crate) fn main_table(&mut self, sheet: &Sheet<'_>) -> Extent {
        if sheet.rows.is_empty() {
            self.line("No allocator counts.");
            return Extent::WHOLE;
        }
        let extents = Extent::shrinking(sheet.is_figure(OPERATIONS));
        let choices = extents
            .iter()
            .map(|extent| grid::main_table(sheet, *extent));
        extents[self.ranking(sheet, choices)]
    }

    /// Adds a table with a row for each entrant of the ranking. Returns the position of the first
    /// choice that fits, or of the last one if none fits.
    pub(crate) fn ranking(
        &mut self,
        sheet: &Sheet<'_>,
        choices: impl Iterator<Item = Vec<Column>>,
    ) -> usize {
        let (choice, lines) = table::first_that_fits(choices, self.width, self.paint);
        let heads = lines.len() - sheet.rows.len();
        for (place, line) in lines.into_iter().enumerate() {
            let row = place.checked_sub(heads).map(|row| &sheet.rows[row]);
            let line = match row.map(|row| row.entrant.role) {
                None => self.paint.faint(&line),
                Some(Role::Baseline) => self.paint.strong(&line),
                Some(_) => line,
            };
            self.line(&line);
        }
        choice
    }

    /// Adds the drawing of the intervals of wall time.
    pub(crate) fn bars(&mut self, sheet: &Sheet<'_>) {
        let lines = bars::lines(sheet, self.width, self.paint);
        if !lines.is_empty() {
            let heading = format!("Wall time relative to {} (log scale)", sheet.baseline());
            self.heading(&heading);
            lines.iter().for_each(|line| self.line(line));
        }
    }

    /// Adds the memory of the process trees over time and in parts, and the remarks on it.
    pub(crate) fn memory(&mut self, sheet: &Sheet<'_>) {
        let sparkline = if self.width >= 60 { 24 } else { 12 };
        let (names, columns) = memory::table(sheet, 16, sparkline);
        if !columns.is_empty() {
            self.heading(memory::HEADING);
            self.blocks(&names, &columns);
            for remark in memory::remarks(sheet) {
                self.line(&indented(&remark, self.width, "  ", "      "));
            }
        }
    }

    /// Adds the figures of the workload.
    fn figures(&mut self, sheet: &Sheet<'_>) {
        let (names, figures) = grid::figures(sheet, 16);
        if !figures.is_empty() {
            self.heading(FIGURES);
            self.blocks(&names, &figures);
        }
    }

    /// Adds a table for each metric that the command printed.
    pub(crate) fn metrics(&mut self, sheet: &Sheet<'_>) {
        for metric in sheet.metrics() {
            self.heading(&foreign::shorten(
                &grid::metric_heading(sheet, &metric),
                self.width,
            ));
            self.narrowing(|name| grid::metric_table(sheet, &metric, name));
        }
    }

    /// Adds the table of the objects that served malloc.
    pub(crate) fn proof(&mut self, sheet: &Sheet<'_>) {
        if sheet
            .result
            .entrants
            .iter()
            .any(|entrant| entrant.proof.is_some())
        {
            self.heading("Proof");
            self.narrowing(|name| grid::proof_table(sheet, name, false));
        }
    }

    /// Adds a table with the names and as many columns as fit, then further tables with the
    /// remaining columns.
    pub(crate) fn blocks(&mut self, names: &table::Column, columns: &[table::Column]) {
        let mut rest = columns;
        while !rest.is_empty() {
            let block = |count: usize| -> Vec<table::Column> {
                let shown = rest[..count].iter().cloned();
                std::iter::once(names.clone()).chain(shown).collect()
            };
            let fits = |count: &usize| table::width(&table::lines(&block(*count))) <= self.width;
            let count = (1..=rest.len()).rev().find(fits).unwrap_or(1);
            for line in table::lines(&block(count)) {
                self.line(&foreign::shorten(&line, self.width));
            }
            rest = &rest[count..];
            if !rest.is_empty() {
                self.text.push('\n');
            }
        }
    }

    /// Adds a table, whose names are shortened until the table fits.
    fn narrowing(&mut self, columns: impl Fn(usize) -> Vec<table::Column>) {
        let choices = [24, 16, 10].map(columns);
        for line in table::first_that_fits(choices.into_iter(), self.width, self.paint).1 {
            self.line(&line);
        }
    }

    /// Adds a heading on its own line, after an empty line.
    pub(crate) fn heading(&mut self, heading: &str) {
        self.text.push('\n');
        let heading = self.paint.strong(&filled(heading, self.width, ""));
        self.line(&heading);
    }

    /// Adds a heading and a paragraph on the same line, after an empty line.
    pub(crate) fn section(&mut self, heading: &str, text: &str) {
        self.text.push('\n');
        self.fact(heading, text);
    }

    /// Adds a heading and a paragraph on the same line, for each of `texts`.
    pub(crate) fn facts(&mut self, heading: &str, texts: &[String]) {
        texts.iter().for_each(|text| self.fact(heading, text));
    }

    /// Adds a heading and a paragraph on the same line.
    pub(crate) fn fact(&mut self, heading: &str, text: &str) {
        let whole = filled(&format!("{heading}: {text}"), self.width, "");
        let painted = self.paint.strong(&format!("{heading}:"));
        let rest = whole.strip_prefix(&format!("{heading}:")).unwrap_or(&whole);
        let _ = writeln!(self.text, "{painted}{rest}");
    }

    /// Adds a heading and a list of entries; nothing if there are no entries.
    pub(crate) fn list<T: Entry>(&mut self, heading: &str, entries: Vec<T>) {
        if entries.is_empty() {
            return;
        }
        self.heading(heading);
        for entry in &entries {
            let Some((head, under)) = entry.lines().split_first() else {
                continue;
            };
            self.line(&indented(head, self.width, "  ", "      "));
            for line in under {
                self.line(&indented(line, self.width, "      ", "      "));
            }
        }
    }

    /// Adds a command to copy. A shell reads its lines as one command.
    pub(crate) fn command(&mut self, heading: &str, words: &[String]) {
        self.heading(heading);
        let mut line = String::new();
        for word in words {
            let used = line.width();
            if used > 0 && used + word.width() + 3 > self.width {
                self.line(&format!("{line} \\"));
                line = format!("    {word}");
            } else {
                line = format!("{line}{}{word}", if used > 0 { " " } else { "  " });
            }
        }
        self.line(&line);
    }
}

/// Wraps `text` in lines of at most `width` characters. All lines except the first begin with
/// `indent`.
pub(crate) fn filled(text: &str, width: usize, indent: &str) -> String {
    indented(text, width, "", indent)
}

/// Wraps `text` in lines of at most `width` characters. The first line begins with `first`, the
/// others with `later`.
fn indented(text: &str, width: usize, first: &str, later: &str) -> String {
    // Names such as mimalloc3-secure must not be broken at hyphens.
    let options =
        textwrap::Options::new(width).word_splitter(textwrap::WordSplitter::NoHyphenation);
    textwrap::fill(text, options.initial_indent(first).subsequent_indent(later))
}
