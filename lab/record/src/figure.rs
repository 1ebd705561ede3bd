//! The figures of a row by their names, and how finely they are read.

use crate::{EntrantResult, RaceResult, Role, Series, Status};

/// Wall time, by its name in a result.
pub const WALL: &str = "wall_s";

/// Processor time, user and system together, by its name in a result.
pub const CPU: &str = "cpu_s";

/// Peak resident memory of the largest process, by its name in a result.
pub const PEAK_RSS: &str = "peak_rss_bytes";

/// A page of memory, in which resident memory is counted.
const PAGE: f64 = 4096.0;

/// A microsecond, in which the kernel reports CPU time.
const MICROSECOND: f64 = 1e-6;

/// The figures that every race has, wall time first; `cpu_s` is user and system time together.
pub const COMMON_FIGURES: [&str; 10] = [
    WALL,
    CPU,
    "user_s",
    "system_s",
    PEAK_RSS,
    "peak_tree_bytes",
    "minor_faults",
    "major_faults",
    "voluntary_switches",
    "involuntary_switches",
];

/// What a judged figure is called in a sentence; a metric keeps its name.
pub fn spoken(figure: &str) -> &str {
    match figure {
        WALL => "wall time",
        CPU => "processor time",
        PEAK_RSS => "peak memory",
        metric => metric,
    }
}

/// The step in which a figure is read; 0 where it is not known.
pub fn resolution(figure: &str) -> f64 {
    match figure {
        "user_s" | "system_s" | "cpu_s" => MICROSECOND,
        "peak_rss_bytes" | "peak_tree_bytes" => PAGE,
        "minor_faults" | "major_faults" | "voluntary_switches" | "involuntary_switches" => 1.0,
        _ => 0.0,
    }
}

impl EntrantResult {
    /// The samples of a figure in the order of the rounds: one of [`COMMON_FIGURES`], or one that the
    /// command or the workload reported. `None` where no run has it.
    pub fn samples(&self, figure: &str) -> Option<Vec<f64>> {
        let all = |series: &Option<Series>| series.as_ref().map(|series| series.samples.clone());
        let found = match figure {
            "wall_s" => all(&self.wall_s),
            "user_s" => all(&self.user_s),
            "system_s" => all(&self.system_s),
            "cpu_s" => {
                let (user, system) = (all(&self.user_s)?, all(&self.system_s)?);
                Some(user.iter().zip(&system).map(|(a, b)| a + b).collect())
            }
            "peak_rss_bytes" => all(&self.peak_rss_bytes),
            "peak_tree_bytes" => all(&self.peak_tree_bytes),
            "minor_faults" => all(&self.minor_faults),
            "major_faults" => all(&self.major_faults),
            "voluntary_switches" => all(&self.voluntary_switches),
            "involuntary_switches" => all(&self.involuntary_switches),
            name => self.metrics.get(name).map(|one| one.samples.clone()),
        };
        found.filter(|samples| samples.iter().any(|sample| sample.is_finite()))
    }
}

impl RaceResult {
    /// Of samples in the order of the rounds, those of the rounds that every entrant ran. Where who is decided runs no
    /// more, the others' later rounds are there because of what the earlier ones showed. An interval that is for one look
    /// does not allow that.
    pub fn first_rounds(&self, mut samples: Vec<f64>) -> Vec<f64> {
        let least = self.least_rounds.map(usize::try_from);
        samples.truncate(least.and_then(Result::ok).unwrap_or(usize::MAX));
        samples
    }

    /// The row of an allocator, if it counts; the baseline's second name is nobody's row.
    pub fn row(&self, allocator: &str) -> Option<&EntrantResult> {
        let mut own = self
            .entrants
            .iter()
            .filter(|row| row.role != Role::Twin && row.status == Status::Ok);
        own.find(|row| row.allocator == allocator)
    }
}
