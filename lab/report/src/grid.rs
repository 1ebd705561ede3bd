//! The columns of a race's tables, common to the terminal, Markdown and the page.

use heapdrome_schema::{
    CPU, Comparison, EntrantResult, PEAK_RSS, ProofSummary, Role, Verdict, WALL,
};

use crate::entrant::{OPERATIONS, OVERHEAD, cpu, versus};
use crate::foreign;
use crate::paint::Tone;
use crate::sheet::Sheet;
use crate::table::{Cell, Column};
use crate::words::{self, NONE};

/// Selection of the main table's parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// Maximum width of names, in characters.
    pub(crate) name: usize,
    /// Whether each ratio of wall time has its interval.
    pub(crate) time_interval: bool,
    /// Whether each ratio of memory has its interval.
    pub(crate) memory_interval: bool,
    /// Whether the table shows the number of calls that reached the allocator.
    pub(crate) calls: bool,
    /// Whether the table shows the peak of the whole process tree.
    pub(crate) tree: bool,
    /// Whether the table shows processor time.
    pub(crate) cpu: bool,
    /// Whether the table shows the ratio of processor time.
    pub(crate) cpu_compared: bool,
    /// Whether the table shows the largest process's peak.
    pub(crate) rss: bool,
    /// Whether the table shows the ratio of the largest process's peak.
    pub(crate) rss_compared: bool,
    /// Whether each ratio of a workload's operations per CPU second has its interval.
    pub(crate) operations_interval: bool,
}

impl Extent {
    /// All parts, regardless of their width.
    pub(crate) const WHOLE: Self = Self {
        name: usize::MAX,
        time_interval: true,
        memory_interval: true,
        calls: true,
        tree: true,
        cpu: true,
        cpu_compared: true,
        rss: true,
        rss_compared: true,
        operations_interval: true,
    };

    /// Returns the extents from the full table to a minimal one, in the order in which they are
    /// tried. For a workload, the workload's figures take the space of some parts.
    pub(crate) fn shrinking(of_workload: bool) -> Vec<Self> {
        let steps: &[fn(&mut Self)] = match of_workload {
            true => &[
                |one| one.memory_interval = false,
                |one| one.calls = false,
                |one| one.tree = false,
                |one| one.operations_interval = false,
                |one| one.rss_compared = false,
                |one| (one.cpu, one.name) = (false, 18),
                |one| (one.time_interval, one.name) = (false, 12),
                |one| one.rss = false,
            ],
            false => &[
                |one| one.memory_interval = false,
                |one| one.calls = false,
                |one| one.name = 14,
                |one| (one.tree, one.name) = (false, 24),
                |one| (one.cpu, one.name) = (false, 18),
                |one| (one.time_interval, one.name) = (false, 12),
                |one| one.rss = false,
            ],
        };
        let mut now = Self {
            name: 24,
            cpu_compared: false,
            ..Self::WHOLE
        };
        let mut all = vec![now];
        for step in steps {
            step(&mut now);
            all.push(now);
        }
        // Skip the two widest extents, because a workload's figures need the space of the parts
        // that these extents show.
        all.drain(..if of_workload { 2 } else { 0 });
        all
    }
}

/// Entrants as the rows of a table.
struct Rows<'a>(Vec<&'a EntrantResult>);

impl<'a> Rows<'a> {
    /// Returns the entrants with valid rows, in the order of the ranking.
    fn ranked(sheet: &Sheet<'a>) -> Self {
        Self(sheet.rows.iter().map(|row| row.entrant).collect())
    }

    /// Returns a column with the entrants' names, each at most `width` characters wide.
    fn names(&self, head: &str, width: usize) -> Column {
        self.text(head, |entrant| {
            foreign::short_name(&entrant.allocator, width)
        })
    }

    /// Returns a column with a text for each entrant.
    fn text<C: Into<Cell>>(&self, head: &str, tell: impl Fn(&EntrantResult) -> C) -> Column {
        Column::text(head, self.0.iter().map(|entrant| tell(entrant)).collect())
    }

    /// Returns a column with a figure of each entrant.
    fn figures(&self, head: &str, tell: impl Fn(&EntrantResult) -> String) -> Column {
        Column::figures(head, self.0.iter().map(|entrant| tell(entrant)).collect())
    }

    /// Returns a column with the verdict on `metric` for each entrant.
    fn compared(&self, head: &str, metric: &str, interval: bool) -> Column {
        self.text(head, |entrant| compared_cell(entrant, metric, interval))
    }
}

/// Returns the main table: each entrant with its times, its memory, their ratios to the baseline,
/// its calls and its notes. Omits empty columns, and columns that `extent` excludes.
pub(crate) fn main_table(sheet: &Sheet<'_>, extent: Extent) -> Vec<Column> {
    let rows = Rows::ranked(sheet);
    let versus = format!(
        "versus\n{}",
        foreign::short_name(&sheet.result.baseline, 14)
    );
    let marks = sheet.rows.iter().map(|row| marks(&row.marks)).collect();
    let rss = |entrant: &EntrantResult| words::bytes(entrant.peak_rss_bytes.as_ref());
    let tree = |entrant: &EntrantResult| words::bytes(entrant.peak_tree_bytes.as_ref());
    let wall = |entrant: &EntrantResult| words::seconds(entrant.wall_s.as_ref());
    let of_workload = |name: &'static str| {
        let known = sheet.is_figure(name);
        move |entrant: &EntrantResult| {
            let series = entrant.metrics.get(name).filter(|_| known);
            words::number(series)
        }
    };
    let (operations, overhead) = (of_workload(OPERATIONS), of_workload(OVERHEAD));
    let columns = [
        (true, rows.figures("wall\n(median)", wall)),
        (true, rows.compared(&versus, WALL, extent.time_interval)),
        (true, rows.figures("ops per\nCPU s", operations)),
        (
            sheet.is_figure(OPERATIONS),
            rows.compared(&versus, OPERATIONS, extent.operations_interval),
        ),
        (true, rows.figures("over-\nhead", overhead)),
        (
            extent.cpu,
            rows.figures("\nCPU", |e| words::seconds(cpu(e).as_ref())),
        ),
        (extent.cpu_compared, rows.compared(&versus, CPU, true)),
        (extent.rss, rows.figures("peak\nRSS", rss)),
        (
            extent.rss && extent.rss_compared,
            rows.compared(&versus, PEAK_RSS, extent.memory_interval),
        ),
        (extent.tree, rows.figures("tree\npeak", tree)),
        (extent.calls, rows.figures("\ncalls", calls)),
        (true, Column::text("\nnote", marks)),
    ];
    let shown = columns
        .into_iter()
        .filter(|(wanted, column)| *wanted && column.says_anything());
    let names = rows.names("\nallocator", extent.name);
    std::iter::once(names)
        .chain(shown.map(|(_, column)| column))
        .collect()
}

/// Formats an entrant's verdict on a metric. The cell of the baseline contains the word `baseline`
/// if `metric` is wall time or a metric that the baseline has.
fn compared_cell(entrant: &EntrantResult, metric: &str, interval: bool) -> Cell {
    match (entrant.role, versus(entrant, metric)) {
        (Role::Baseline, _) if metric == WALL || entrant.metrics.contains_key(metric) => {
            "baseline".to_owned().into()
        }
        (_, Some(compared)) => Cell {
            text: verdict(compared, interval),
            tone: Some(match metric {
                OPERATIONS => Tone::of_more(compared.verdict),
                _ => Tone::of(compared.verdict),
            }),
        },
        _ => NONE.to_owned().into(),
    }
}

/// Formats a verdict in words. Without the interval, shortens the words for no difference.
fn verdict(compared: &Comparison, interval: bool) -> String {
    match (compared.verdict, interval) {
        (Verdict::Undecided, false) if compared.misses.is_empty() => "no difference".to_owned(),
        _ => words::comparison(compared, interval),
    }
}

/// Formats the number of calls that reached the allocator.
fn calls(entrant: &EntrantResult) -> String {
    proved(entrant, |proof| words::short_number(proof.calls as f64))
}

/// Maximum number of notes and ranges of notes that a row lists.
const MOST_MARKS: usize = 3;

/// Formats the numbers of notes, such as `1,3-5`. If there are too many, shows only the first two,
/// and a sign that [`more_marks`] explains.
fn marks(marks: &[usize]) -> String {
    let mut text = in_ranges(marks);
    if text.len() > MOST_MARKS {
        text.truncate(MOST_MARKS - 1);
        text.push("+".to_owned());
    }
    text.join(",")
}

/// Formats numbers in ascending order. Three or more consecutive numbers become a range, such as
/// `3-5`.
fn in_ranges(numbers: &[usize]) -> Vec<String> {
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable();
    let runs = numbers.chunk_by(|one, next| one + 1 == *next);
    let text = runs.flat_map(|run| match run {
        [first, _, .., last] => vec![format!("{first}-{last}")],
        few => few.iter().map(usize::to_string).collect(),
    });
    text.collect()
}

/// Lists the numbers of all notes on each row that shows only some of them, such as `+ jemalloc:
/// notes 1, 3, 5 and 7-9`.
pub(crate) fn more_marks(sheet: &Sheet<'_>) -> Vec<String> {
    let rows = sheet.rows.iter().map(|row| (row, in_ranges(&row.marks)));
    let rows = rows.filter(|(_, marks)| marks.len() > MOST_MARKS);
    let told = rows.map(|(row, marks)| {
        let name = foreign::name(&row.entrant.allocator);
        format!("+ {name}: notes {}", words::listed(&marks))
    });
    told.collect()
}

/// Returns the table of proofs: for each entrant except the twin, its version, the object that
/// served malloc, the number of calls, and the number of processes.
pub(crate) fn proof_table(sheet: &Sheet<'_>, name: usize, whole_paths: bool) -> Vec<Column> {
    let rows = Rows(
        sheet
            .result
            .entrants
            .iter()
            .filter(|e| e.role != Role::Twin)
            .collect(),
    );
    let known = |text: String| {
        if text.is_empty() {
            NONE.to_owned()
        } else {
            text
        }
    };
    let version = |entrant: &EntrantResult| {
        let width = if whole_paths { usize::MAX } else { 14 };
        known(foreign::shorten(&foreign::line(&entrant.version), width))
    };
    let served_by = |entrant: &EntrantResult| {
        let path = entrant
            .proof
            .as_ref()
            .and_then(|proof| proof.served_by.as_deref());
        let path = foreign::line(path.unwrap_or_default());
        let last = foreign::shorten(path.rsplit('/').next().unwrap_or_default(), 36);
        known(if whole_paths { path } else { last })
    };
    vec![
        rows.names("allocator", name),
        rows.text("version", version),
        rows.text("malloc served by", served_by),
        rows.figures("calls", |entrant| {
            proved(entrant, |proof| words::grouped(proof.calls))
        }),
        rows.figures("processes", |entrant| {
            proved(entrant, |proof| {
                let [served, all] = [proof.served_processes, proof.processes].map(words::grouped);
                format!("{served} of {all}")
            })
        }),
    ]
}

/// Formats an entrant's proof with `tell`; a dash if the entrant has no proof.
fn proved(entrant: &EntrantResult, tell: impl Fn(&ProofSummary) -> String) -> String {
    entrant.proof.as_ref().map_or_else(|| NONE.to_owned(), tell)
}

/// Returns the table of a metric that the command printed.
pub(crate) fn metric_table(sheet: &Sheet<'_>, metric: &str, name: usize) -> Vec<Column> {
    let rows = Rows::ranked(sheet);
    let head = format!("versus {}", foreign::short_name(&sheet.result.baseline, 14));
    vec![
        rows.names("allocator", name),
        rows.figures("median", |entrant| {
            words::number(entrant.metrics.get(metric))
        }),
        rows.compared(&head, metric, true),
    ]
}

/// Returns a column of names, and a column of medians for each figure of the workload that is not
/// in the main table.
pub(crate) fn figures(sheet: &Sheet<'_>, name: usize) -> (Column, Vec<Column>) {
    let rows = Rows::ranked(sheet);
    let column = |figure: &String| {
        rows.figures(&figure_head(figure), |entrant| {
            words::figure(figure, entrant.metrics.get(figure))
        })
    };
    let figures = sheet.figures();
    let columns = figures
        .iter()
        .filter(|name| sheet.supports(name))
        .map(column);
    let shown = columns.filter(Column::says_anything).collect();
    (rows.names("\nallocator", name), shown)
}

/// Returns the name of a figure in two lines, without its unit. The values show the unit.
fn figure_head(figure: &str) -> String {
    let bare = ["_bytes", "_ns", "_s"]
        .iter()
        .find_map(|unit| figure.strip_suffix(unit))
        .unwrap_or(figure);
    let words = foreign::line(bare).replace('_', " ");
    let middle = words.len() / 2;
    let breaks = words.match_indices(' ').map(|(place, _)| place);
    match breaks.min_by_key(|place| place.abs_diff(middle)) {
        Some(place) => format!("{}\n{}", &words[..place], &words[place + 1..]),
        None => format!("\n{words}"),
    }
}

/// Returns the heading of a metric's table: the metric's name, and whether lower or higher is
/// better if that is known.
pub(crate) fn metric_heading(sheet: &Sheet<'_>, metric: &str) -> String {
    let known = sheet
        .result
        .options
        .metrics
        .iter()
        .find(|known| known.name == metric);
    let direction = known.map(|known| format!(" ({})", words::direction(known.better)));
    format!("{}{}", foreign::line(metric), direction.unwrap_or_default())
}
