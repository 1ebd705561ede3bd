//! Adds up all processes of a trace.

use crate::counts::Counts;
use crate::process::ProcessProfile;
use crate::timeline::{Cells, Timeline};

/// Bounds of a quantity that one pass cannot determine exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Lower bound.
    pub least: u64,
    /// Upper bound.
    pub most: u64,
}

impl Bounds {
    /// Returns whether the quantity is known exactly.
    #[must_use]
    pub fn is_exact(self) -> bool {
        self.least == self.most
    }
}

/// All processes of a trace together.
///
/// The operations of different processes are not in the order of time. So the maximum of live
/// memory in all processes is only known within bounds. The lower bound comes from the sums at the
/// ends of the timeline's points, and the upper bound from the sums of the maxima within a point.
/// Both bounds are at least the largest maximum of a single process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct All {
    /// Times at which the first process begins and the last process ends, in nanoseconds since the
    /// recording began.
    pub span: [u64; 2],
    /// Number of threads that called an allocation function.
    pub threads: u64,
    /// Maximum number of live bytes of all processes at one time. Inherited blocks count for each
    /// process.
    pub peak: Bounds,
    /// Maximum resident memory of all processes at one time, if it was read.
    pub resident: Option<Bounds>,
    /// Calls, blocks and bytes.
    pub counts: Counts,
    /// Memory and calls over time.
    pub timeline: Timeline,
}

/// Sums of the figures of the processes that have finished so far.
#[derive(Debug, Default)]
pub(crate) struct Sum {
    all: All,
    cells: Cells,
    has_begun: bool,
    largest: u64,
    largest_resident: Option<u64>,
}

impl Sum {
    pub(crate) fn add(&mut self, profile: &ProcessProfile, cells: Cells) {
        let [from, to] = profile.span;
        let own = &mut self.all.span;
        own[0] = if self.has_begun {
            from.min(own[0])
        } else {
            from
        };
        own[1] = to.max(own[1]);
        self.has_begun = true;
        self.all.threads += profile.threads;
        self.all.counts.add(&profile.counts);
        self.largest = self.largest.max(profile.peak.live.bytes);
        self.largest_resident = self.largest_resident.max(profile.most_resident);
        self.cells.add(cells);
    }

    pub(crate) fn finish(self) -> All {
        let mut all = self.all;
        all.timeline = self.cells.timeline();
        let points = || all.timeline.points.iter();
        let levels = points().map(|point| point.bytes);
        let bounds = |largest: u64, ends: Option<u64>, mosts: Option<u64>| Bounds {
            least: largest.max(ends.unwrap_or(0)),
            most: largest.max(mosts.unwrap_or(0)),
        };
        let ends = levels.clone().map(|level| level.last).max();
        all.peak = bounds(self.largest, ends, levels.map(|level| level.most).max());
        let levels = points().filter_map(|point| point.resident);
        let ends = levels.clone().map(|level| level.last).max();
        let mosts = levels.map(|level| level.most).max();
        let resident = self.largest_resident;
        all.resident = resident.map(|largest| bounds(largest, ends, mosts));
        all
    }
}
