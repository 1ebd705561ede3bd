//! Figures of one entrant that several tables and texts show, and keys of figures.

use heapdrome_schema::{Comparison, EntrantResult, Series};

use crate::foreign;

/// Amount of live memory below which the fixed memory of a process dominates its overhead.
const LEAST: u64 = 1 << 20;

/// Key of the peak memory of the process tree in a result.
pub(crate) const PEAK_TREE: &str = "peak_tree_bytes";
/// Name of a workload's figure for operations per CPU second.
pub(crate) const OPERATIONS: &str = "operations_per_cpu_s";
/// Name of a workload's figure for the ratio of peak resident to peak requested memory.
pub(crate) const OVERHEAD: &str = "overhead";

/// Returns an entrant's comparison with the baseline on `metric`.
pub(crate) fn versus<'a>(entrant: &'a EntrantResult, metric: &str) -> Option<&'a Comparison> {
    entrant.versus_baseline.get(metric)
}

/// Returns the median, if it is finite.
pub(crate) fn median(series: Option<&Series>) -> Option<f64> {
    let median = series?.median;
    median.is_finite().then_some(median)
}

/// Returns the sum of user and system time: the sum of their medians, and the sums of their samples
/// by round. `None` if either is missing. A sum counts as an outlier if one of its parts is an
/// outlier and the sum lies outside the range of the sums without outliers.
pub(crate) fn cpu(entrant: &EntrantResult) -> Option<Series> {
    let user = entrant.user_s.as_ref()?;
    let system = entrant.system_s.as_ref()?;
    let pairs = user.samples.iter().zip(&system.samples);
    let samples: Vec<f64> = pairs.map(|(user, system)| user + system).collect();
    let is_odd = |place: usize| user.outliers.contains(&place) || system.outliers.contains(&place);
    let rest = (0..samples.len()).filter(|place| !is_odd(*place));
    let (low, high) = rest.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), place| {
        (low.min(samples[place]), high.max(samples[place]))
    });
    let far = |place: &usize| is_odd(*place) && !(low..=high).contains(&samples[*place]);
    Some(Series {
        median: user.median + system.median,
        outliers: (0..samples.len()).filter(far).collect(),
        samples,
        method: None,
    })
}

/// Formats an entrant's own environment variables, such as `A=1 B=2`.
pub(crate) fn settings(entrant: &EntrantResult) -> String {
    let pairs = entrant
        .settings
        .iter()
        .map(|(key, value)| format!("{key}={value}"));
    foreign::line(&pairs.collect::<Vec<_>>().join(" "))
}

/// Returns the ratio of the tree's peak of anonymous memory to the program's peak of requested
/// bytes. Returns `None` if a peak is unknown, several processes share the work, or the program
/// requested little.
pub(crate) fn overhead(row: &EntrantResult) -> Option<f64> {
    let seen = row.evidence.as_ref()?;
    let peak = row.peak_tree_bytes.as_ref()?.median;
    let comparable = seen.is_of_one_process() && seen.peak_live_bytes >= LEAST && peak.is_finite();
    comparable.then(|| peak / seen.peak_live_bytes as f64)
}
