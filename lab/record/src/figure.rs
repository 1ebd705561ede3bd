//! The figures of a row by their names, and how finely they are read.

use crate::{EntrantResult, RaceResult, Role, Series, Status};

/// A page of memory, in which resident memory is counted.
const PAGE: f64 = 4096.0;

/// A microsecond, in which the kernel reports CPU time.
const MICROSECOND: f64 = 1e-6;

/// The figures that every race has, wall time first; `cpu_s` is user and system time together.
pub const COMMON_FIGURES: [&str; 10] = [
    "wall_s",
    "cpu_s",
    "user_s",
    "system_s",
    "peak_rss_bytes",
    "peak_tree_bytes",
    "minor_faults",
    "major_faults",
    "voluntary_switches",
    "involuntary_switches",
];

/// Whether every race has a figure of this name: one of [`COMMON_FIGURES`], or the average of the
/// process tree.
pub fn is_common_figure(name: &str) -> bool {
    COMMON_FIGURES.contains(&name) || name == "average_tree_bytes"
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
    /// The samples of a figure in the order of the rounds: one of [`COMMON_FIGURES`], or one that
    /// the command or the workload reported. `None` where no run has it.
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
    /// Of samples in the order of the rounds, those of the rounds that every entrant ran. Where who
    /// is decided runs no more, the others' later rounds are there because of what the earlier ones
    /// showed. An interval that is for one look does not allow that.
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
