//! Sentences on the share of processor time that a program spends in the allocator, or on why this
//! share is unknown.

use heapdrome_profile::{Profile, TimeInAllocator, Untimed};
use heapdrome_schema::Nanoseconds;

use crate::words::{count, fraction};

/// Minimum width of an interval that leaves the share undecided.
const UNDECIDED: f64 = 0.5;

/// Returns a sentence on the share of processor time in the allocator, or on why it is unknown;
/// `None` if there were no calls.
pub(super) fn in_allocator(profile: &Profile) -> Option<String> {
    if profile.all.counts.calls() == 0 {
        return None;
    }
    Some(match profile.time_in_allocator() {
        Ok(time) => known(&time),
        Err(why) => unknown(why),
    })
}

fn known(time: &TimeInAllocator) -> String {
    let [low, high] = time.interval();
    let interval = format!("{} to {}", fraction(low), fraction(high));
    let share = match high - low < UNDECIDED {
        true => format!(
            "About {} of the processor time is spent in the allocator ({interval}), {} a call",
            fraction(time.share().min(1.0)),
            Nanoseconds(time.per_call().round() as u64)
        ),
        false => format!(
            "Undecided: {interval} of the processor time is spent in the allocator, too wide an interval for \
             an estimate"
        ),
    };
    format!(
        "{share}: {} were timed.{}{}{}",
        count(time.timed, "call"),
        left_out(time.left_out),
        large_untimed(time.large_untimed),
        beyond(time),
    )
}

/// Returns a sentence on why the share is unknown.
fn unknown(why: Untimed) -> String {
    let reason = match why {
        Untimed::Sampled => "no calls are timed if blocks are sampled".to_owned(),
        Untimed::NoProcessorTime => "the trace lacks the processor time".to_owned(),
        Untimed::Few { timed, .. } => match timed {
            0 => "no call for a small block was timed".to_owned(),
            1 => "only 1 call for a small block was timed".to_owned(),
            _ => format!("only {timed} calls for small blocks were timed"),
        },
        Untimed::LargeUntimed(calls) => {
            format!(
                "none of the {} for large blocks was timed",
                count(calls, "call")
            )
        }
        Untimed::Impossible {
            allocator,
            processor,
        } => format!(
            "the timed calls stand for {}, but the processes had {} of processor time",
            time(allocator),
            time(processor),
        ),
    };
    let sentence = format!("The share of processor time in the allocator is unknown: {reason}.");
    match why {
        Untimed::Few { large, .. } if large > 0.0 => {
            format!(
                "{sentence} Calls for large blocks take {}.",
                fraction(large)
            )
        }
        _ => sentence,
    }
}

fn time(nanoseconds: f64) -> Nanoseconds {
    // A negative number becomes 0.
    Nanoseconds(nanoseconds.round() as u64)
}

/// Returns a sentence on the calls for large blocks that were not timed; empty if all were timed.
fn large_untimed(calls: u64) -> String {
    match calls {
        0 => String::new(),
        _ => format!(
            " The mean of other calls for large blocks stands for {} that could not be timed.",
            count(calls, "such call"),
        ),
    }
}

/// Returns a sentence if the timed calls stand for more than the processor time; otherwise an empty
/// one.
fn beyond(time: &TimeInAllocator) -> &'static str {
    if time.share() > 1.0 {
        " The timed calls stand for more than all of it, within the error of the estimate."
    } else {
        ""
    }
}

/// Returns a sentence on the calls that are missing from the estimate; empty if there are none.
fn left_out(calls: u64) -> String {
    match calls {
        0 => String::new(),
        _ => format!(
            " The estimate leaves out {} that took too long to tell from an interruption: the share is \
             larger if the allocator itself was slow.",
            count(calls, "timed call"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_are_left_out_are_named() {
        assert_eq!(left_out(0), "");
        assert!(left_out(1).starts_with(" The estimate leaves out 1 timed call that took"));
        assert!(left_out(2).contains("2 timed calls"));
    }

    fn estimate() -> TimeInAllocator {
        TimeInAllocator {
            allocator: 5e8,
            half_width: 1e7,
            processor: 1e9,
            processor_interval: [1e9; 2],
            calls: 1_000_000,
            timed: 4000,
            left_out: 0,
            large_untimed: 0,
        }
    }

    #[test]
    fn a_share_has_its_interval_and_what_is_missing() {
        assert_eq!(
            known(&estimate()),
            "About 50% of the processor time is spent in the allocator (49% to 51%), 500 ns a call: \
             4,000 calls were timed."
        );
        let large_untimed = known(&TimeInAllocator {
            large_untimed: 3,
            ..estimate()
        });
        assert!(
            large_untimed.contains("3 such calls that could not be timed"),
            "{large_untimed}"
        );
    }

    #[test]
    fn a_wide_interval_has_no_estimate() {
        let wide = known(&TimeInAllocator {
            half_width: 5e8,
            ..estimate()
        });
        assert!(
            wide.starts_with("Undecided: 0.00% to 100% of the processor time")
                && wide.ends_with(": 4,000 calls were timed."),
            "{wide}"
        );
    }

    #[test]
    fn a_share_of_more_than_all_is_reported() {
        let beyond = known(&TimeInAllocator {
            processor: 4.95e8,
            processor_interval: [4.95e8; 2],
            ..estimate()
        });
        assert!(
            beyond.starts_with("About 100% ") && beyond.contains("more than all of it"),
            "{beyond}"
        );
        let impossible = unknown(Untimed::Impossible {
            allocator: 5e8,
            processor: 1e8,
        });
        assert!(
            impossible.contains("stand for 500 ms, but the processes had 100 ms"),
            "{impossible}"
        );
    }

    #[test]
    fn large_blocks_have_a_share_though_few_others_were_timed() {
        let few = unknown(Untimed::Few {
            timed: 7,
            large: 0.25,
        });
        assert!(
            few.contains("only 7 calls for small blocks were timed.")
                && few.ends_with("Calls for large blocks take 25%."),
            "{few}"
        );
        assert!(
            !unknown(Untimed::Few {
                timed: 0,
                large: 0.0
            })
            .contains("large")
        );
        assert!(unknown(Untimed::LargeUntimed(2)).contains("none of the 2 calls"));
    }
}
