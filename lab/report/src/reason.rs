//! The reason why an entrant is better than the baseline: one sentence, chosen from the
//! measurements.
//!
//! A cause of a gain in time is named only if its own figure accounts for enough of the gain. The
//! share that the cause explains does not limit the gain of other allocators.

mod cause;

use std::fmt;

use heapdrome_schema::{
    CPU, Comparison, EntrantResult, Nanoseconds, PEAK_RSS, RaceResult, Role, Status, Verdict, WALL,
};

use crate::entrant::versus;
use crate::foreign;
use crate::words;

/// Share of a gain above which a sentence states that the cause saves more than the whole gain. The
/// limit exceeds 1, because runs that track every block differ from timed runs.
const OVER: f64 = 1.2;

/// Minimum share of the best gain that a cheaper change must reach to be named. Also the share of a
/// gain below which a sentence states that a cause explains `only` that much.
pub(crate) const HALF: f64 = 0.5;

/// Reason why one entrant is better than the baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct Reason {
    /// Name of the entrant.
    pub allocator: String,
    /// Figure on which the entrant is better.
    pub gain: Gain,
    /// The cause of the gain, or the reason why none is named.
    pub cause: Cause,
    /// A setting of the baseline's allocator that reaches much of the gain without another library.
    pub setting: Option<Setting>,
}

/// Figure on which an entrant is better. The value is the gain as a fraction of the baseline's
/// figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Gain {
    /// Wall time or processor time.
    Time(f64),
    /// Peak memory.
    Memory(f64),
}

/// A cause that accounts for enough of a gain, or the reason why none is named.
#[derive(Clone, Debug, PartialEq)]
pub enum Cause {
    /// Fewer page faults.
    PageFaults {
        /// Ratio of the baseline's page faults to the entrant's.
        times: f64,
        /// Whether much of the entrant's memory is in huge pages, but not much of the baseline's.
        huge_pages: bool,
        /// Share of the saved processor time that page faults explain, from 0 to 1.
        share: f64,
    },
    /// Less time in the kernel, with fewer system calls for memory.
    SystemCalls {
        /// Number of system calls for memory under the entrant.
        calls: u64,
        /// Number of system calls for memory under the baseline.
        baseline: u64,
        /// Share of the saved processor time that is saved in the kernel, from 0 to 1.
        share: f64,
    },
    /// Less time in allocator calls.
    CallTime {
        /// Seconds in allocator calls under the entrant.
        seconds: f64,
        /// Seconds in allocator calls under the baseline.
        baseline: f64,
        /// Share of the saved processor time that allocator calls explain; above 1 if other parts
        /// of the program take longer, or the estimate is too high.
        share: f64,
    },
    /// Less resident memory for equal live memory.
    Fragmentation {
        /// Resident bytes for each live byte under the entrant.
        ratio: f64,
        /// Resident bytes for each live byte under the baseline.
        baseline: f64,
    },
    /// None of the recorded figures accounts for the gain.
    Unexplained {
        /// Share of the saved processor time that allocator calls explain; `None` if it is unknown
        /// or negligible.
        in_calls: Option<f64>,
    },
    /// The timed runs do not explain the gain, and further figures are missing: under the entrant
    /// or the baseline, no run tracked every block.
    Unfollowed,
}

/// A setting of the baseline's allocator, compared with the entrant of the [`Reason`].
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Name of the entrant with this setting.
    pub allocator: String,
    /// Share of the gain that the setting reaches; `None` if no difference from the gain of the
    /// reason's entrant was shown.
    pub share: Option<f64>,
}

/// Returns the reason why the leading entrant is better than the baseline. The leading entrant has
/// the lowest ratio of wall time among those that were shown to be faster. If none was, the same
/// applies to processor time, then to peak memory. Returns `None` if none was shown to be better.
pub fn reason(result: &RaceResult) -> Option<Reason> {
    let shown = |figure: &str, verdict: Verdict| {
        let rivals = result.entrants.iter().filter(|row| is_rival(row));
        let shown = rivals.filter(move |row| is_shown(row, figure, verdict).is_some());
        let ratio = |row: &&EntrantResult| versus(row, figure).map_or(1.0, |it| it.ratio);
        shown.min_by(|a, b| ratio(a).total_cmp(&ratio(b)))
    };
    let leader = shown(WALL, Verdict::Faster)
        .or_else(|| shown(CPU, Verdict::Faster))
        .or_else(|| shown(PEAK_RSS, Verdict::Less))?;
    reason_for(result, &leader.allocator)
}

/// Returns the reason why the entrant of this name is better than the baseline; `None` if it was
/// not shown to be better.
pub fn reason_for(result: &RaceResult, allocator: &str) -> Option<Reason> {
    let row = result.row(allocator).filter(|row| is_rival(row))?;
    let baseline = result
        .entrants
        .iter()
        .find(|row| row.role == Role::Baseline)?;
    let time = [WALL, CPU].into_iter();
    let time = time.filter_map(|figure| Some((figure, is_shown(row, figure, Verdict::Faster)?)));
    let memory = is_shown(row, PEAK_RSS, Verdict::Less).map(|less| (PEAK_RSS, less));
    let (figure, compared) = time.chain(memory).next()?;
    let (gain, cause) = match figure {
        PEAK_RSS => (
            Gain::Memory(1.0 - compared.ratio),
            cause::of_memory(row, baseline),
        ),
        _ => (
            Gain::Time(1.0 - compared.ratio),
            cause::of_time(result, row, baseline),
        ),
    };
    Some(Reason {
        allocator: foreign::name(&row.allocator),
        gain,
        cause: cause.unwrap_or(
            match [row, baseline].iter().all(|row| row.evidence.is_some()) {
                true => Cause::Unexplained {
                    in_calls: cause::calls_share([row, baseline]),
                },
                false => Cause::Unfollowed,
            },
        ),
        setting: setting(result, row, baseline, figure, compared),
    })
}

fn is_rival(row: &EntrantResult) -> bool {
    row.role == Role::Rival && row.status == Status::Ok
}

fn is_shown<'a>(row: &'a EntrantResult, figure: &str, verdict: Verdict) -> Option<&'a Comparison> {
    versus(row, figure).filter(|compared| compared.verdict == verdict && compared.ratio > 0.0)
}

/// Returns the setting of the baseline's library with the largest gain, if it reaches at least
/// [`HALF`] of the leading entrant's gain. Returns `None` if the leading entrant is itself a
/// setting.
fn setting(
    result: &RaceResult,
    leader: &EntrantResult,
    baseline: &EntrantResult,
    figure: &str,
    gained: &Comparison,
) -> Option<Setting> {
    let is_setting = |row: &&EntrantResult| {
        row.library == baseline.library && !row.settings.is_empty() && is_rival(row)
    };
    if is_setting(&leader) {
        return None;
    }
    let rows = result.entrants.iter().filter(is_setting);
    let brought = rows.filter_map(|row| {
        let compared = versus(row, figure)?;
        let better = matches!(compared.verdict, Verdict::Faster | Verdict::Less);
        let share = (1.0 - compared.ratio) / (1.0 - gained.ratio);
        (better && share >= HALF).then_some((row, compared, share))
    });
    let (row, compared, share) = brought.max_by(|a, b| a.2.total_cmp(&b.2))?;
    let is_same = compared.low <= gained.ratio;
    Some(Setting {
        allocator: foreign::name(&row.allocator),
        share: (!is_same).then_some(share),
    })
}

/// Formats the part of the saved processor time that a cause explains.
fn part(share: f64) -> String {
    if share > OVER {
        return "which explains more than the whole gain: other parts take longer, or the estimate is \
                too high"
            .to_owned();
    }
    let only = if share < HALF { "only " } else { "" };
    let share = 100.0 * share.min(1.0);
    format!("which explains {only}about {share:.0}% of the processor time that it saves")
}

impl Reason {
    /// Formats the cause as a clause without the entrant's name, such as `has 44 times fewer page
    /// faults`. Returns `None` if no recorded figure explains the gain.
    pub fn clause(&self) -> Option<String> {
        Some(match &self.cause {
            Cause::PageFaults {
                times,
                huge_pages,
                share,
            } => {
                let huge = if *huge_pages {
                    ", because its memory is in huge pages"
                } else {
                    ""
                };
                let times = words::short_number(two_digits(*times));
                let part = part(*share);
                format!("has {times} times fewer page faults{huge}, {part}")
            }
            Cause::SystemCalls {
                calls,
                baseline,
                share,
            } => format!(
                "calls the system for memory {} instead of {} times and spends less time in the \
                 kernel, {}",
                words::grouped(*calls),
                words::grouped(*baseline),
                part(*share)
            ),
            Cause::CallTime {
                seconds,
                baseline,
                share,
            } => format!(
                "spends {} in allocator calls instead of {}, {}",
                Nanoseconds::from_seconds(*seconds),
                Nanoseconds::from_seconds(*baseline),
                part(*share)
            ),
            Cause::Fragmentation { ratio, baseline } => format!(
                "keeps {} bytes resident for each live byte instead of {}",
                words::bare_ratio(*ratio),
                words::bare_ratio(*baseline)
            ),
            Cause::Unexplained { .. } | Cause::Unfollowed => return None,
        })
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.allocator;
        match (self.clause(), self.gain) {
            (Some(clause), _) => write!(out, "{name} {clause}")?,
            (None, Gain::Time(_)) if self.cause == Cause::Unfollowed => write!(
                out,
                "page faults do not explain why {name} is faster, and no run followed its blocks"
            )?,
            (None, Gain::Memory(_)) if self.cause == Cause::Unfollowed => write!(
                out,
                "no run followed the blocks of {name} to explain why it takes less memory"
            )?,
            (None, Gain::Time(_)) => match self.cause {
                Cause::Unexplained {
                    in_calls: Some(share),
                } => write!(
                    out,
                    "mostly unknown: less time in allocator calls explains about {:.0}% of the processor time \
                     that {name} saves; page faults and system calls explain less",
                    100.0 * share
                )?,
                _ => write!(
                    out,
                    "no recorded figure explains why {name} is faster: not page faults, system calls, or \
                     time in allocator calls"
                )?,
            },
            (None, Gain::Memory(_)) => write!(
                out,
                "no recorded figure explains why {name} takes less memory"
            )?,
        }
        match &self.setting {
            None => Ok(()),
            Some(Setting {
                allocator,
                share: None,
            }) => write!(out, "; {allocator} saves as much as {name}"),
            Some(Setting {
                allocator,
                share: Some(share),
            }) => write!(
                out,
                "; {allocator} saves {:.0}% as much as {name}",
                100.0 * share
            ),
        }
    }
}

/// Rounds to one decimal below 10, and to a whole number from there on, because more digits would
/// suggest a false accuracy.
fn two_digits(times: f64) -> f64 {
    if times < 9.95 {
        (times * 10.0).round() / 10.0
    } else {
        times.round()
    }
}
