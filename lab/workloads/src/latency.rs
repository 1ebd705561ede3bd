//! Times of single calls, measured on request.

use std::time::Instant;

use hdrhistogram::Histogram;

/// Maximum recorded duration. A longer call is recorded with this duration.
const LONGEST_NS: u64 = 100_000_000_000;
/// Number of significant digits of a stored duration, which is then exact to 1%.
const DIGITS: u8 = 2;

/// Durations of one thread's calls, in nanoseconds. All of the record's memory is allocated when it
/// is created.
#[derive(Debug)]
pub(crate) struct Latency {
    malloc: Histogram<u64>,
    free: Histogram<u64>,
}

impl Latency {
    /// Creates an empty record. Returns `None` if `wanted` is false.
    pub(crate) fn when(wanted: bool) -> Option<Self> {
        let empty = || Histogram::new_with_bounds(1, LONGEST_NS, DIGITS).ok();
        match wanted {
            true => Some(Self {
                malloc: empty()?,
                free: empty()?,
            }),
            false => None,
        }
    }

    /// Times an allocation.
    #[inline]
    pub(crate) fn of_malloc<R>(&mut self, call: impl FnOnce() -> R) -> R {
        let begin = Instant::now();
        let result = call();
        self.malloc.saturating_record(nanoseconds_since(begin));
        result
    }

    /// Times a free.
    #[inline]
    pub(crate) fn of_free<R>(&mut self, call: impl FnOnce() -> R) -> R {
        let begin = Instant::now();
        let result = call();
        self.free.saturating_record(nanoseconds_since(begin));
        result
    }

    /// Adds another thread's calls.
    pub(crate) fn merge(&mut self, other: &Self) {
        // Both histograms have the same bounds, so adding them cannot fail.
        let _ = self.malloc.add(&other.malloc);
        let _ = self.free.add(&other.free);
    }

    /// Returns figures by name: percentiles and the maximum of the durations, and the cost of
    /// reading the clock, which is part of every duration.
    pub(crate) fn figures(&self) -> Vec<(&'static str, f64)> {
        let at =
            |histogram: &Histogram<u64>, quantile| histogram.value_at_quantile(quantile) as f64;
        vec![
            ("latency_malloc_p50_ns", at(&self.malloc, 0.5)),
            ("latency_malloc_p90_ns", at(&self.malloc, 0.9)),
            ("latency_malloc_p99_ns", at(&self.malloc, 0.99)),
            ("latency_malloc_p999_ns", at(&self.malloc, 0.999)),
            ("latency_malloc_max_ns", self.malloc.max() as f64),
            ("latency_free_p50_ns", at(&self.free, 0.5)),
            ("latency_free_p90_ns", at(&self.free, 0.9)),
            ("latency_free_p99_ns", at(&self.free, 0.99)),
            ("latency_free_p999_ns", at(&self.free, 0.999)),
            ("latency_free_max_ns", self.free.max() as f64),
            ("latency_clock_ns", clock_floor() as f64),
        ]
    }
}

#[inline]
fn nanoseconds_since(begin: Instant) -> u64 {
    u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the median difference between two consecutive readings of the clock.
fn clock_floor() -> u64 {
    let mut readings = [0_u64; 10_001];
    readings.fill_with(|| nanoseconds_since(Instant::now()));
    let middle = readings.len() / 2;
    *readings.select_nth_unstable(middle).1
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn percentiles_tell_many_fast_calls_from_few_slow_ones() {
        let mut one = Latency::when(true).unwrap();
        let mut other = Latency::when(true).unwrap();
        for _ in 0..990 {
            one.malloc.saturating_record(100);
            other.free.saturating_record(50);
        }
        for _ in 0..10 {
            other.of_malloc(|| std::thread::sleep(Duration::from_millis(5)));
        }
        one.merge(&other);
        let figures = one.figures();
        let figure = |name| figures.iter().find(|(own, _)| *own == name).unwrap().1;
        assert_eq!(figure("latency_malloc_p50_ns"), 100.0);
        assert!(figure("latency_malloc_p999_ns") >= 5e6);
        assert!(figure("latency_malloc_max_ns") >= 5e6);
        assert_eq!(figure("latency_free_p50_ns"), 50.0);
        assert!(Latency::when(false).is_none());
    }
}
