//! Sums the times of the calls that the recorded processes have timed.

use std::sync::atomic::{AtomicU64, Ordering};

use heapdrome_trace::TimedCalls;
use heapdrome_witness::ring::Timing;

use crate::clock::Clock;

/// Returns the processor time of a process at its exit, in nanoseconds; `None` if the process ended
/// without a normal exit.
pub(crate) fn at_exit<'a>(rings: impl Iterator<Item = &'a Timing>) -> Option<u64> {
    // Relaxed: the process has ended.
    let times = rings.map(|ring| ring.processor_time.load(Ordering::Relaxed));
    times.max().filter(|time| *time != 0)
}

/// Returns the sums over the rings of a process that has ended; `None` if no call was timed.
pub(crate) fn of_rings<'a>(
    rings: impl Iterator<Item = &'a Timing> + Clone,
    clock: Clock,
) -> Option<TimedCalls> {
    // Relaxed: the process has ended.
    let sum = |of: fn(&Timing) -> &AtomicU64| {
        let words = rings.clone().map(|ring| of(ring).load(Ordering::Relaxed));
        words.fold(0, u64::wrapping_add)
    };
    // A total may be negative: the time of one reading is subtracted from each call, and may exceed
    // the time that was measured for a very short call.
    let ticks = |of| clock.nanoseconds(sum(of).cast_signed().max(0).cast_unsigned());
    let timed = TimedCalls {
        calls: sum(|timing| &timing.calls),
        nanoseconds: ticks(|timing| &timing.ticks),
        squares: clock.squared_nanoseconds(sum(|timing| &timing.squares)),
        recording: ticks(|timing| &timing.recording),
        interrupted: sum(|timing| &timing.interrupted),
    };
    (timed.calls + timed.interrupted != 0).then_some(timed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timing(calls: u64, ticks: i64) -> Timing {
        Timing {
            calls: AtomicU64::new(calls),
            ticks: AtomicU64::new(ticks.cast_unsigned()),
            squares: AtomicU64::new((ticks * ticks).cast_unsigned()),
            recording: AtomicU64::new(0),
            interrupted: AtomicU64::new(0),
            processor_time: AtomicU64::new(0),
        }
    }

    #[test]
    fn rings_add_up_though_one_of_them_is_negative() {
        let clock = Clock::start();
        let rings = [timing(1, -400_000), timing(2, 1_000_000)];
        let timed = of_rings(rings.iter(), clock).expect("three calls");
        assert_eq!(timed.calls, 3);
        assert_eq!(timed.nanoseconds, clock.nanoseconds(600_000));
        let squares = clock.nanoseconds(1_000_000).pow(2) + clock.nanoseconds(400_000).pow(2);
        let error = timed.squares.abs_diff(squares) as f64 / squares as f64;
        assert!(error < 1e-4, "{error}");
        let negative = of_rings([timing(1, -400_000)].iter(), clock);
        assert_eq!(negative.expect("one call").nanoseconds, 0);
    }

    #[test]
    fn nothing_is_said_of_calls_that_were_not_timed() {
        assert_eq!(of_rings([timing(0, 0)].iter(), Clock::start()), None);
    }
}
