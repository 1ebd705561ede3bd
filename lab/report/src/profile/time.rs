//! The share of processor time that a program spends in the allocator, in a sentence.

use heapdrome_profile::{Profile, Untimed};
use heapdrome_schema::Nanoseconds;

use crate::words::{count, fraction};

/// Returns a sentence on the share of processor time in the allocator, or on why it is unknown;
/// `None` if there were no calls.
pub(super) fn in_allocator(profile: &Profile) -> Option<String> {
    if profile.all.counts.calls() == 0 {
        return None;
    }
    let unknown = |why| format!("The share of processor time in the allocator is unknown: {why}.");
    Some(match profile.time_in_allocator() {
        Ok(time) => {
            let [low, high] = time.interval().map(fraction);
            format!(
                "About {} of the processor time is spent in the allocator ({low} to {high}), {} a call: {} \
                 were timed.{}",
                fraction(time.share()),
                Nanoseconds(time.per_call().round() as u64),
                count(time.timed, "call"),
                left_out(time.left_out),
            )
        }
        Err(Untimed::Sampled) => unknown("no calls are timed if blocks are sampled".to_owned()),
        Err(Untimed::NoProcessorTime) => unknown("the trace lacks the processor time".to_owned()),
        Err(Untimed::Few(0)) => unknown("no call was timed".to_owned()),
        Err(Untimed::Few(1)) => unknown("only 1 call was timed".to_owned()),
        Err(Untimed::Few(timed)) => unknown(format!("only {timed} calls were timed")),
    })
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
}
