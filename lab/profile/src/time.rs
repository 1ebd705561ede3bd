//! The share of processor time that a program spends in the allocator.
//!
//! Calls for large blocks are all timed, unless a sandbox forbids it. Of the other calls, a random
//! sample is timed. The mean of each group stands for all calls of the group. The recorder's own
//! time is estimated from the timed calls, and subtracted from the processor time.

use heapdrome_trace::TimedCalls;

use crate::process::ProcessProfile;
use crate::read::Profile;

const FEWEST: u64 = TimedCalls::FEWEST;

/// Largest processor time that recording costs, as a multiple of the time that the recorder
/// measures. The measured time lacks the entry into the library, and the program's cache misses
/// that the library causes. See "Time in the allocator" in docs/profiles.md.
const RECORDER_MOST: f64 = 2.5;

/// Processor time in nanoseconds, estimated from the timed calls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeInAllocator {
    /// Time of all calls in the allocator.
    pub allocator: f64,
    /// Half the width of the 95% interval of `allocator`.
    pub half_width: f64,
    /// All processor time, without that of the recorder.
    pub processor: f64,
    /// Interval of `processor`. It allows for the 95% interval of the recorder's measured time, and
    /// for the part of the recorder's time that is not measured.
    pub processor_interval: [f64; 2],
    /// Number of calls.
    pub calls: u64,
    /// Number of calls that were timed.
    pub timed: u64,
    /// Number of calls whose measured time was so long that they were probably interrupted. Their
    /// times do not enter the estimates.
    pub left_out: u64,
    /// Number of calls for large blocks that were not timed, or were left out. `allocator` contains
    /// the mean of the others for each of them.
    pub large_untimed: u64,
}

/// Reason why the share of processor time in the allocator is unknown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Untimed {
    /// The trace has only a sample of the blocks. No calls are timed in such a recording.
    Sampled,
    /// The trace has no processor time of any process: it was cut from another trace, or cut off,
    /// or its processes ended before their processor time was read.
    NoProcessorTime,
    /// Fewer calls were timed than an estimate needs.
    Few {
        /// Number of timed calls, without those for large blocks.
        timed: u64,
        /// Estimated share of processor time in calls for large blocks.
        large: f64,
    },
    /// This many calls for large blocks were made, and none of them has a usable time.
    LargeUntimed(u64),
    /// The timed calls stand for more time than the processes had. So either a sum is wrong, or
    /// the processor time was read too early.
    Impossible {
        /// Time in the allocator in nanoseconds.
        allocator: f64,
        /// All processor time, without that of the recorder.
        processor: f64,
    },
}

impl TimeInAllocator {
    /// Returns the share of processor time that is spent in the allocator. The estimate may exceed
    /// 1, because both times have errors.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.allocator / self.processor
    }

    /// Returns the interval of the share. It assumes that the errors of both times combine in the
    /// worst way.
    #[must_use]
    pub fn interval(&self) -> [f64; 2] {
        let [least, most] = self.processor_interval;
        let share = |allocator: f64, processor: f64| {
            if processor > 0.0 {
                (allocator / processor).clamp(0.0, 1.0)
            } else {
                1.0
            }
        };
        [
            share(self.allocator - self.half_width, most),
            share(self.allocator + self.half_width, least),
        ]
    }

    /// Returns the mean time of a call in the allocator, in nanoseconds.
    #[must_use]
    pub fn per_call(&self) -> f64 {
        self.allocator / self.calls.max(1) as f64
    }
}

impl Profile {
    /// Returns the processor time in the allocator and in total, over the processes for which the
    /// total is known.
    ///
    /// # Errors
    /// Returns an error if the trace has only a sample of the blocks, if the total is known for no
    /// process, if too few calls were timed, or if the times contradict each other.
    pub fn time_in_allocator(&self) -> Result<TimeInAllocator, Untimed> {
        if !self.sampling().is_whole() {
            return Err(Untimed::Sampled);
        }
        let mut sums = Sums::default();
        self.processes.iter().for_each(|process| sums.add(process));
        sums.estimate()
    }
}

/// Sums of call times over processes. Each call has the same probability of being timed, except
/// those for large blocks, so one mean serves for all processes.
#[derive(Clone, Default)]
struct Sums {
    /// Number of calls, including those for large blocks.
    calls: u64,
    sampled: Sampled,
    left_out: u64,
    large: Large,
    processor: f64,
}

/// Number and times of the timed calls in the sample.
#[derive(Clone, Default)]
struct Sampled {
    timed: u64,
    allocator: Moments,
    recording: Moments,
}

/// Sum of times, and of their squares.
#[derive(Clone, Copy, Default)]
struct Moments {
    sum: f64,
    squares: f64,
}

/// Number and times of the calls for large blocks.
#[derive(Clone, Default)]
struct Large {
    calls: u64,
    timed: u64,
    allocator: f64,
    recording: f64,
}

/// An estimate, and half the width of its 95% interval.
#[derive(Clone, Copy)]
struct Estimate {
    mean: f64,
    half_width: f64,
}

impl Sampled {
    /// Returns the mean time of a call.
    fn mean(&self, moments: Moments) -> Estimate {
        let timed = self.timed as f64;
        let mean = moments.sum / timed;
        let variance = (moments.squares - timed * mean * mean).max(0.0) / (timed - 1.0);
        Estimate {
            mean,
            half_width: (variance / timed).sqrt() * deviations(self.timed - 1),
        }
    }
}

/// Returns half the width of a 95% interval, in standard errors that were estimated with this many
/// degrees of freedom. This is the 97.5% quantile of Student's t-distribution, with an error below
/// 0.001 from 14 degrees of freedom on.
fn deviations(freedom: u64) -> f64 {
    let freedom = freedom.max(1) as f64;
    1.959_964 + 2.372_27 / freedom + 2.822_5 / (freedom * freedom)
}

impl Large {
    /// Returns the number of calls that each timed call stands for.
    fn weight(&self) -> f64 {
        self.calls as f64 / self.timed.max(1) as f64
    }
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
        self.sampled.timed += timed.calls;
        self.sampled.allocator.sum += timed.nanoseconds as f64;
        self.sampled.allocator.squares += timed.squares as f64;
        self.sampled.recording.sum += timed.recording as f64;
        self.sampled.recording.squares += timed.recording_squares as f64;
        self.left_out += timed.interrupted;
        self.large.calls += timed.large.calls;
        self.large.timed += timed.large.timed;
        self.large.allocator += timed.large.nanoseconds as f64;
        self.large.recording += timed.large.recording as f64;
        self.left_out += timed.large.interrupted;
        self.processor += processor as f64;
    }

    fn estimate(&self) -> Result<TimeInAllocator, Untimed> {
        if self.processor <= 0.0 {
            return Err(Untimed::NoProcessorTime);
        }
        let (large, sampled) = (&self.large, &self.sampled);
        let small = self.calls.saturating_sub(large.calls);
        if large.calls != 0 && large.timed == 0 {
            return Err(Untimed::LargeUntimed(large.calls));
        }
        if small != 0 && sampled.timed < FEWEST {
            return Err(Untimed::Few {
                timed: sampled.timed,
                large: (large.allocator * large.weight() / self.processor).clamp(0.0, 1.0),
            });
        }
        let total = |moments, large_sum: f64| {
            let call = match small {
                0 => Estimate {
                    mean: 0.0,
                    half_width: 0.0,
                },
                _ => sampled.mean(moments),
            };
            // The estimate may be negative by chance, but a time cannot be.
            Estimate {
                mean: (small as f64 * call.mean + large_sum * large.weight()).max(0.0),
                half_width: small as f64 * call.half_width,
            }
        };
        let allocator = total(sampled.allocator, large.allocator);
        let recorder = total(sampled.recording, large.recording);
        let [least, most] =
            [RECORDER_MOST, 1.0].map(|times| self.processor - times * recorder.mean);
        let time = TimeInAllocator {
            allocator: allocator.mean,
            half_width: allocator.half_width,
            processor: self.processor - recorder.mean,
            processor_interval: [least - recorder.half_width, most + recorder.half_width],
            calls: self.calls,
            timed: sampled.timed + large.timed,
            left_out: self.left_out,
            large_untimed: large.calls.saturating_sub(large.timed),
        };
        let least = time.allocator - time.half_width;
        if time.processor <= 0.0 || least > time.processor_interval[1] {
            return Err(Untimed::Impossible {
                allocator: time.allocator,
                processor: time.processor,
            });
        }
        Ok(time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(timed: u64) -> Sums {
        // Half of the calls take 10 ns, and the other half 30 ns.
        let allocator = Moments {
            sum: 20.0 * timed as f64,
            squares: 500.0 * timed as f64,
        };
        // Recording takes 5 ns for each call.
        let recording = Moments {
            sum: 5.0 * timed as f64,
            squares: 25.0 * timed as f64,
        };
        Sums {
            calls: 100 * timed,
            sampled: Sampled {
                timed,
                allocator,
                recording,
            },
            left_out: 3,
            large: Large::default(),
            processor: 4500.0 * timed as f64,
        }
    }

    #[test]
    fn the_mean_of_the_timed_calls_stands_for_all() {
        let time = sums(10_000).estimate().expect("many calls were timed");
        assert!((time.share() - 0.5).abs() < 1e-12, "{time:?}");
        assert!((time.per_call() - 20.0).abs() < 1e-12);
        assert_eq!(time.left_out, 3);
        // The standard error of the mean is 10 ns / 100, which is 0.5% of the mean.
        let half = 0.005 * time.allocator * 1.96;
        assert!((time.half_width - half).abs() < 1e-3 * half, "{time:?}");
    }

    #[test]
    fn the_interval_contains_the_error_of_the_recorders_time() {
        let sums = sums(10_000);
        let time = sums.estimate().expect("many calls were timed");
        let recorder = sums.processor - time.processor;
        let [low, high] = time.interval();
        let least = (time.allocator - time.half_width) / time.processor;
        let most = time.allocator + time.half_width;
        let most = most / (sums.processor - RECORDER_MOST * recorder);
        assert!(
            (low - least).abs() < 1e-9 && (high - most).abs() < 1e-9,
            "{low} {high}"
        );
        // If the times of recording differ, the estimate of their sum has an error, too.
        let mut uneven = sums.clone();
        uneven.sampled.recording.squares *= 5.0;
        let wider = uneven.estimate().expect("many calls were timed");
        assert!(wider.processor_interval[0] < time.processor_interval[0]);
        assert!(wider.processor_interval[1] > time.processor_interval[1]);
    }

    #[test]
    fn few_timed_calls_widen_the_interval() {
        // The quantiles of Student's distribution.
        for (freedom, quantile) in [(29, 2.045_230), (60, 2.000_298), (1_000_000, 1.959_966)] {
            let error = deviations(freedom) - quantile;
            assert!(error.abs() < 1e-3, "{freedom}: {error}");
        }
    }

    /// The 300 calls for large blocks take a thousand times as long as the others, so all of them
    /// are timed, instead of a sample.
    #[test]
    fn calls_for_large_blocks_count_as_they_were_timed() {
        let mut sums = sums(100);
        sums.calls += 300;
        sums.large = Large {
            calls: 300,
            timed: 300,
            allocator: 300.0 * 20_000.0,
            recording: 300.0 * 1000.0,
        };
        sums.processor += 300.0 * 61_000.0;
        let time = sums.estimate().expect("many calls were timed");
        assert_eq!((time.timed, time.large_untimed), (400, 0));
        let allocator = 300.0 * 20_000.0 + 10_000.0 * 20.0;
        assert!((time.allocator - allocator).abs() < 1e-3);
        let processor = 300.0 * 60_000.0 + 10_000.0 * 40.0;
        assert!((time.processor - processor).abs() < 1e-3, "{time:?}");
        // A third of these calls were interrupted, so the other two thirds represent them.
        sums.large.timed = 200;
        sums.large.allocator = 200.0 * 20_000.0;
        let time = sums.estimate().expect("many calls were timed");
        assert!((time.allocator - allocator).abs() < 1e-3);
        assert_eq!(time.large_untimed, 100);
    }

    #[test]
    fn a_missing_estimate_has_its_reason() {
        let few = |timed, large| Err(Untimed::Few { timed, large });
        assert_eq!(sums(FEWEST - 1).estimate(), few(FEWEST - 1, 0.0));
        assert_eq!(Sums::default().estimate(), Err(Untimed::NoProcessorTime));
        let mut large = sums(FEWEST - 1);
        large.large = Large {
            calls: 4,
            timed: 2,
            allocator: large.processor / 10.0,
            recording: 0.0,
        };
        assert_eq!(large.estimate(), few(FEWEST - 1, 0.2));
        large.large.timed = 0;
        assert_eq!(large.estimate(), Err(Untimed::LargeUntimed(4)));
    }

    #[test]
    fn a_negative_sum_of_one_process_is_added_to_the_others() {
        let mut sums = sums(100);
        let without = sums.estimate().expect("many calls were timed");
        sums.sampled.allocator.sum -= 500.0;
        let with = sums.estimate().expect("many calls were timed");
        assert!(with.allocator < without.allocator);
        sums.sampled.allocator.sum = -500.0;
        let time = sums.estimate().expect("many calls were timed");
        assert!((time.share(), time.interval()[0]) == (0.0, 0.0), "{time:?}");
    }

    #[test]
    fn times_that_contradict_each_other_give_no_share() {
        let mut sums = sums(10_000);
        // Each call takes 20 ns in the allocator and 5 ns in the recorder, but the process had only
        // 15 ns, and then 4 ns, of processor time for each call.
        sums.processor = 15.0 * 1e6;
        assert!(matches!(sums.estimate(), Err(Untimed::Impossible { .. })));
        sums.processor = 4.0 * 1e6;
        assert!(matches!(sums.estimate(), Err(Untimed::Impossible { .. })));
        // The share exceeds 1, but by less than the error of the estimates.
        sums.processor = 24.9 * 1e6;
        let time = sums.estimate().expect("possible");
        assert!(time.share() > 1.0 && time.interval()[1] == 1.0, "{time:?}");
    }
}
