//! What every table and text says, before it is put into a form: who is ranked, in which order,
//! who is not and why, and the numbered notes.

use heapdrome_record::{
    Comparison, EntrantResult, ProofSummary, RaceResult, Role, Series, Status, Unserved,
    UnservedReason,
};

use crate::foreign;
use crate::plot::Looks;
use crate::words;

/// The key of the wall time among an entrant's comparisons.
pub(crate) const WALL: &str = "wall_s";
/// The key of the largest process's peak.
pub(crate) const PEAK_RSS: &str = "peak_rss_bytes";
/// The key of the tree's peak.
pub(crate) const PEAK_TREE: &str = "peak_tree_bytes";
/// The name of a workload's operations per CPU second.
pub(crate) const OPERATIONS: &str = "operations_per_cpu_s";
/// The name of a workload's peak resident memory relative to what it requested.
pub(crate) const OVERHEAD: &str = "overhead";

/// An entrant that counts, with the numbers of the notes on it.
pub(crate) struct Row<'a> {
    pub(crate) entrant: &'a EntrantResult,
    pub(crate) marks: Vec<usize>,
}

/// A result in reading order.
pub(crate) struct Sheet<'a> {
    pub(crate) result: &'a RaceResult,
    /// The baseline and the rivals that count, the fastest first.
    pub(crate) rows: Vec<Row<'a>>,
    /// Those that do not count.
    pub(crate) out: Vec<&'a EntrantResult>,
    /// The notes; mark 1 is the first.
    pub(crate) notes: Vec<String>,
    /// How the entrants look where they are drawn.
    pub(crate) looks: Looks,
}

impl<'a> Sheet<'a> {
    /// Sorts the entrants of `result` and collects the notes on those that count.
    pub(crate) fn new(result: &'a RaceResult) -> Self {
        let counts = |entrant: &&EntrantResult| entrant.status == Status::Ok;
        let (ranked, out): (Vec<_>, Vec<_>) = result.entrants.iter().partition(counts);
        let mut ranked: Vec<_> = ranked
            .into_iter()
            .filter(|e| e.role != Role::Twin)
            .collect();
        let baseline = result
            .entrants
            .iter()
            .find(|entrant| entrant.role == Role::Baseline);
        let unit = baseline.and_then(|entrant| median(entrant.wall_s.as_ref()));
        ranked.sort_by(|a, b| rank(a, unit).total_cmp(&rank(b, unit)));
        let mut sheet = Self {
            result,
            rows: Vec::new(),
            out,
            notes: Vec::new(),
            looks: Looks::of_race(result),
        };
        for entrant in ranked {
            let marks = notes_on(entrant)
                .into_iter()
                .map(|note| sheet.mark(note))
                .collect();
            sheet.rows.push(Row { entrant, marks });
        }
        sheet
    }

    /// The number of `note`, which entrants with the same note share.
    fn mark(&mut self, note: String) -> usize {
        let known = self.notes.iter().position(|old| *old == note);
        known.unwrap_or_else(|| {
            self.notes.push(note);
            self.notes.len() - 1
        }) + 1
    }

    /// The rivals that count, the fastest first.
    pub(crate) fn rivals(&self) -> impl Iterator<Item = &'a EntrantResult> + '_ {
        self.rows
            .iter()
            .map(|row| row.entrant)
            .filter(|entrant| entrant.role == Role::Rival)
    }

    /// The baseline's name on one line.
    pub(crate) fn baseline(&self) -> String {
        foreign::name(&self.result.baseline)
    }

    /// Whether `metric` is a figure of the workload's own.
    pub(crate) fn is_figure(&self, metric: &str) -> bool {
        let figures = &self.result.options.figures;
        figures.iter().any(|figure| figure == metric)
    }

    /// The figures of the workload that the main table has not, in the workload's order.
    pub(crate) fn figures(&self) -> Vec<String> {
        let figures = self.result.options.figures.iter();
        let others = figures.filter(|name| ![OPERATIONS, OVERHEAD].contains(&name.as_str()));
        others.cloned().collect()
    }

    /// The names of the metrics that the command printed, in order; figures of a workload are none.
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

/// Wall time relative to the baseline's; what has none comes last.
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

/// An entrant's comparison with the baseline on `metric`.
pub(crate) fn versus<'a>(entrant: &'a EntrantResult, metric: &str) -> Option<&'a Comparison> {
    entrant.versus_baseline.get(metric)
}

/// The median, where it is a number.
fn median(series: Option<&Series>) -> Option<f64> {
    series
        .map(|series| series.median)
        .filter(|median| median.is_finite())
}

/// What a reader should know about an entrant that counts.
fn notes_on(entrant: &EntrantResult) -> Vec<String> {
    let mut notes = Vec::new();
    if !entrant.settings.is_empty() {
        notes.push(format!("runs with {}", settings(entrant)));
    }
    match &entrant.proof {
        Some(proof) => notes.extend(notes_on_proof(proof)),
        None => notes.push("no proof was taken of which library served malloc".to_owned()),
    }
    if entrant.output == "different" {
        notes.push("its standard output differs from the baseline's: is its result right?".into());
    }
    notes.extend(entrant.wall_s.as_ref().and_then(outliers));
    notes.extend(
        entrant
            .known_faults
            .iter()
            .map(|fault| format!("known fault: {}", foreign::line(fault))),
    );
    if !entrant.detached.is_empty() {
        let mut names: Vec<_> = entrant
            .detached
            .iter()
            .map(|name| foreign::line(name))
            .collect();
        names.sort();
        names.dedup();
        notes.push(format!(
            "outlived the command and was stopped: {}",
            names.join(", ")
        ));
    }
    notes
}

/// What a proof leaves to say.
fn notes_on_proof(proof: &ProofSummary) -> Vec<String> {
    let mut notes: Vec<String> = proof.unserved.iter().map(unserved).collect();
    notes.extend(proof.warnings.iter().map(|warning| foreign::line(warning)));
    notes.extend(proof.taken_in.iter().map(|cell| {
        format!(
            "the proof, with its calls, is that of {}: the same program, library and environment",
            foreign::line(cell)
        )
    }));
    notes
}

/// One program that the allocator did not serve.
pub(crate) fn unserved(unserved: &Unserved) -> String {
    let served_by = unserved.served_by.as_ref();
    let by = served_by.map_or_else(String::new, |path| {
        format!(", served by {}", foreign::line(path))
    });
    format!(
        "not served: {} ({}, {} of the CPU time{by}): {}; {}",
        foreign::line(&unserved.program),
        words::count(unserved.processes, "process"),
        words::fraction(unserved.cpu_share),
        reason(unserved.reason),
        foreign::line(&unserved.advice),
    )
}

/// Why a program was not served, in words.
fn reason(reason: UnservedReason) -> &'static str {
    match reason {
        UnservedReason::StaticBinary => "a static binary, which loads nothing",
        UnservedReason::RaisedRights => "runs with raised rights, so LD_PRELOAD is ignored",
        UnservedReason::BundledAllocator => "brings its own allocator",
        UnservedReason::ClearedEnvironment => "was started with a cleared environment",
        UnservedReason::DeepBind => "libraries loaded with RTLD_DEEPBIND use their own malloc",
        UnservedReason::OtherMachine => "made for another machine or word size",
        UnservedReason::NotLoaded => "the loader did not load the library",
    }
}

/// Samples that lie far from the rest.
fn outliers(wall: &Series) -> Option<String> {
    let far = wall
        .outliers
        .iter()
        .filter_map(|place| wall.samples.get(*place));
    let worst = far.copied().max_by(f64::total_cmp)?;
    // From ten rounds on the estimate is trimmed, see docs/statistics.md.
    let effect = match wall.samples.len() {
        ..10 => "kept; in so few rounds it widens the interval",
        _ => "kept; the ratios are robust to a few",
    };
    Some(format!(
        "{} of {} wall times far from the rest, up to {} ({effect})",
        wall.outliers.len(),
        wall.samples.len(),
        heapdrome_record::Nanoseconds::from_seconds(worst),
    ))
}

/// The environment of an entrant: `A=1 B=2`.
pub(crate) fn settings(entrant: &EntrantResult) -> String {
    let pairs = entrant
        .settings
        .iter()
        .map(|(key, value)| format!("{key}={value}"));
    foreign::line(&pairs.collect::<Vec<_>>().join(" "))
}

/// Why an entrant does not count: a headline, then details.
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
        details.extend(notes_on_proof(proof));
    }
    (headline, details)
}
