//! Watches the anonymous memory of a process tree while it runs.

use std::time::{Duration, Instant};

use heapdrome_record::{MemoryRun, MemorySample};

use crate::cgroup::Cgroup;
use crate::launcher::CgroupFiles;
use crate::tree;

/// The time between two readings.
pub(crate) const INTERVAL: Duration = Duration::from_millis(5);

/// The most samples that a finished timeline holds.
const MOST_SAMPLES: usize = 500;

/// A process tree being watched.
pub(crate) struct Watch {
    /// The launcher: everything below it is measured.
    root: libc::pid_t,
    cgroup: Option<Cgroup>,
    started: Instant,
    timeline: Timeline,
}

impl Watch {
    /// Watches what is below `root`, through a control group if one can be made and is wanted.
    pub(crate) fn new(root: libc::pid_t, by_cgroup: bool) -> Self {
        let cgroup = if by_cgroup { Cgroup::make() } else { None };
        Self {
            root,
            cgroup,
            started: Instant::now(),
            timeline: Timeline::default(),
        }
    }

    /// The control group that the measured process must be started in.
    pub(crate) fn files(&self) -> Option<CgroupFiles> {
        self.cgroup.as_ref().map(Cgroup::files)
    }

    /// Takes a reading.
    pub(crate) fn sample(&mut self) {
        let anonymous = match &self.cgroup {
            Some(cgroup) => cgroup.anonymous(),
            None => Some(tree::anonymous_below(self.root)),
        };
        if let Some(anonymous) = anonymous {
            self.timeline.push(MemorySample {
                at: self.started.elapsed().into(),
                anonymous,
            });
        }
    }

    /// What was seen.
    pub(crate) fn finish(self, entrant: usize) -> MemoryRun {
        let every = INTERVAL.as_millis();
        let (method, error) = match &self.cgroup {
            Some(cgroup) => (
                format!("{} every {every} ms", cgroup.method()),
                "peaks shorter than the time between two readings are missed; up to 256 KiB per \
                 CPU may not be counted yet; swapped-out and shared (memfd, shmem) memory is not \
                 counted",
            ),
            None => (
                format!("/proc RssAnon summed over the process tree every {every} ms"),
                "peaks shorter than the time between two readings are missed; pages that \
                 processes share after a fork are counted once for each; swapped-out and shared \
                 (memfd, shmem) memory is not counted",
            ),
        };
        let timeline = self.timeline.finish();
        let peak_tree = timeline
            .iter()
            .map(|sample| sample.anonymous)
            .max()
            .unwrap_or_default();
        MemoryRun {
            entrant,
            peak_tree,
            method,
            error: error.to_owned(),
            timeline,
        }
    }
}

/// Readings in order. When they become too many, each two neighbours become the higher one, so
/// that any length of run fits and the highest is kept.
#[derive(Default)]
struct Timeline {
    samples: Vec<MemorySample>,
    /// How many times neighbours were merged.
    merged: u32,
    /// The highest of the readings that become the next sample, and how many they are.
    pending: Option<(MemorySample, u32)>,
}

impl Timeline {
    fn push(&mut self, sample: MemorySample) {
        let (highest, count) = match self.pending.take() {
            Some((highest, count)) => (higher(highest, sample), count + 1),
            None => (sample, 1),
        };
        if count < 1 << self.merged {
            self.pending = Some((highest, count));
            return;
        }
        self.samples.push(highest);
        if self.samples.len() > MOST_SAMPLES {
            self.merge();
        }
    }

    fn merge(&mut self) {
        let pairs = self.samples.chunks(2);
        self.samples = pairs
            .filter_map(|pair| pair.iter().copied().reduce(higher))
            .collect();
        self.merged += 1;
    }

    fn finish(mut self) -> Vec<MemorySample> {
        if let Some((highest, _)) = self.pending.take() {
            self.samples.push(highest);
        }
        if self.samples.len() > MOST_SAMPLES {
            self.merge();
        }
        self.samples
    }
}

fn higher(one: MemorySample, other: MemorySample) -> MemorySample {
    if other.anonymous > one.anonymous {
        other
    } else {
        one
    }
}

#[cfg(test)]
mod tests {
    use heapdrome_record::{Bytes, Nanoseconds};

    use super::*;

    #[test]
    fn a_long_timeline_is_thinned_and_keeps_its_peak() {
        for length in [1, 499, 500, 501, 1003, 100_000_u64] {
            let mut timeline = Timeline::default();
            for at in 0..length {
                let anonymous = Bytes(if at == length / 3 { 1_000_000 } else { at });
                timeline.push(MemorySample {
                    at: Nanoseconds(at),
                    anonymous,
                });
            }
            let samples = timeline.finish();
            assert!(
                (1..=MOST_SAMPLES).contains(&samples.len()),
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
