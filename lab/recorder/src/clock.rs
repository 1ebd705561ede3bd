//! Converts the processor's counter, with which the entries of rings are stamped, into times.

use std::time::{Duration, Instant};

use heapdrome_trace::Time;

/// Time for which the counter is calibrated against the system's clock. If this time is measured
/// wrongly by 1 µs, all times of the trace are wrong by 1 part in 50,000.
const CALIBRATION: Duration = Duration::from_millis(50);

/// Number of fractional bits of [`Clock::scale`].
const SCALE_BITS: u32 = 32;

/// Converter of values of the counter into times of the trace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: u64,
    /// Nanoseconds per 2^32 ticks.
    scale: u64,
}

impl Clock {
    /// Starts a clock. Takes [`CALIBRATION`] to calibrate it against the system's clock.
    pub(crate) fn start() -> Self {
        let (start, began) = (ticks(), Instant::now());
        std::thread::sleep(CALIBRATION);
        let (passed, elapsed) = (ticks().wrapping_sub(start), began.elapsed());
        let scale = (elapsed.as_nanos() << SCALE_BITS) / u128::from(passed.max(1));
        Self {
            start,
            scale: u64::try_from(scale).unwrap_or(u64::MAX),
        }
    }

    /// Returns the time of a stamp; 0 for a stamp from before the recording.
    pub(crate) fn time(self, stamp: u64) -> Time {
        Time(self.nanoseconds(stamp.saturating_sub(self.start)))
    }

    /// Converts a number of ticks into nanoseconds.
    pub(crate) fn nanoseconds(self, ticks: u64) -> u64 {
        ((u128::from(ticks) * u128::from(self.scale)) >> SCALE_BITS) as u64
    }

    /// Converts square ticks into square nanoseconds.
    pub(crate) fn squared_nanoseconds(self, squares: u64) -> u64 {
        self.nanoseconds(self.nanoseconds(squares))
    }

    /// Converts nanoseconds into a number of ticks.
    pub(crate) fn ticks_of(self, nanoseconds: u64) -> u64 {
        let ticks = (u128::from(nanoseconds) << SCALE_BITS) / u128::from(self.scale.max(1));
        ticks as u64
    }

    /// Returns the value that the counter had this many nanoseconds ago.
    pub(crate) fn stamp_before(self, nanoseconds: u64) -> u64 {
        ticks().saturating_sub(self.ticks_of(nanoseconds))
    }

    /// Returns the time that has passed since the clock's start.
    pub(crate) fn now(self) -> Time {
        self.time(ticks())
    }
}

/// Returns the value of the processor's counter.
#[cfg(target_arch = "x86_64")]
pub(crate) fn ticks() -> u64 {
    // SAFETY: every x86-64 processor has the instruction, and Linux lets programs execute it.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Returns the value of the processor's counter.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn ticks() -> u64 {
    let ticks: u64;
    // SAFETY: Linux lets programs read the virtual counter, and reading it accesses no memory.
    unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
    ticks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_ticks_lasts_as_long_on_every_machine() {
        // The ticks of one counter last about 0.4 ns, and those of the other about 42 ns.
        for nanoseconds_of_a_tick in [0.385, 41.67] {
            let clock = Clock {
                start: 0,
                scale: (nanoseconds_of_a_tick * (1_u64 << SCALE_BITS) as f64) as u64,
            };
            let error = clock.nanoseconds(clock.ticks_of(400_000)).abs_diff(400_000);
            assert!(error as f64 <= nanoseconds_of_a_tick + 1.0, "{error}");
        }
    }
}
