//! The memory of a run over time, as a line of small bars.

use heapdrome_schema::MemorySample;

/// The bars, from the lowest to the highest.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The scales that all lines of a table share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scales {
    /// The end of the longest run, in seconds.
    longest: f64,
    /// The highest reading, in bytes.
    highest: f64,
    /// Width of a line in characters.
    width: usize,
}

impl Scales {
    /// Returns scales that contain all of these timelines; `None` if the timelines contain no
    /// memory.
    pub(crate) fn of<'a>(
        timelines: impl Iterator<Item = &'a [MemorySample]> + Clone,
        width: usize,
    ) -> Option<Self> {
        let all = timelines.flatten();
        let longest = all
            .clone()
            .map(|sample| sample.at.as_seconds())
            .fold(0.0, f64::max);
        let highest = all
            .map(|sample| sample.anonymous.as_f64())
            .fold(0.0, f64::max);
        (longest > 0.0 && highest > 0.0).then_some(Self {
            longest,
            highest,
            width,
        })
    }

    /// Draws one line. Each character shows the highest reading in its part of the time, or else
    /// the previous reading. After the end of the run, the line is empty.
    pub(crate) fn line(self, samples: &[MemorySample]) -> String {
        let Some(last) = samples.last() else {
            return String::new();
        };
        let column = |sample: &MemorySample| {
            let part = sample.at.as_seconds() / self.longest;
            ((part * self.width as f64) as usize).min(self.width - 1)
        };
        let mut held = 0.0;
        let mut line = String::new();
        for place in 0..=column(last) {
            let within = samples.iter().filter(|sample| column(sample) == place);
            let within: Vec<f64> = within.map(|sample| sample.anonymous.as_f64()).collect();
            let shown = within.iter().copied().reduce(f64::max).unwrap_or(held);
            held = within.last().copied().unwrap_or(held);
            let level = (shown / self.highest * LEVELS.len() as f64).ceil() as usize;
            line.push(LEVELS[level.clamp(1, LEVELS.len()) - 1]);
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use heapdrome_schema::{Bytes, Nanoseconds};

    use super::*;

    fn samples(readings: &[(u64, u64)]) -> Vec<MemorySample> {
        let sample = |(at, bytes): &(u64, u64)| MemorySample {
            at: Nanoseconds(at * 1_000_000_000),
            anonymous: Bytes(*bytes),
        };
        readings.iter().map(sample).collect()
    }

    #[test]
    fn peaks_stay_and_gaps_hold_what_was_before() {
        let one = samples(&[(0, 100), (1, 800), (2, 100), (7, 400)]);
        let other = samples(&[(0, 1), (3, 200)]);
        let both = [one.as_slice(), other.as_slice()];
        let scales = Scales::of(both.into_iter(), 4).expect("memory");
        assert_eq!(scales.line(&one), "█▁▁▄");
        assert_eq!(scales.line(&other), "▁▂");
        assert_eq!(scales.line(&[]), "");
    }

    #[test]
    fn without_memory_there_is_no_line() {
        assert!(Scales::of(std::iter::empty(), 10).is_none());
        let nothing = samples(&[(0, 0), (1, 0)]);
        assert!(Scales::of([nothing.as_slice()].into_iter(), 10).is_none());
    }
}
