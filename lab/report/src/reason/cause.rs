//! The cause of a gain: the first figure that accounts for enough of it.

use heapdrome_schema::{CPU, EntrantResult, RaceResult};

use super::Cause;
use crate::entrant::{median, overhead, versus};

/// Minimum share of a gain that a cause must account for to be named. It is below 1, because a busy
/// machine slows the whole program, but not the separately measured cost of a page fault.
const ENOUGH: f64 = 1.0 / 3.0;

/// Minimum share of a gain from which a sentence mentions the time in allocator calls, although
/// this time is not the cause.
const LITTLE: f64 = 0.05;

/// Minimum ratio of two figures whose difference counts as a cause, and not as chance.
const CLEARLY: f64 = 1.5;

/// Number of page faults or system calls that starting a program alone may cause.
const FEW: f64 = 100.0;

/// Minimum share of huge pages in the anonymous memory for which a sentence mentions huge pages.
const MOSTLY_HUGE: f64 = 0.25;

/// Returns the baseline's figure minus the entrant's. The baseline is the second of `rows`.
fn more(of: impl Fn(&EntrantResult) -> Option<f64>, rows: [&EntrantResult; 2]) -> Option<f64> {
    Some(of(rows[1])? - of(rows[0])?)
}

/// Returns the cause of a gain in time. Page faults are checked first, because they also occur
/// within calls of the allocator and of the system. Returns `None` if no figure accounts for enough
/// of the gain.
pub(super) fn of_time(
    result: &RaceResult,
    row: &EntrantResult,
    baseline: &EntrantResult,
) -> Option<Cause> {
    let rows = [row, baseline];
    let saved = saved(rows)?;
    let in_kernel = more(|row| median(row.system_s.as_ref()), rows).unwrap_or(0.0);
    let kernel_share = in_kernel / saved;
    page_faults(result, rows, saved, in_kernel)
        .or_else(|| system_calls(rows, kernel_share))
        .or_else(|| call_time(rows, saved))
}

fn page_faults(
    result: &RaceResult,
    rows: [&EntrantResult; 2],
    saved: f64,
    in_kernel: f64,
) -> Option<Cause> {
    let faults = |row: &EntrantResult| median(row.minor_faults.as_ref());
    let fewer = more(faults, rows).filter(|fewer| *fewer > FEW)?;
    // Page faults take time only in the kernel, so fewer faults cannot save more than the saved
    // time in the kernel.
    let time = (fewer * result.machine.fault_s?).min(in_kernel);
    let times = faults(rows[1])? / faults(rows[0])?.max(1.0);
    let share = (time / saved).min(1.0);
    (times >= CLEARLY && share >= ENOUGH).then(|| Cause::PageFaults {
        times,
        huge_pages: is_huge(rows[0]) && !is_huge(rows[1]),
        share,
    })
}

/// Returns whether much of the memory was seen in huge pages.
fn is_huge(row: &EntrantResult) -> bool {
    let reading = |huge: f64, all: f64| huge >= MOSTLY_HUGE * all && huge > 0.0;
    let parts = row.memory_parts.iter();
    let mut parts = parts.map(|parts| (parts.huge.as_f64(), parts.anonymous.as_f64()));
    let at_end = row
        .evidence
        .as_ref()
        .map(|seen| seen.huge_at_end_bytes as f64);
    let peak = median(row.peak_tree_bytes.as_ref()).unwrap_or(f64::INFINITY);
    parts.any(|(huge, all)| reading(huge, all)) || at_end.is_some_and(|huge| reading(huge, peak))
}

fn system_calls(rows: [&EntrantResult; 2], share: f64) -> Option<Cause> {
    let calls = |row: &EntrantResult| Some(row.evidence.as_ref()?.system_calls?.total());
    let (calls, baseline) = (calls(rows[0])?, calls(rows[1])?);
    let fewer = baseline as f64 - calls as f64;
    let clear = fewer > FEW && baseline as f64 >= CLEARLY * calls as f64;
    (clear && share >= ENOUGH).then_some(Cause::SystemCalls {
        calls,
        baseline,
        share: share.min(1.0),
    })
}

/// Returns the estimated seconds in allocator calls.
fn in_calls(row: &EntrantResult) -> Option<f64> {
    Some(row.evidence.as_ref()?.call_time?.spent_s)
}

/// Returns the sum of the medians of user and system time.
fn processor(row: &EntrantResult) -> Option<f64> {
    Some(median(row.user_s.as_ref())? + median(row.system_s.as_ref())?)
}

/// Returns the seconds of processor time that an entrant saves; `None` if it saves none, for
/// example if it only waits less.
///
/// Uses the ratio within rounds, as the table does, if it is known, because medians over all rounds
/// follow drifts of the machine's speed.
fn saved(rows: [&EntrantResult; 2]) -> Option<f64> {
    let saved = match versus(rows[0], CPU) {
        Some(compared) => (1.0 - compared.ratio) * processor(rows[1])?,
        None => more(processor, rows)?,
    };
    (saved > 0.0).then_some(saved)
}

/// Returns the share of the saved processor time that allocator calls explain. Returns `None` if
/// the share is unknown, negligible, or large enough to be the cause.
pub(super) fn calls_share(rows: [&EntrantResult; 2]) -> Option<f64> {
    let share = more(in_calls, rows)? / saved(rows)?;
    (LITTLE..ENOUGH).contains(&share).then_some(share)
}

fn call_time(rows: [&EntrantResult; 2], saved: f64) -> Option<Cause> {
    let (seconds, baseline) = (in_calls(rows[0])?, in_calls(rows[1])?);
    let share = (baseline - seconds) / saved;
    (share >= ENOUGH).then_some(Cause::CallTime {
        seconds,
        baseline,
        share,
    })
}

/// Returns the cause of less memory; `None` if the overhead is unknown or not lower.
pub(super) fn of_memory(row: &EntrantResult, baseline: &EntrantResult) -> Option<Cause> {
    let (ratio, known) = (overhead(row)?, overhead(baseline)?);
    (ratio < known).then_some(Cause::Fragmentation {
        ratio,
        baseline: known,
    })
}
