//! Data that the tables and texts of a race share: the ranking, the numbered notes, and the
//! entrants that have no valid row. [`why_out`] explains why an entrant has none.

use heapdrome_schema::{EntrantResult, RaceResult, Role, Status, WALL};

use crate::entrant::{OPERATIONS, OVERHEAD, median, versus};
use crate::foreign;
use crate::notes::{self, Note, Notes};

/// An entrant with a valid row, with the numbers of its notes.
pub(crate) struct Row<'a> {
    pub(crate) entrant: &'a EntrantResult,
    pub(crate) marks: Vec<usize>,
}

/// A race with its entrants in the order of the ranking, and its notes.
pub(crate) struct Sheet<'a> {
    pub(crate) result: &'a RaceResult,
    /// The baseline and the rivals with valid rows, the fastest first.
    pub(crate) rows: Vec<Row<'a>>,
    /// The entrants without valid rows.
    pub(crate) out: Vec<&'a EntrantResult>,
    /// The notes. The first has number 1.
    pub(crate) notes: Vec<String>,
}

impl<'a> Sheet<'a> {
    /// Sorts the entrants of `result`, and collects the notes on those with valid rows.
    pub(crate) fn new(result: &'a RaceResult) -> Self {
        let counts = |entrant: &&EntrantResult| entrant.status == Status::Ok;
        let (ranked, out): (Vec<_>, Vec<_>) = result.entrants.iter().partition(counts);
        let mut ranked: Vec<_> = ranked
            .into_iter()
            .filter(|e| e.role != Role::Twin)
            .collect();
        let baseline = result.baseline_row();
        let unit = baseline.and_then(|entrant| median(entrant.wall_s.as_ref()));
        ranked.sort_by(|a, b| rank(a, unit).total_cmp(&rank(b, unit)));
        let mut sheet = Self {
            result,
            rows: Vec::new(),
            out,
            notes: Vec::new(),
        };
        let mut notes = Notes::default();
        for entrant in ranked {
            let marks = notes.on(entrant);
            sheet.rows.push(Row { entrant, marks });
        }
        sheet.notes = notes.texts();
        sheet
    }

    /// Returns the rivals with valid rows, the fastest first.
    pub(crate) fn rivals(&self) -> impl Iterator<Item = &'a EntrantResult> + '_ {
        self.rows
            .iter()
            .map(|row| row.entrant)
            .filter(|entrant| entrant.role == Role::Rival)
    }

    /// Returns the baseline's name on one line.
    pub(crate) fn baseline(&self) -> String {
        foreign::name(&self.result.baseline)
    }

    /// Returns whether `metric` is one of the workload's own figures.
    pub(crate) fn is_figure(&self, metric: &str) -> bool {
        let figures = &self.result.options.figures;
        figures.iter().any(|figure| figure == metric)
    }

    /// Returns the names of the workload's figures that are not in the main table, in the
    /// workload's order.
    pub(crate) fn figures(&self) -> Vec<String> {
        let figures = self.result.options.figures.iter();
        let others = figures.filter(|name| ![OPERATIONS, OVERHEAD].contains(&name.as_str()));
        others.cloned().collect()
    }

    /// Returns whether the race supports a claim on the figure of this name. Only the race of a
    /// replay may lack support for a claim.
    pub(crate) fn supports(&self, figure: &str) -> bool {
        let replay = self.result.options.replay.as_ref();
        replay.is_none_or(|replay| replay.supports(figure))
    }

    /// Returns the names of the metrics that the command printed, in alphabetical order. Figures of
    /// a workload are omitted.
    pub(crate) fn metrics(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .rows
            .iter()
            .flat_map(|row| row.entrant.metrics.keys().cloned())
            .filter(|name| !self.is_figure(name))
            .collect();
        names.sort();
        names.dedup();
        names
    }
}

/// Returns the wall time relative to the baseline's, whose median is `unit`; infinite if the ratio
/// is unknown.
fn rank(entrant: &EntrantResult, unit: Option<f64>) -> f64 {
    if entrant.role == Role::Baseline {
        return 1.0;
    }
    let compared = versus(entrant, WALL).map(|compared| compared.ratio);
    let plain = || Some(median(entrant.wall_s.as_ref())? / unit?);
    let ratio = compared.filter(|ratio| ratio.is_finite()).or_else(plain);
    ratio
        .filter(|ratio| ratio.is_finite())
        .unwrap_or(f64::INFINITY)
}

/// Returns the reason why an entrant has no valid row: a headline and details.
pub(crate) fn why_out(entrant: &EntrantResult) -> (String, Vec<String>) {
    let mut headline = match entrant.status {
        Status::Ok => "counts",
        Status::Failed => "failed",
        Status::NotServed => "its allocator did not serve the command",
        Status::Timeout => "ran out of time",
    }
    .to_owned();
    let mut details = Vec::new();
    if let Some(failure) = &entrant.failure {
        headline = format!(
            "{headline}: {} in {}",
            failure.ending,
            foreign::line(&failure.during)
        );
        let tail = foreign::lines(&failure.stderr_tail);
        details.extend(tail.iter().skip(tail.len().saturating_sub(5)).cloned());
    }
    if let (Status::NotServed, Some(proof)) = (entrant.status, &entrant.proof) {
        if let Some(by) = &proof.served_by {
            headline = format!("{headline}; served by {}", foreign::line(by));
        }
        details.extend(notes::on_proof(proof).iter().map(Note::text));
    }
    (headline, details)
}
