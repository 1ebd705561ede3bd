//! Access to the rows of a result, and to their samples by figure.

use crate::{EntrantResult, RaceResult, Role, Series, Status};

impl EntrantResult {
    /// Returns the samples of a figure in the order of the runs; `None` if the row lacks the figure
    /// or has no finite sample. The figure is one of [`COMMON_FIGURES`](crate::COMMON_FIGURES), or
    /// one that the command or the workload reported.
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
    /// Truncates samples in round order to the first `least_rounds` rounds, which every entrant
    /// ran. Without `least_rounds`, returns all samples. When decided entrants stop early, the
    /// number of later rounds depends on the results so far. This dependence would invalidate an
    /// interval for a single look.
    pub fn first_rounds(&self, mut samples: Vec<f64>) -> Vec<f64> {
        let least = self.least_rounds.map(usize::try_from);
        samples.truncate(least.and_then(Result::ok).unwrap_or(usize::MAX));
        samples
    }

    /// Returns the row of the baseline, even if it is invalid.
    pub fn baseline_row(&self) -> Option<&EntrantResult> {
        let mut rows = self.entrants.iter();
        rows.find(|row| row.role == Role::Baseline)
    }

    /// Returns the row of an allocator, if the row is valid. The baseline's twin is excluded.
    pub fn row(&self, allocator: &str) -> Option<&EntrantResult> {
        let mut own = self
            .entrants
            .iter()
            .filter(|row| row.role != Role::Twin && row.status == Status::Ok);
        own.find(|row| row.allocator == allocator)
    }
}
