//! Observation of the memory of a running process tree.

use std::time::{Duration, Instant};

use heapdrome_schema::{
    AfterIdle, Bytes, ImageMemory, MemoryParts, MemoryRun, MemorySample, Nanoseconds,
};

use crate::cgroup::Cgroup;
use crate::idle::{Activity, Rest};
use crate::image;
use crate::launcher::CgroupFiles;
use crate::parts::{self, Pace};
use crate::timeline::Timeline;
use crate::tree::{self, Earlier};

/// Time between two readings of the tree's anonymous memory.
pub(crate) const INTERVAL: Duration = Duration::from_millis(5);

/// Maximum number of samples of anonymous memory in a finished timeline.
const MOST_SAMPLES: usize = 500;
/// Maximum number of samples of the memory's parts in a finished timeline.
const MOST_PARTS: usize = 100;

pub(crate) struct Watch {
    /// Process id of the launcher, whose descendants are measured.
    root: libc::pid_t,
    cgroup: Option<Cgroup>,
    started: Instant,
    timeline: Timeline<MemorySample>,
    average: Average,
    pace: Pace,
    parts: Timeline<MemoryParts>,
    rest: Rest,
    image: Option<ImageMemory>,
    after_idle: Option<AfterIdle>,
}

impl Watch {
    /// Starts watching the descendants of `root`. With `by_cgroup`, uses a control group if one can
    /// be created.
    pub(crate) fn new(root: libc::pid_t, by_cgroup: bool) -> Self {
        let cgroup = if by_cgroup { Cgroup::make() } else { None };
        let started = Instant::now();
        Self {
            root,
            cgroup,
            started,
            timeline: Timeline::new(MOST_SAMPLES, |sample| sample.anonymous),
            average: Average::default(),
            pace: Pace::new(started),
            parts: Timeline::new(MOST_PARTS, |parts| parts.resident() + parts.swapped),
            rest: Rest::default(),
            image: None,
            after_idle: None,
        }
    }

    /// Returns the files of the control group in which the measured process must be started; `None`
    /// if memory is read through `/proc`.
    pub(crate) fn files(&self) -> Option<CgroupFiles> {
        self.cgroup.as_ref().map(Cgroup::files)
    }

    /// Reads the tree's anonymous memory. Also reads the composition of its memory if that reading
    /// is due.
    pub(crate) fn sample(&mut self) {
        let anonymous = match &self.cgroup {
            Some(cgroup) => cgroup.anonymous(),
            None => Some(tree::anonymous_below(self.root)),
        };
        if let Some(anonymous) = anonymous {
            let at = self.now();
            self.timeline.push(MemorySample { at, anonymous });
            self.average.push(at, anonymous);
        }
        if self.pace.is_due(Instant::now()) {
            self.look_closer();
        }
    }

    fn now(&self) -> Nanoseconds {
        self.started.elapsed().into()
    }

    fn look_closer(&mut self) -> Option<MemoryParts> {
        let (began, spent) = (Instant::now(), parts::own_time());
        let processes = tree::processes_below(self.root, &Earlier::default());
        let read = parts::of(&processes, self.now());
        if let Some((parts, largest)) = read {
            self.parts.push(parts);
            let image = image::of(largest);
            let images = self.image.into_iter().chain(image);
            self.image = images.max_by_key(ImageMemory::resident);
            self.rest.observe(Activity::of(&processes), parts);
        }
        let ended = Instant::now();
        let cost = parts::own_time()
            .zip(spent)
            .map(|(now, before)| now.saturating_sub(before));
        self.pace.took(ended, cost.unwrap_or(ended - began));
        read.map(|(parts, _)| parts)
    }

    /// Ends the period over which memory is averaged, because the load of a server has ended.
    pub(crate) fn load_ended(&mut self) {
        self.average.stop();
    }

    /// Records the current memory of a server that has been idle for this long.
    pub(crate) fn rested(&mut self, idle: Duration) {
        self.after_idle = self.look_closer().map(|parts| AfterIdle {
            idle: idle.into(),
            parts,
        });
    }

    /// Ends the watch, and returns its readings as a memory run.
    pub(crate) fn finish(self, entrant: usize) -> MemoryRun {
        let (method, error) = self.method();
        let timeline = self.timeline.finish();
        let peak_tree = timeline
            .iter()
            .map(|sample| sample.anonymous)
            .max()
            .unwrap_or_default();
        let parts = self.parts.finish();
        MemoryRun {
            entrant,
            peak_tree,
            method,
            error: error.to_owned(),
            timeline,
            average: self.average.value(),
            parts_method: (!parts.is_empty()).then(parts_method),
            parts,
            image: self.image,
            after_idle: self.after_idle.or_else(|| self.rest.longest()),
        }
    }

    /// Returns the name of the method that reads anonymous memory, and its possible errors.
    fn method(&self) -> (String, &'static str) {
        let every = INTERVAL.as_millis();
        match &self.cgroup {
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
        }
    }
}

/// Describes the method that reads the memory's composition, and its possible errors.
fn parts_method() -> String {
    format!(
        "/proc smaps_rollup over the process tree every {} ms, more often at the beginning, and \
         more rarely if readings would take more than 1/{} of the time; peaks between two readings are missed, so parts may be less \
         than the tree's peak; pages shared within the tree count once, and file pages shared with other \
         processes count in proportion; huge and lazily freed pages count once for each process",
        parts::INTERVAL.as_millis(),
        parts::SHARE,
    )
}

/// Average of readings over time. Each reading is valid until the next one.
#[derive(Debug, Default)]
struct Average {
    first: Option<Nanoseconds>,
    last: Option<(Nanoseconds, Bytes)>,
    /// Sum of bytes times nanoseconds.
    area: f64,
    stopped: bool,
}

impl Average {
    fn push(&mut self, at: Nanoseconds, bytes: Bytes) {
        if self.stopped {
            return;
        }
        if let Some((before, held)) = self.last {
            self.area += held.as_f64() * (at - before).0 as f64;
        }
        self.first.get_or_insert(at);
        self.last = Some((at, bytes));
    }

    /// Makes the average ignore later readings.
    fn stop(&mut self) {
        self.stopped = true;
    }

    /// Returns the average; for a single reading, that reading; `None` without readings.
    fn value(&self) -> Option<Bytes> {
        let (at, bytes) = self.last?;
        let span = (at - self.first?).0 as f64;
        Some(match span > 0.0 {
            true => Bytes((self.area / span).round() as u64),
            false => bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_average_weighs_readings_by_their_time() {
        let mut average = Average::default();
        assert_eq!(average.value(), None);
        average.push(Nanoseconds(100), Bytes(10));
        assert_eq!(average.value(), Some(Bytes(10)));
        average.push(Nanoseconds(200), Bytes(40));
        average.push(Nanoseconds(500), Bytes(0));
        assert_eq!(
            average.value(),
            Some(Bytes(33)),
            "(10 * 100 + 40 * 300) / 400, rounded"
        );
        average.stop();
        average.push(Nanoseconds(9000), Bytes(1 << 40));
        assert_eq!(average.value(), Some(Bytes(33)));
    }
}
