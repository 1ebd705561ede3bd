//! Sums the times of the calls that the recorded processes have timed, and finds the processor time
//! that a process recorded last.

use std::sync::atomic::{AtomicU64, Ordering};

use heapdrome_trace::{LargeCalls, TimedCalls};
use heapdrome_witness::ring::Timing;

use crate::clock::Clock;

/// Returns the processor time of a process at its exit, in nanoseconds; `None` if the process ended
/// without a normal exit.
pub(crate) fn at_exit<'a>(rings: impl Iterator<Item = &'a Timing>) -> Option<u64> {
    latest(rings.map(|ring| &ring.processor_time))
}

/// Returns the processor time of a process after one of its latest timed calls, in nanoseconds.
pub(crate) fn at_call<'a>(rings: impl Iterator<Item = &'a Timing>) -> Option<u64> {
    latest(rings.map(|ring| &ring.latest_time))
}

fn latest<'a>(times: impl Iterator<Item = &'a AtomicU64>) -> Option<u64> {
    // Relaxed: the words publish no other memory.
    let times = times.map(|time| time.load(Ordering::Relaxed));
    times.max().filter(|time| *time != 0)
}

/// Returns the sums over the rings of a program whose recording has ended; `None` if no call was
/// timed or interrupted, and no large block was requested.
pub(crate) fn of_rings<'a>(
    rings: impl Iterator<Item = &'a Timing> + Clone,
    clock: Clock,
) -> Option<TimedCalls> {
    // Relaxed: the sums publish no other memory.
    let sum = |of: fn(&Timing) -> &AtomicU64| {
        let words = rings.clone().map(|ring| of(ring).load(Ordering::Relaxed));
        words.fold(0, u64::wrapping_add)
    };
    // A sum of times is negative if the readings of the counter that were subtracted took longer
    // than the calls themselves.
    let ticks = |of| {
        let ticks = sum(of).cast_signed();
        clock.nanoseconds(ticks.unsigned_abs()).cast_signed() * ticks.signum()
    };
    let squares = |of| clock.squared_nanoseconds(sum(of));
    let large = LargeCalls {
        calls: sum(|timing| &timing.large.calls),
        timed: sum(|timing| &timing.large.timed),
        nanoseconds: ticks(|timing| &timing.large.ticks)
            .saturating_add(sum(|timing| &timing.large.nanoseconds).cast_signed()),
        recording: ticks(|timing| &timing.large.recording_ticks)
            .saturating_add(sum(|timing| &timing.large.recording_nanoseconds).cast_signed()),
        interrupted: sum(|timing| &timing.large.interrupted),
    };
    let timed = TimedCalls {
        calls: sum(|timing| &timing.calls),
        nanoseconds: ticks(|timing| &timing.ticks),
        squares: squares(|timing| &timing.squares),
        recording: ticks(|timing| &timing.recording),
        recording_squares: squares(|timing| &timing.recording_squares),
        interrupted: sum(|timing| &timing.interrupted),
        large,
    };
    (timed.calls + timed.interrupted + large.calls != 0).then_some(timed)
}

#[cfg(test)]
mod tests {
    use heapdrome_witness::ring::LargeTiming;

    use super::*;

    fn timing(calls: u64, ticks: i64) -> Timing {
        Timing {
            calls: AtomicU64::new(calls),
            ticks: AtomicU64::new(ticks.cast_unsigned()),
            squares: AtomicU64::new((ticks * ticks).cast_unsigned()),
            recording: AtomicU64::new(0),
            recording_squares: AtomicU64::new(0),
            interrupted: AtomicU64::new(0),
            processor_time: AtomicU64::new(0),
            latest_time: AtomicU64::new(0),
            large: LargeTiming {
                calls: AtomicU64::new(0),
                timed: AtomicU64::new(0),
                ticks: AtomicU64::new(0),
                nanoseconds: AtomicU64::new(0),
                recording_ticks: AtomicU64::new(0),
                recording_nanoseconds: AtomicU64::new(0),
                interrupted: AtomicU64::new(0),
            },
        }
    }

    #[test]
    fn rings_add_up_though_one_of_them_is_negative() {
        let clock = Clock::start();
        let rings = [timing(1, -400_000), timing(2, 1_000_000)];
        let timed = of_rings(rings.iter(), clock).expect("three calls");
        assert_eq!(timed.calls, 3);
        let nanoseconds = |ticks| clock.nanoseconds(ticks).cast_signed();
        assert!((timed.nanoseconds - nanoseconds(600_000)).abs() <= 1);
        let squares = clock.nanoseconds(1_000_000).pow(2) + clock.nanoseconds(400_000).pow(2);
        let error = timed.squares.abs_diff(squares) as f64 / squares as f64;
        assert!(error < 1e-4, "{error}");
        let negative = of_rings([timing(1, -400_000)].iter(), clock);
        // A sum over processes must include negative sums, too.
        assert_eq!(
            negative.expect("one call").nanoseconds,
            -nanoseconds(400_000)
        );
    }

    #[test]
    fn large_blocks_are_timed_by_two_clocks() {
        let clock = Clock::start();
        let ring = timing(0, 0);
        ring.large.calls.store(3, Ordering::Relaxed);
        ring.large.timed.store(2, Ordering::Relaxed);
        ring.large.ticks.store(1_000_000, Ordering::Relaxed);
        ring.large.nanoseconds.store(7_000, Ordering::Relaxed);
        let recording = (-100_i64).cast_unsigned();
        ring.large
            .recording_nanoseconds
            .store(recording, Ordering::Relaxed);
        let large = of_rings([ring].iter(), clock).expect("three calls").large;
        assert_eq!((large.calls, large.timed), (3, 2));
        let nanoseconds = clock.nanoseconds(1_000_000).cast_signed() + 7_000;
        assert_eq!((large.nanoseconds, large.recording), (nanoseconds, -100));
    }

    #[test]
    fn nothing_is_said_of_calls_that_were_not_timed() {
        assert_eq!(of_rings([timing(0, 0)].iter(), Clock::start()), None);
    }
}
