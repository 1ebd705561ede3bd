//! The figures of a run, by name: what is compared, in which direction, and how finely it is read.

use heapdrome_record::{Factor, Run, Verdict};
use heapdrome_statistics::{Interval, Shown};

/// What the words of a verdict are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Less is faster.
    Time,
    /// Less is just less.
    Amount,
}

impl Kind {
    /// What the verdicts on the figure of this name are about.
    pub fn of(figure: &str) -> Self {
        match figure {
            "wall_s" | "cpu_s" | "user_s" | "system_s" => Self::Time,
            _ => Self::Amount,
        }
    }

    /// What an interval wholly on one side of 1 means.
    pub fn verdict(self, shown: Shown) -> Verdict {
        match (self, shown) {
            (Self::Time, Shown::Below) => Verdict::Faster,
            (Self::Time, Shown::Above) => Verdict::Slower,
            (Self::Amount, Shown::Below) => Verdict::Less,
            (Self::Amount, Shown::Above) => Verdict::More,
            (_, Shown::Nothing) => Verdict::Undecided,
        }
    }
}

/// One figure that every run has.
pub struct Figure {
    /// Its name in the JSON of a result.
    pub name: &'static str,
    /// What its verdicts are about.
    pub kind: Kind,
    /// The step in which it is read: differences below it are not seen.
    pub resolution: f64,
    /// Takes it from a run.
    pub of: fn(&Run) -> f64,
}

/// A page of memory in bytes: resident memory is counted in these.
const PAGE: f64 = 4096.0;

/// A microsecond in seconds: the kernel reports CPU time in these.
const MICROSECOND: f64 = 1e-6;

/// The figure that the race is about: its intervals decide when to stop.
pub const WALL: Figure = Figure {
    name: "wall_s",
    kind: Kind::Time,
    resolution: 1e-9,
    of: |run| run.wall.as_seconds(),
};

/// Every figure that is compared with the baseline's, the first being [`WALL`].
pub const FIGURES: [Figure; 8] = [
    WALL,
    Figure {
        name: "user_s",
        kind: Kind::Time,
        resolution: MICROSECOND,
        of: |run| run.user.as_seconds(),
    },
    Figure {
        name: "system_s",
        kind: Kind::Time,
        resolution: MICROSECOND,
        of: |run| run.system.as_seconds(),
    },
    Figure {
        name: "peak_rss_bytes",
        kind: Kind::Amount,
        resolution: PAGE,
        of: |run| run.peak_rss.as_f64(),
    },
    Figure {
        name: "minor_faults",
        kind: Kind::Amount,
        resolution: 1.0,
        of: |run| run.minor_faults as f64,
    },
    Figure {
        name: "major_faults",
        kind: Kind::Amount,
        resolution: 1.0,
        of: |run| run.major_faults as f64,
    },
    Figure {
        name: "voluntary_switches",
        kind: Kind::Amount,
        resolution: 1.0,
        of: |run| run.voluntary_switches as f64,
    },
    Figure {
        name: "involuntary_switches",
        kind: Kind::Amount,
        resolution: 1.0,
        of: |run| run.involuntary_switches as f64,
    },
];

/// CPU time, user and system together, which the terminal's table shows as one.
pub const CPU: Figure = Figure {
    name: "cpu_s",
    kind: Kind::Time,
    resolution: MICROSECOND,
    of: |run| run.user.as_seconds() + run.system.as_seconds(),
};

/// A factor with its interval, as a result keeps it.
pub fn factor(found: Interval) -> Factor {
    Factor {
        ratio: found.estimate,
        low: found.low,
        high: found.high,
    }
}

/// A probability as a remark tells it; it is never nought.
pub fn probability(p: f64) -> String {
    const LEAST: f64 = 0.001;
    match p < LEAST {
        true => format!("p < {LEAST}"),
        false => format!("p = {p:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_probability_reads_as_nought() {
        for small in [0.0, 1e-12, 0.0004, 0.000_999] {
            assert_eq!(probability(small), "p < 0.001");
        }
        assert_eq!(probability(0.001), "p = 0.001");
        assert_eq!(probability(0.0084), "p = 0.008");
    }
}
