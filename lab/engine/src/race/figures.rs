//! Figures of a run by name, with their direction and resolution.

use heapdrome_schema::{self as schema, Better, Factor, Metric, Options, Run, Verdict};
use heapdrome_statistics::{Interval, Shown};

/// Kind of a figure, which selects the words of its verdicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Time: lower values are faster.
    Time,
    /// Any other figure. Its verdicts say less or more, not faster or slower.
    Amount,
}

impl Kind {
    /// Returns the kind of the figure with this name.
    pub fn of(figure: &str) -> Self {
        match figure {
            schema::WALL | schema::CPU | "user_s" | "system_s" => Self::Time,
            _ => Self::Amount,
        }
    }

    /// Returns the verdict for the side of 1 on which an interval was shown to lie.
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

/// A figure that every run has.
#[derive(Clone, Copy)]
pub struct Figure {
    /// Name in the JSON of a result.
    pub name: &'static str,
    /// Kind of the figure.
    pub kind: Kind,
    /// Function that extracts the figure from a run.
    pub of: fn(&Run) -> f64,
}

/// Wall time, the main figure of every race.
pub const WALL: Figure = Figure {
    name: schema::WALL,
    kind: Kind::Time,
    of: |run| run.wall.as_seconds(),
};

/// Figures of every run, except [`CPU`], that are compared with the baseline's. The first is
/// [`WALL`].
pub const FIGURES: [Figure; 8] = [
    WALL,
    Figure {
        name: "user_s",
        kind: Kind::Time,
        of: |run| run.user.as_seconds(),
    },
    Figure {
        name: "system_s",
        kind: Kind::Time,
        of: |run| run.system.as_seconds(),
    },
    Figure {
        name: schema::PEAK_RSS,
        kind: Kind::Amount,
        of: |run| run.peak_rss.as_f64(),
    },
    Figure {
        name: "minor_faults",
        kind: Kind::Amount,
        of: |run| run.minor_faults as f64,
    },
    Figure {
        name: "major_faults",
        kind: Kind::Amount,
        of: |run| run.major_faults as f64,
    },
    Figure {
        name: "voluntary_switches",
        kind: Kind::Amount,
        of: |run| run.voluntary_switches as f64,
    },
    Figure {
        name: "involuntary_switches",
        kind: Kind::Amount,
        of: |run| run.involuntary_switches as f64,
    },
];

/// Processor time: the sum of user and system time.
pub const CPU: Figure = Figure {
    name: schema::CPU,
    kind: Kind::Time,
    of: |run| run.user.as_seconds() + run.system.as_seconds(),
};

/// A figure in which a race compares entrants with the baseline.
#[derive(Clone, Copy)]
pub enum Compared<'a> {
    /// A figure that every run has.
    Common(Figure),
    /// A figure that the command prints.
    Printed(&'a Metric),
}

impl<'a> Compared<'a> {
    /// Returns every figure in which a race with these options compares entrants.
    pub fn all(options: &'a Options) -> Vec<Self> {
        let common = FIGURES.into_iter().chain([CPU]).map(Self::Common);
        common
            .chain(options.metrics.iter().map(Self::Printed))
            .collect()
    }

    /// Returns the judged figures, in the order of the options.
    pub fn judged(options: &'a Options) -> Vec<Self> {
        let all = Self::all(options);
        let named = |name: &String| all.iter().find(|figure| figure.name() == name).copied();
        options.judged.iter().filter_map(named).collect()
    }

    /// Returns the figure's name in a result.
    pub fn name(&self) -> &'a str {
        match self {
            Self::Common(figure) => figure.name,
            Self::Printed(metric) => &metric.name,
        }
    }

    /// Returns the figure of one run, if the run has it.
    pub fn of(&self, run: &Run) -> Option<f64> {
        match self {
            Self::Common(figure) => Some((figure.of)(run)),
            Self::Printed(metric) => run.metrics.get(&metric.name).copied(),
        }
    }

    /// Returns the smallest step between two values of the figure, or 0 if the step is unknown.
    pub fn resolution(&self) -> f64 {
        match self {
            Self::Common(figure) => schema::resolution(figure.name),
            Self::Printed(_) => 0.0,
        }
    }

    /// Returns the kind of the figure.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Common(figure) => figure.kind,
            Self::Printed(_) => Kind::Amount,
        }
    }

    /// Returns whether a higher value is better.
    pub fn more_is_better(&self) -> bool {
        matches!(self, Self::Printed(metric) if metric.better == Better::Higher)
    }
}

/// Converts an interval into a factor for a result.
pub fn factor(found: Interval) -> Factor {
    Factor {
        ratio: found.estimate,
        low: found.low,
        high: found.high,
    }
}

/// Formats a probability for a remark; it is never shown as 0.
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
