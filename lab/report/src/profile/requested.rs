//! Tables and sentences on the functions that requested the blocks.

use std::collections::BTreeMap;

use heapdrome_profile::{ProcessProfile, Profile, StackUse, Suspect};
use heapdrome_schema::{Bytes, Nanoseconds};

use super::code::{self, Called};
use super::estimates::interval;
use super::shares::share;
use crate::foreign;
use crate::table::Column;
use crate::words::{self, grouped};

/// Maximum number of rows of a table.
const ROWS: usize = 10;

/// Maximum number of functions that a sentence names.
const NAMED: usize = 3;

/// Heading of the column with half the width of the 95% intervals.
const HALF: &str = "95% ±";

/// Quantity that a table of stacks shows.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Of {
    /// Blocks at the peak, ranked by bytes.
    Peak,
    /// Blocks that were freed by their thread's next call, ranked by number.
    Temporary,
    /// Blocks that were not freed, ranked by bytes.
    Left,
}

impl Of {
    pub(crate) const ALL: [Self; 3] = [Self::Peak, Self::Temporary, Self::Left];

    /// Returns the heading of the table.
    pub(crate) fn heading(self) -> &'static str {
        match self {
            Self::Peak => "Stacks with the most bytes at the peak",
            Self::Temporary => "Stacks with the most blocks that the next call frees",
            Self::Left => "Stacks with the most bytes that are not freed",
        }
    }

    /// Returns the figure by which stacks are ranked.
    fn rank(self, of: &StackUse) -> u64 {
        match self {
            Self::Peak => of.at_peak.bytes,
            Self::Temporary => of.temporary.blocks,
            Self::Left => of.left.bytes,
        }
    }
}

/// Returns a table of the stacks with the most of this quantity. Their text has at most `width`
/// characters.
pub(crate) fn stacks(all: &[Called], of: Of, width: usize) -> Vec<Column> {
    let total = all.iter().map(|one| of.rank(&one.of)).sum();
    let all = most(all.iter(), |one| of.rank(&one.of));
    let column = |tell: &dyn Fn(&Called) -> String| all.iter().map(|one| tell(one)).collect();
    let amount = |one: &Called| match of {
        Of::Peak => one.of.at_peak,
        Of::Temporary => one.of.temporary,
        Of::Left => one.of.left,
    };
    vec![
        Column::figures("bytes", column(&|one| Bytes(amount(one).bytes).to_string())),
        Column::figures("blocks", column(&|one| grouped(amount(one).blocks))),
        Column::figures("share", column(&|one| share(of.rank(&one.of), total))),
        Column::text(
            "requested by < called by",
            column(&|one| foreign::shorten(&code::told(one.shown()), width)),
        ),
    ]
}

/// Returns a table of the functions that requested the most bytes at the peak. Their names have at
/// most `width` characters. The columns up to `peak blocks` are those of the peak, and the others
/// those of the whole run.
pub(crate) fn functions(profile: &Profile, all: &[Called], width: usize) -> Vec<Column> {
    let functions = by_function(all);
    let total = functions.iter().map(|(_, of)| of.at_peak.bytes).sum();
    let functions = most(functions.iter(), |(_, of)| of.at_peak.bytes);
    let column = |tell: &dyn Fn(&StackUse) -> String| -> Vec<String> {
        functions.iter().map(|(_, of)| tell(of)).collect()
    };
    let bytes = |bytes: u64| Bytes(bytes).to_string();
    let names = functions
        .iter()
        .map(|(name, _)| foreign::shorten(name, width));
    let mut columns = vec![
        Column::text("requested by", names.collect::<Vec<_>>()),
        Column::figures("peak bytes", column(&|of| bytes(of.at_peak.bytes))),
        Column::figures("share", column(&|of| share(of.at_peak.bytes, total))),
        Column::figures("peak blocks", column(&|of| grouped(of.at_peak.blocks))),
        Column::figures("all bytes", column(&|of| bytes(of.made.bytes))),
    ];
    if functions
        .iter()
        .any(|(_, of)| of.at_peak_variance.bytes > 0.0)
    {
        let half = column(&|of| bytes(of.at_peak_variance.half_width().bytes));
        columns.insert(2, Column::figures(HALF, half));
    }
    if profile.sampling().is_whole() {
        let freed = column(&|of| grouped(of.temporary.blocks));
        columns.push(Column::figures("freed by next call", freed));
    }
    columns.push(Column::figures(
        "not freed",
        column(&|of| bytes(of.left.bytes)),
    ));
    columns
}

/// Returns at most [`ROWS`] elements whose rank is above zero, the highest first.
fn most<'a, T>(all: impl Iterator<Item = &'a T>, rank: impl Fn(&T) -> u64) -> Vec<&'a T> {
    let mut all: Vec<&T> = all.filter(|one| rank(one) > 0).collect();
    all.sort_by_key(|one| std::cmp::Reverse(rank(one)));
    all.truncate(ROWS);
    all
}

/// Returns the blocks by the function that requested them. Functions with the most bytes at the
/// peak come first.
fn by_function(all: &[Called]) -> Vec<(&str, StackUse)> {
    let mut functions = BTreeMap::<&str, StackUse>::new();
    for one in all {
        functions.entry(one.requester()).or_default().add(&one.of);
    }
    let mut functions: Vec<_> = functions.into_iter().collect();
    functions.sort_by_key(|(_, of)| std::cmp::Reverse(of.at_peak.bytes));
    functions
}

/// Returns a sentence such as `45% of the bytes at the peak are requested by parse and 20% by
/// load.` `None` if no function requested more than a hundredth of these bytes.
pub(crate) fn requested_by(all: &[Called]) -> Option<String> {
    let functions = by_function(all);
    let total: u64 = functions.iter().map(|(_, of)| of.at_peak.bytes).sum();
    // A function with at most a hundredth of the bytes explains nothing, so it is not named.
    let known = functions
        .iter()
        .filter(|(_, of)| of.at_peak.bytes > total / 100);
    let told = known.take(NAMED).enumerate().map(|(place, (name, of))| {
        let share = share(of.at_peak.bytes, total);
        let name = foreign::name(name);
        match place {
            0 => format!("{share} of the bytes at the peak are requested by {name}"),
            _ => format!("{share} by {name}"),
        }
    });
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| format!("{}.", words::listed(&told)))
}

/// Returns the suspected leaks of all processes: stacks whose live bytes only grow, the fastest
/// growing first.
fn suspects(profile: &Profile) -> Vec<Suspect> {
    let processes = profile.processes.iter();
    let mut all: Vec<Suspect> = processes
        .flat_map(|process| process.suspects.iter().copied())
        .collect();
    all.sort_by(|one, other| other.per_second.total_cmp(&one.per_second));
    all
}

fn each_second(bytes: f64) -> String {
    Bytes(bytes.max(0.0).round() as u64).to_string()
}

fn ends(suspect: &Suspect) -> String {
    let middle = suspect.per_second.max(0.0).round() as u64;
    let half = (suspect.interval[1] - suspect.per_second).max(0.0).round() as u64;
    interval(middle, half, |bytes| Bytes(bytes).to_string())
}

/// Returns the reason why no stack is suspected of a leak.
fn without_suspects(profile: &Profile) -> String {
    let is_long = |process: &ProcessProfile| {
        let [begin, end] = process.span;
        end.saturating_sub(begin) >= Suspect::SHORTEST
    };
    if !profile.has_stacks() {
        return "Not tested for leaks, because the trace has no stacks; record it with --stacks."
            .to_owned();
    }
    match profile.processes.iter().any(is_long) {
        true => "No leak is suspected: no stack has live bytes that only grow.".to_owned(),
        false => format!(
            "Not tested for leaks, because no process ran for {} or longer.",
            Nanoseconds(Suspect::SHORTEST)
        ),
    }
}

/// Returns a sentence on the stacks whose live bytes only grow, or on why there are none; `None` if
/// there were no calls.
pub(crate) fn growth(profile: &Profile) -> Option<String> {
    if profile.all.counts.calls() == 0 {
        return None;
    }
    let all = suspects(profile);
    let Some(first) = all.first() else {
        return Some(without_suspects(profile));
    };
    let names = code::names(profile, Some(first.stack));
    let called = Called {
        names,
        of: StackUse::default(),
    };
    let others = match all.len() {
        1 => String::new(),
        count => format!(
            " {} grow, too.",
            words::count(count as u64 - 1, "other stack")
        ),
    };
    Some(format!(
        "The live bytes that {} requests only grow, by {} a second ({}): a leak, or a cache without a \
         bound.{others}",
        foreign::name(called.requester()),
        each_second(first.per_second),
        ends(first)
    ))
}

/// Returns a table of the stacks whose live bytes only grow. Their text has at most `width`
/// characters.
pub(crate) fn growing(profile: &Profile, width: usize) -> Vec<Column> {
    let mut all = suspects(profile);
    all.truncate(ROWS);
    let column = |tell: &dyn Fn(&Suspect) -> String| all.iter().map(tell).collect();
    let stack = |one: &Suspect| {
        let called = Called {
            names: code::names(profile, Some(one.stack)),
            of: StackUse::default(),
        };
        foreign::shorten(&code::told(called.shown()), width)
    };
    vec![
        Column::figures("a second", column(&|one| each_second(one.per_second))),
        Column::figures("95% interval", column(&ends)),
        Column::figures(
            "not freed",
            column(&|one| Bytes(one.left.bytes).to_string()),
        ),
        Column::text("requested by < called by", column(&stack)),
    ]
}
