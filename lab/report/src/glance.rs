//! The narrow table of the default output: wall time, processor time and memory, each with its
//! ratio to the baseline.

use heapdrome_schema::{Bytes, Comparison, EntrantResult, Nanoseconds, Role, Verdict};

use crate::conclusion::Figure;
use crate::foreign;
use crate::paint::Tone;
use crate::sheet::Sheet;
use crate::table::{Cell, Column};
use crate::words::{self, NONE};

/// Mark after the name of the recommended entrant.
const RECOMMENDED: char = '*';

/// Mark before a ratio that shows no difference, or is unknown.
const NO_CLEAR_DIFFERENCE: char = '~';

/// Mark after a ratio if the replay was shown to differ from its program in this figure.
const MISSED: char = '!';

/// Text in place of a ratio if the speed of the replay supports no claim on the figure.
const NOT_JUDGED: &str = " not judged";

/// Selection of the table's parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Maximum width of names, in characters.
    name: usize,
    /// Whether every row shows the values of wall time and memory. The baseline's row always does.
    values: bool,
    /// Whether every row also shows the value of processor time.
    processor: bool,
    /// Whether each ratio has its interval.
    intervals: bool,
}

impl Shape {
    /// Returns the shapes from the full table to a minimal one, in the order in which they are
    /// tried.
    pub(crate) fn shrinking() -> [Self; 5] {
        let whole = Self {
            name: 24,
            values: true,
            processor: true,
            intervals: true,
        };
        let without = Self {
            processor: false,
            ..whole
        };
        let named = Self {
            name: 18,
            ..without
        };
        let ratios = Self {
            values: false,
            ..named
        };
        let least = Self {
            name: 10,
            intervals: false,
            ..ratios
        };
        [whole, without, named, ratios, least]
    }

    fn has_values(self, figure: Figure) -> bool {
        match figure {
            Figure::Processor => self.values && self.processor,
            _ => self.values,
        }
    }
}

/// Returns the columns of the table: the names, and a column for each of [`Figure::COMMON`] that
/// any entrant has. The recommended entrant, if there is one, is marked.
pub(crate) fn table(
    sheet: &Sheet<'_>,
    recommended: Option<&EntrantResult>,
    shape: Shape,
) -> Vec<Column> {
    let names = sheet.rows.iter().map(|row| {
        let name = foreign::short_name(&row.entrant.allocator, shape.name);
        match recommended.is_some_and(|one| std::ptr::eq(one, row.entrant)) {
            true => format!("{name} {RECOMMENDED}"),
            false => name,
        }
    });
    let names = Column::text("\nallocator", names.collect());
    let figures = Figure::COMMON.iter();
    let figures = figures.filter_map(|figure| column(sheet, *figure, shape));
    std::iter::once(names).chain(figures).collect()
}

/// Explains the ratios of the table, and its marks.
pub(crate) fn legend(
    sheet: &Sheet<'_>,
    recommended: Option<&EntrantResult>,
    shape: Shape,
) -> String {
    let baseline = sheet.baseline();
    let interval = match shape.intervals {
        true => format!(", {}", words::interval_of(sheet.result.alpha)),
        false => String::new(),
    };
    let mut legend = format!("ratio to {baseline} (below 1 is better){interval}");
    let mut explain = |mark: char, meaning: &str| legend.push_str(&format!("; {mark} {meaning}"));
    explain(NO_CLEAR_DIFFERENCE, "unclear");
    let mut rows = sheet.rivals();
    let common = Figure::COMMON.iter();
    if rows.any(|row| common.clone().any(|figure| is_missed(sheet, row, *figure))) {
        explain(MISSED, "the replay misses its program here");
    }
    if recommended.is_some() {
        explain(RECOMMENDED, "recommended");
    }
    legend
}

/// Returns whether a figure of the entrant has the mark for a replay that differs from its program.
fn is_missed(sheet: &Sheet<'_>, entrant: &EntrantResult, figure: Figure) -> bool {
    let compared = figure.versus(sheet, entrant);
    compared.is_some_and(|it| it.verdict != Verdict::NotJudged && !it.misses.is_empty())
}

/// Returns the column of one figure: its value, its ratio, and the interval; `None` if no entrant
/// has the figure.
///
/// The baseline's value is its median. A rival's value is its ratio times that median, or its own
/// median if it was not compared. Medians over all runs would follow drifts of the machine and may
/// cover different rounds; ratios within rounds avoid both.
fn column(sheet: &Sheet<'_>, figure: Figure, shape: Shape) -> Option<Column> {
    let unit = Unit::of(sheet, figure)?;
    let median = |entrant| Some(figure.series(sheet, entrant)?.median);
    let rows = || sheet.rows.iter().map(|row| row.entrant);
    let baseline = rows().find(|entrant| entrant.role == Role::Baseline);
    let baseline = baseline.and_then(median);
    let cells = sheet.rows.iter().map(|row| {
        let compared = figure.versus(sheet, row.entrant);
        let by_ratio = compared
            .zip(baseline)
            .map(|(it, baseline)| it.ratio * baseline);
        let value = unit.told(by_ratio.or_else(|| median(row.entrant)));
        let (value, ratio) = match (row.entrant.role, compared) {
            (Role::Baseline, _) if shape.has_values(figure) => (value, " 1.00".to_owned()),
            (Role::Baseline, _) => (String::new(), format!(" {value} {}", unit.name)),
            (_, Some(compared)) => (value, ratio(compared, shape)),
            (_, None) => (value, format!(" {NONE}")),
        };
        (value, ratio, compared.map(|it| Tone::of(it.verdict)))
    });
    let cells: Vec<_> = cells.collect();
    let width = cells.iter().map(|(value, ..)| value.len()).max()?;
    let joined = cells.into_iter().map(|(value, ratio, tone)| {
        let text = match shape.has_values(figure) {
            true => format!("{value:>width$} {ratio}"),
            false => ratio,
        };
        Cell { text, tone }
    });
    let name = match figure {
        Figure::Memory if !shape.intervals => "peak".to_owned(),
        figure => figure.name(sheet),
    };
    // The second line of the head names the parts of the cells below it.
    let value = match shape.has_values(figure) {
        true => format!("{:>width$} ", unit.name),
        false => String::new(),
    };
    let interval = if shape.intervals { " interval" } else { "" };
    let head = format!("{name}\n{value} ratio{interval}");
    Some(Column::text(head, joined.collect()))
}

/// Formats a ratio for a cell, such as `~1.06 0.97-1.16`.
fn ratio(compared: &Comparison, shape: Shape) -> String {
    let ends = [compared.ratio, compared.low, compared.high];
    let mark = match compared.verdict {
        Verdict::NotJudged => return NOT_JUDGED.to_owned(),
        Verdict::Undecided => NO_CLEAR_DIFFERENCE,
        _ => ' ',
    };
    let missed = match compared.misses.is_empty() {
        true => String::new(),
        false => MISSED.to_string(),
    };
    if !ends.iter().all(|end| end.is_finite() && *end > 0.0) {
        return format!("{NO_CLEAR_DIFFERENCE}{NONE}");
    }
    let reads_as_none = |end: f64| words::two_decimals(end) == "1.00";
    let fine = compared.verdict != Verdict::Undecided && ends.into_iter().any(reads_as_none);
    let [ratio, low, high] = ends.map(|end| match fine {
        true => format!("{end:.3}"),
        false => words::two_decimals(end),
    });
    match shape.intervals {
        true => format!("{mark}{ratio}{missed} {low}-{high}"),
        false => format!("{mark}{ratio}{missed}"),
    }
}

/// Unit of a column, and its size in seconds or bytes.
struct Unit {
    name: &'static str,
    size: f64,
}

impl Unit {
    /// Returns the unit that suits the baseline's median, or else the first known median; `None` if
    /// no median is known.
    fn of(sheet: &Sheet<'_>, figure: Figure) -> Option<Self> {
        let median = |entrant: &EntrantResult| {
            let median = figure.series(sheet, entrant)?.median;
            (median.is_finite() && median > 0.0).then_some(median)
        };
        let rows = || sheet.rows.iter().map(|row| row.entrant);
        let baseline = rows().find(|entrant| entrant.role == Role::Baseline);
        let known = baseline
            .and_then(median)
            .or_else(|| rows().find_map(median))?;
        let units = match figure {
            Figure::Memory => Bytes::UNITS,
            // Times are in seconds.
            _ => Nanoseconds::UNITS.map(|(size, name)| (size / 1e9, name)),
        };
        let fits = units.iter().find(|(size, _)| known >= *size);
        let (size, name) = *fits.or(units.last())?;
        Some(Self { name, size })
    }

    fn told(&self, value: Option<f64>) -> String {
        let value = value.map(|value| value / self.size);
        let value = value.filter(|value| value.is_finite());
        value.map_or_else(|| NONE.to_owned(), words::three_digits)
    }
}
