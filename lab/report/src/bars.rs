//! Drawing of the confidence intervals of relative wall time as bars. If there is space, each bar
//! is followed by its ratio.

use heapdrome_schema::{Comparison, Role, Verdict, WALL};
use unicode_width::UnicodeWidthStr;

use crate::entrant::versus;
use crate::foreign;
use crate::paint::Paint;
use crate::plot::{Scale, ratio_range, ratio_text};
use crate::sheet::Sheet;
use crate::words;

/// Number of characters between the parts of a line.
const GAP: usize = 2;
/// Minimum width of a readable drawing, in characters.
const LEAST: usize = 16;
/// Minimum distance between two ticks of the scale, in characters.
const APART: f64 = 8.0;

/// Returns the drawing's lines, the scale first. No line is wider than `width` characters. Returns
/// no lines if there is nothing to draw or too little space.
pub(crate) fn lines(sheet: &Sheet<'_>, width: usize, paint: Paint) -> Vec<String> {
    let rows: Vec<_> = rows(sheet);
    let known = rows.iter().filter_map(|row| row.compared);
    let intervals: Vec<[f64; 3]> = known.filter_map(parts).collect();
    let Some(shape) = Shape::fitting(sheet, &rows, width).filter(|_| !intervals.is_empty()) else {
        return Vec::new();
    };
    let paper = [0.0, (shape.drawing - 1) as f64];
    let scale = Scale::logarithmic(ratio_range(&intervals, 1.0), paper);
    let mut lines = vec![paint.faint(&shape.axis(&scale))];
    lines.extend(rows.iter().map(|row| shape.row(row, &scale, paint)));
    lines
}

/// An entrant with its comparison; the baseline is compared with itself.
struct Row<'a> {
    name: &'a str,
    role: Role,
    compared: Option<&'a Comparison>,
}

fn rows<'a>(sheet: &Sheet<'a>) -> Vec<Row<'a>> {
    let itself = sheet.result.noise_floor.as_ref();
    let row = |row: &crate::sheet::Row<'a>| Row {
        name: &row.entrant.allocator,
        role: row.entrant.role,
        compared: match row.entrant.role {
            Role::Baseline => itself.map(|noise| &noise.baseline_again),
            _ => versus(row.entrant, WALL),
        },
    };
    sheet.rows.iter().map(row).collect()
}

/// Returns the estimate and the ends of the interval; `None` unless all three are finite and
/// positive, which a logarithmic scale requires.
fn parts(compared: &Comparison) -> Option<[f64; 3]> {
    let parts = [compared.ratio, compared.low, compared.high];
    let drawn = |part: &f64| part.is_finite() && *part > 0.0;
    parts.iter().all(drawn).then_some(parts)
}

/// Widths of a line's name and drawing in characters, and whether figures follow.
struct Shape {
    name: usize,
    drawing: usize,
    figures: bool,
}

impl Shape {
    /// Returns a shape that fits into `width`, or `None` if none does. If necessary, the shape
    /// omits the figures and shortens the names.
    fn fitting(sheet: &Sheet<'_>, rows: &[Row<'_>], width: usize) -> Option<Self> {
        let figures = rows.iter().map(|row| told(row).width()).max().unwrap_or(0);
        let longest = |most: usize| {
            let names = sheet.rows.iter();
            names
                .map(|row| foreign::short_name(&row.entrant.allocator, most).width())
                .max()
                .unwrap_or(0)
        };
        let choices = [(24, true), (14, true), (14, false), (10, false)];
        choices.into_iter().find_map(|(most, with_figures)| {
            let name = longest(most);
            let taken = name + GAP + if with_figures { GAP + figures } else { 0 };
            // A wider drawing would not be clearer.
            let drawing = width.checked_sub(taken)?.min(60);
            (drawing >= LEAST).then_some(Self {
                name,
                drawing,
                figures: with_figures,
            })
        })
    }

    /// Returns the line with the ticks of the scale.
    fn axis(&self, scale: &Scale) -> String {
        let mut cells = vec![' '; self.drawing];
        for tick in scale.ratio_ticks(APART) {
            let text: Vec<char> = ratio_text(tick).chars().collect();
            let middle = place(scale, tick);
            let start = middle.saturating_sub(text.len() / 2);
            let start = start.min(self.drawing.saturating_sub(text.len()));
            for (cell, c) in cells[start..].iter_mut().zip(text) {
                *cell = c;
            }
        }
        let indent = " ".repeat(self.name + GAP);
        format!("{indent}{}", cells.iter().collect::<String>())
            .trim_end()
            .to_owned()
    }

    fn row(&self, row: &Row<'_>, scale: &Scale, paint: Paint) -> String {
        let name = foreign::short_name(row.name, self.name);
        let fill = " ".repeat(self.name - name.width() + GAP);
        let bar = self.bar(row.compared, scale);
        let bar = match (row.role, row.compared.map(|compared| compared.verdict)) {
            (Role::Baseline, _) | (_, None) => bar,
            (_, Some(Verdict::Faster | Verdict::Less)) => paint.good(&bar),
            (_, Some(Verdict::Slower | Verdict::More)) => paint.bad(&bar),
            (_, Some(Verdict::Undecided | Verdict::NotJudged)) => paint.faint(&bar),
        };
        if !self.figures {
            return format!("{name}{fill}{bar}");
        }
        format!("{name}{fill}{bar}{}{}", " ".repeat(GAP), told(row))
    }

    /// Returns the bar of an interval with its estimate, drawn over the line of the baseline.
    fn bar(&self, compared: Option<&Comparison>, scale: &Scale) -> String {
        let mut cells = vec![' '; self.drawing];
        cells[place(scale, 1.0)] = '│';
        if let Some([ratio, low, high]) = compared.and_then(parts) {
            let (from, to) = (place(scale, low), place(scale, high));
            cells[from..=to].fill('─');
            cells[from] = if scale.holds(low) { '├' } else { '◄' };
            cells[to] = if scale.holds(high) { '┤' } else { '►' };
            cells[place(scale, ratio)] = '●';
        }
        cells.into_iter().collect()
    }
}

/// Returns the horizontal position of a ratio, in characters.
fn place(scale: &Scale, ratio: f64) -> usize {
    scale.at(ratio).round() as usize
}

/// Formats the ratio and the interval that follow the bar; a dash if the entrant was not compared.
fn told(row: &Row<'_>) -> String {
    row.compared
        .map_or_else(|| words::NONE.to_owned(), words::plain_ratio)
}
