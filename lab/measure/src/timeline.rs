//! Readings over time, thinned to a maximum number.

use heapdrome_schema::Bytes;

/// Readings in the order of time. When there are too many, each pair of neighbours is replaced by
/// the higher one. So a run of any length fits, and the highest reading is kept.
pub(crate) struct Timeline<T> {
    /// Maximum number of readings in a finished timeline.
    most: usize,
    height: fn(&T) -> Bytes,
    samples: Vec<T>,
    /// Number of merges so far. One sample covers `1 << merged` readings.
    merged: u32,
    /// Highest of the readings that form the next sample, and the number of these readings.
    pending: Option<(T, u32)>,
}

impl<T: Copy> Timeline<T> {
    /// Creates a timeline of at most `most` readings, compared by `height`.
    pub(crate) fn new(most: usize, height: fn(&T) -> Bytes) -> Self {
        Self {
            most,
            height,
            samples: Vec::new(),
            merged: 0,
            pending: None,
        }
    }

    pub(crate) fn push(&mut self, sample: T) {
        let (highest, count) = match self.pending.take() {
            Some((highest, count)) => (self.higher(highest, sample), count + 1),
            None => (sample, 1),
        };
        if count < 1 << self.merged {
            self.pending = Some((highest, count));
            return;
        }
        self.samples.push(highest);
        if self.samples.len() > self.most {
            self.merge();
        }
    }

    fn merge(&mut self) {
        let pairs = self.samples.chunks(2);
        self.samples = pairs
            .filter_map(|pair| {
                pair.iter()
                    .copied()
                    .reduce(|one, other| self.higher(one, other))
            })
            .collect();
        self.merged += 1;
    }

    pub(crate) fn finish(mut self) -> Vec<T> {
        if let Some((highest, _)) = self.pending.take() {
            self.samples.push(highest);
        }
        if self.samples.len() > self.most {
            self.merge();
        }
        self.samples
    }

    fn higher(&self, one: T, other: T) -> T {
        if (self.height)(&other) > (self.height)(&one) {
            other
        } else {
            one
        }
    }
}

#[cfg(test)]
mod tests {
    use heapdrome_schema::{MemorySample, Nanoseconds};

    use super::*;

    const MOST: usize = 500;

    #[test]
    fn a_long_timeline_is_thinned_and_keeps_its_peak() {
        for length in [1, 499, 500, 501, 1003, 100_000_u64] {
            let mut timeline = Timeline::new(MOST, |sample: &MemorySample| sample.anonymous);
            for at in 0..length {
                let anonymous = Bytes(if at == length / 3 { 1_000_000 } else { at });
                timeline.push(MemorySample {
                    at: Nanoseconds(at),
                    anonymous,
                });
            }
            let samples = timeline.finish();
            assert!(
                (1..=MOST).contains(&samples.len()),
                "{length}: {}",
                samples.len()
            );
            assert!(
                length < 500 || samples.len() > 200,
                "{length}: {}",
                samples.len()
            );
            assert!(
                samples
                    .iter()
                    .any(|sample| sample.anonymous == Bytes(1_000_000))
            );
            assert!(samples.is_sorted_by_key(|sample| sample.at.0));
        }
    }
}
