//! The tables of a profile.

use heapdrome_profile::{Amount, Digits, ProcessProfile, Profile};
use heapdrome_schema::{Bytes, Nanoseconds};

use super::facts::{at_peak, per_second};
use super::names;
use super::shares::share;
use crate::evidence::bar;
use crate::table::Column;
use crate::words::{self, NONE, grouped};

/// Number of steps with which a histogram shows its full resolution.
pub(crate) const ALL: usize = usize::MAX;

/// Maximum number of processes that a table names.
const PROCESSES: usize = 10;

/// Returns blocks by size, in at most `count` steps.
pub(crate) fn sizes(profile: &Profile, count: usize) -> Vec<Column> {
    let sizes = profile.all.counts.sizes.widened(count);
    let mut columns = steps("block size below", &sizes, |below| Bytes(below).to_string());
    let held = profile.largest().map(at_peak).unwrap_or_default();
    let mut before = 0;
    let held = sizes.steps().map(|(below, _)| {
        let step = std::mem::replace(&mut before, below) + 1..=below;
        let within = held.iter().filter(|(known, _)| step.contains(known));
        within.map(|(_, amount)| amount.bytes).sum()
    });
    let cells = held.map(|bytes| Bytes(bytes).to_string()).collect();
    columns.insert(4, Column::figures("peak bytes", cells));
    columns
}

/// Returns freed blocks by their lifetime, in at most `count` steps.
pub(crate) fn lifetimes(profile: &Profile, count: usize) -> Vec<Column> {
    let lived = profile.all.counts.lived_time.widened(count);
    steps("lived less than", &lived, |below| {
        Nanoseconds(below).to_string()
    })
}

/// Returns a row with a bar for each step of a histogram.
fn steps(head: &str, digits: &Digits, tell: impl Fn(u64) -> String) -> Vec<Column> {
    let most = digits
        .steps()
        .map(|(_, amount)| amount.blocks)
        .max()
        .unwrap_or(0);
    let all = digits.total().blocks;
    let column = |tell: &dyn Fn(u64, Amount) -> String| -> Vec<String> {
        digits
            .steps()
            .map(|(below, amount)| tell(below, amount))
            .collect()
    };
    vec![
        Column::figures(head, column(&|below, _| tell(below))),
        Column::figures("blocks", column(&|_, amount| grouped(amount.blocks))),
        Column::figures("share", column(&|_, amount| share(amount.blocks, all))),
        Column::figures(
            "bytes",
            column(&|_, amount| Bytes(amount.bytes).to_string()),
        ),
        Column::text("", column(&|_, amount| bar(amount.blocks, most))),
    ]
}

/// Returns the heading of the table of [`functions`].
pub(crate) fn calls_heading(profile: &Profile) -> &'static str {
    match profile.sampling().is_whole() {
        true => "Calls by function",
        false => "Calls that returned a block, by function",
    }
}

/// Returns calls by function, the most frequent first.
pub(crate) fn functions(profile: &Profile) -> Vec<Column> {
    let counts = &profile.all.counts;
    let all = counts.calls();
    let mut functions: Vec<_> = counts.functions.iter().enumerate().collect();
    functions.retain(|(_, function)| function.calls > 0);
    functions.sort_by_key(|(_, function)| std::cmp::Reverse(function.calls));
    let column = |tell: &dyn Fn(usize, u64, u64) -> String| -> Vec<String> {
        let cells = functions.iter();
        cells
            .map(|(place, one)| tell(*place, one.calls, one.failed))
            .collect()
    };
    let rate = |calls| per_second(profile, calls).unwrap_or_else(|| NONE.to_owned());
    let mut columns = vec![
        Column::text(
            "function",
            column(&|place, _, _| names::function(profile, place as u8)),
        ),
        Column::figures("calls", column(&|_, calls, _| grouped(calls))),
        Column::figures("share", column(&|_, calls, _| share(calls, all))),
        Column::figures("per second", column(&|_, calls, _| rate(calls))),
    ];
    if profile.sampling().is_whole() {
        let failed = column(&|_, _, failed| grouped(failed));
        columns.push(Column::figures("failed", failed));
    }
    columns
}

/// Returns the maximum number of bytes that live blocks would take in the size classes of each
/// allocator, and the shares that rounding up adds to live blocks and to all blocks.
pub(crate) fn size_classes(profile: &Profile) -> Vec<Column> {
    let counts = &profile.all.counts;
    let added = |rounded: u64, requested: u64| match requested {
        0 => NONE.to_owned(),
        _ => words::fraction(rounded as f64 / requested as f64 - 1.0),
    };
    let rounded: Vec<_> = counts.rounded().collect();
    let names = rounded.iter().map(|(name, _)| (*name).to_owned());
    let column = |tell: &dyn Fn(heapdrome_profile::Rounded) -> String| -> Vec<String> {
        rounded.iter().map(|(_, one)| tell(*one)).collect()
    };
    let (most, made) = (counts.most_requested, counts.made.bytes);
    vec![
        Column::text("size classes of", names.collect()),
        Column::figures(
            "live blocks at most",
            column(&|one| Bytes(one.most_live).to_string()),
        ),
        Column::figures("added", column(&|one| added(one.most_live, most))),
        Column::figures("added to all blocks", column(&|one| added(one.made, made))),
    ]
}

/// Returns the processes with the highest peaks, at most [`PROCESSES`].
pub(crate) fn processes(profile: &Profile) -> Vec<Column> {
    let mut processes: Vec<&ProcessProfile> = profile.processes.iter().collect();
    processes.sort_by_key(|process| std::cmp::Reverse(process.peak.live.bytes));
    processes.truncate(PROCESSES);
    let column = |tell: &dyn Fn(&ProcessProfile) -> String| -> Vec<String> {
        processes.iter().map(|process| tell(process)).collect()
    };
    let lived =
        |process: &ProcessProfile| Nanoseconds(process.span[1] - process.span[0]).to_string();
    let resident = |process: &ProcessProfile| {
        let most = process.most_resident;
        most.map_or_else(|| NONE.to_owned(), |bytes| Bytes(bytes).to_string())
    };
    vec![
        Column::text("process", column(&names::process)),
        Column::figures("time", column(&lived)),
        Column::figures("threads", column(&|one| grouped(one.threads))),
        Column::figures("calls", column(&|one| grouped(one.counts.calls()))),
        Column::figures(
            "live, most",
            column(&|one| Bytes(one.peak.live.bytes).to_string()),
        ),
        Column::figures("resident, most", column(&resident)),
        Column::figures(
            "not freed",
            column(&|one| Bytes(one.counts.left.bytes).to_string()),
        ),
    ]
}
/// Returns freed blocks by the bytes that were requested during their lifetime.
pub(crate) fn lifetimes_in_bytes(profile: &Profile) -> Vec<Column> {
    let lived = &profile.all.counts.lived_bytes;
    steps("requested meanwhile, less than", lived, |below| {
        Bytes(below).to_string()
    })
}
