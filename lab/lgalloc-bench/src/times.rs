//! Histograms of latencies, and the cost of the clock itself.

use std::hint::black_box;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use heapdrome_schema::{Distribution, Nanoseconds};

/// Maximum recorded time. A longer time is recorded as this value.
const LONGEST: Nanoseconds = Nanoseconds(60_000_000_000);

/// Latencies of one thread, in buckets that are at most 1% wide.
#[derive(Clone, Debug)]
pub struct Times(Histogram<u64>);

impl Times {
    /// Returns an empty histogram with memory for all records, so that recording does not allocate.
    pub fn new() -> Self {
        let made = Histogram::new_with_bounds(1, LONGEST.0, 2);
        Self(made.expect("the bounds are valid"))
    }

    pub fn record(&mut self, time: Duration) {
        self.0.saturating_record(Nanoseconds::from(time).0);
    }

    /// Returns the number of recorded times.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Returns the longest recorded time.
    pub fn max(&self) -> Nanoseconds {
        Nanoseconds(self.0.max())
    }

    /// Converts the histogram to the form of a report.
    pub fn distribution(&self) -> Distribution {
        let values = self.0.iter_recorded();
        Distribution::new(values.map(|value| {
            let time = Nanoseconds(value.value_iterated_to());
            (time, value.count_at_value())
        }))
    }
}

/// Merges the histograms of all threads.
pub fn merged<'a>(parts: impl IntoIterator<Item = &'a Times>) -> Distribution {
    let mut all = Distribution::default();
    for part in parts {
        all.merge(&part.distribution());
    }
    all
}

/// Measures the distribution of the time between two adjacent readings of the clock.
pub fn clock() -> Distribution {
    const PAIRS: usize = 100_000;
    let mut times = Times::new();
    for _ in 0..PAIRS {
        let start = black_box(Instant::now());
        times.record(start.elapsed());
    }
    times.distribution()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_recorded_is_reported_within_a_percent() {
        let mut times = Times::new();
        for nanoseconds in [100, 100, 80_000, 3_700_000] {
            times.record(Duration::from_nanos(nanoseconds));
        }
        times.record(Duration::from_secs(3600));
        let told = times.distribution();
        assert_eq!(told.count(), 5);
        let near = |share: f64, wanted: f64| {
            let got = told.quantile(share).expect("something was recorded").0 as f64;
            assert!((got / wanted - 1.0).abs() < 0.01, "{got} is not {wanted}");
        };
        near(0.4, 100.0);
        near(0.6, 80_000.0);
        near(0.8, 3_700_000.0);
        near(1.0, LONGEST.0 as f64);
        assert_eq!(merged([&times, &times]).count(), 10);
    }

    #[test]
    fn the_clock_costs_something() {
        let told = clock();
        assert_eq!(told.count(), 100_000);
        assert!(told.max().expect("recorded") > Nanoseconds(0));
    }
}
