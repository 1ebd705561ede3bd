//! The share of processor time that a program spends in the allocator.

use heapdrome_trace::TimedCalls;

use crate::process::ProcessProfile;
use crate::read::Profile;

/// Half of a 95% interval of a normal distribution, in standard deviations.
const DEVIATIONS: f64 = 1.96;

/// Processor time in nanoseconds, estimated from the timed calls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeInAllocator {
    /// Time of all calls in the allocator.
    pub allocator: f64,
    /// Half of the 95% interval of `allocator`.
    pub half_width: f64,
    /// All processor time, without that of the recorder.
    pub processor: f64,
    /// Number of all calls, timed or not.
    pub calls: u64,
    /// Number of calls that were timed.
    pub timed: u64,
    /// Number of timed calls that took so long that they were probably interrupted. They are
    /// missing from `allocator`.
    pub left_out: u64,
}

/// Reason why the share of time in the allocator is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untimed {
    /// The trace has a sample of blocks, for which no calls are timed.
    Sampled,
    /// The trace has no processor time of any process: it was cut from another trace, or cut off,
    /// or its processes ended before their processor time was read.
    NoProcessorTime,
    /// Only this many calls were timed, fewer than an interval requires.
    Few(u64),
}

impl TimeInAllocator {
    /// Returns the share of processor time that is spent in the allocator.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.part(self.allocator)
    }

    /// Returns the 95% interval of the share.
    #[must_use]
    pub fn interval(&self) -> [f64; 2] {
        [-1.0, 1.0].map(|side| self.part(self.allocator + side * self.half_width))
    }

    /// Returns the mean time of a call in the allocator, in nanoseconds.
    #[must_use]
    pub fn per_call(&self) -> f64 {
        self.allocator / self.calls.max(1) as f64
    }

    fn part(&self, time: f64) -> f64 {
        (time / self.processor).clamp(0.0, 1.0)
    }
}

impl Profile {
    /// Returns the processor time in the allocator and in total, over the processes for which the
    /// total is known.
    ///
    /// # Errors
    /// Returns an error if the trace is sampled, if no process has a known total, or if too few
    /// calls were timed.
    pub fn time_in_allocator(&self) -> Result<TimeInAllocator, Untimed> {
        if !self.sampling().is_whole() {
            return Err(Untimed::Sampled);
        }
        let mut sums = Sums::default();
        self.processes.iter().for_each(|process| sums.add(process));
        sums.estimate()
    }
}

/// Sums over processes. Each call has the same probability of being timed, so one mean serves for
/// all processes.
#[derive(Default)]
struct Sums {
    calls: u64,
    timed: u64,
    left_out: u64,
    nanoseconds: f64,
    squares: f64,
    recording: f64,
    processor: f64,
}

impl Sums {
    fn add(&mut self, process: &ProcessProfile) {
        let Some(finish) = process.finish.as_ref().filter(|finish| !finish.gave_up) else {
            return;
        };
        let Some(processor) = finish.processor_time else {
            return;
        };
        let timed = finish.timed.unwrap_or_default();
        self.calls += process.counts.calls();
        self.timed += timed.calls;
        self.left_out += timed.interrupted;
        self.nanoseconds += timed.nanoseconds as f64;
        self.squares += timed.squares as f64;
        self.recording += timed.recording as f64;
        self.processor += processor as f64;
    }

    fn estimate(&self) -> Result<TimeInAllocator, Untimed> {
        if self.processor <= 0.0 {
            return Err(Untimed::NoProcessorTime);
        }
        if self.timed < TimedCalls::FEWEST {
            return Err(Untimed::Few(self.timed));
        }
        let (all, timed) = (self.calls as f64, self.timed as f64);
        let mean = self.nanoseconds / timed;
        let variance = (self.squares - timed * mean * mean).max(0.0) / (timed - 1.0);
        let allocator = all * mean;
        let recorder = all * self.recording / timed;
        Ok(TimeInAllocator {
            allocator,
            half_width: all * (variance / timed).sqrt() * DEVIATIONS,
            // The recorder's time is also an estimate. If it is too large, the rest must still
            // include the allocator's time.
            processor: (self.processor - recorder).max(allocator),
            calls: self.calls,
            timed: self.timed,
            left_out: self.left_out,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(timed: u64) -> Sums {
        Sums {
            calls: 100 * timed,
            timed,
            left_out: 3,
            // One half of the calls takes 10 ns, and the other half takes 30 ns.
            nanoseconds: 20.0 * timed as f64,
            squares: 500.0 * timed as f64,
            recording: 5.0 * timed as f64,
            processor: 4500.0 * timed as f64,
        }
    }

    #[test]
    fn the_mean_of_the_timed_calls_stands_for_all() {
        let time = sums(10_000).estimate().expect("many calls were timed");
        assert!((time.share() - 0.5).abs() < 1e-12, "{time:?}");
        assert!((time.per_call() - 20.0).abs() < 1e-12);
        assert_eq!(time.left_out, 3);
        let [low, high] = time.interval();
        // The deviation of the mean is 10 ns / 100, which is 0.5% of the mean.
        let half = 0.5 * 0.005 * DEVIATIONS;
        assert!((low - (0.5 - half)).abs() < 1e-6 && (high - (0.5 + half)).abs() < 1e-6);
    }

    #[test]
    fn a_missing_estimate_has_its_reason() {
        let few = TimedCalls::FEWEST - 1;
        assert_eq!(sums(few).estimate(), Err(Untimed::Few(few)));
        assert_eq!(Sums::default().estimate(), Err(Untimed::NoProcessorTime));
    }

    #[test]
    fn a_share_is_at_most_all() {
        let mut sums = sums(100);
        sums.processor = 10.0;
        let time = sums.estimate().expect("many calls were timed");
        assert_eq!((time.share(), time.interval()[1]), (1.0, 1.0));
    }
}
