//! The figures of a run, by name: what is compared, in which direction, and how finely it is read.

use heapdrome_record::{self as record, Better, Factor, Metric, Options, Run, Verdict};
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
            record::WALL | record::CPU | "user_s" | "system_s" => Self::Time,
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
#[derive(Clone, Copy)]
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

/// The figure that every race is about.
pub const WALL: Figure = Figure {
    name: record::WALL,
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
        name: record::PEAK_RSS,
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
    name: record::CPU,
    kind: Kind::Time,
    resolution: MICROSECOND,
    of: |run| run.user.as_seconds() + run.system.as_seconds(),
};

/// A figure that a race compares with the baseline's.
#[derive(Clone, Copy)]
pub enum Compared<'a> {
    /// One that every run has.
    Common(Figure),
    /// One that the command prints.
    Printed(&'a Metric),
}

impl<'a> Compared<'a> {
    /// Every figure of a race with these options.
    pub fn all(options: &'a Options) -> Vec<Self> {
        let common = FIGURES.into_iter().chain([CPU]).map(Self::Common);
        common
            .chain(options.metrics.iter().map(Self::Printed))
            .collect()
    }

    /// The judged figures, in the order in which the options name them.
    pub fn judged(options: &'a Options) -> Vec<Self> {
        let all = Self::all(options);
        let named = |name: &String| all.iter().find(|figure| figure.name() == name).copied();
        options.judged.iter().filter_map(named).collect()
    }

    /// Its name in a result.
    pub fn name(&self) -> &'a str {
        match self {
            Self::Common(figure) => figure.name,
            Self::Printed(metric) => &metric.name,
        }
    }

    /// The figure of one run, if it has it.
    pub fn of(&self, run: &Run) -> Option<f64> {
        match self {
            Self::Common(figure) => Some((figure.of)(run)),
            Self::Printed(metric) => run.metrics.get(&metric.name).copied(),
        }
    }

    /// The step in which it is read; 0 where it is not known.
    pub fn resolution(&self) -> f64 {
        match self {
            Self::Common(figure) => figure.resolution,
            Self::Printed(_) => 0.0,
        }
    }

    /// What its verdicts are about.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Common(figure) => figure.kind,
            Self::Printed(_) => Kind::Amount,
        }
    }

    /// Whether more of it is better.
    pub fn more_is_better(&self) -> bool {
        matches!(self, Self::Printed(metric) if metric.better == Better::Higher)
    }
}

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
