//! The figures of an entrant's row by name.

use heapdrome_record::{EntrantResult, Member, RaceResult, Role, Series, Status};

/// A page of memory, in which resident memory is counted.
const PAGE: f64 = 4096.0;

/// A microsecond, in which the kernel reports CPU time.
const MICROSECOND: f64 = 1e-6;

/// The samples of a figure of an entrant, in the order of the rounds: one that every race has, or
/// one that the workload reported.
pub(crate) fn samples(entrant: &EntrantResult, figure: &str) -> Option<Vec<f64>> {
    let all = |series: &Option<Series>| series.as_ref().map(|series| series.samples.clone());
    let found = match figure {
        "wall_s" => all(&entrant.wall_s),
        "user_s" => all(&entrant.user_s),
        "system_s" => all(&entrant.system_s),
        "cpu_s" => {
            let (user, system) = (all(&entrant.user_s)?, all(&entrant.system_s)?);
            Some(user.iter().zip(&system).map(|(a, b)| a + b).collect())
        }
        "peak_rss_bytes" => all(&entrant.peak_rss_bytes),
        "peak_tree_bytes" => all(&entrant.peak_tree_bytes),
        "minor_faults" => all(&entrant.minor_faults),
        name => entrant.metrics.get(name).map(|one| one.samples.clone()),
    };
    found.filter(|samples| samples.iter().any(|sample| sample.is_finite()))
}

/// The step in which a figure is read.
pub(crate) fn resolution(figure: &str) -> f64 {
    match figure {
        "user_s" | "system_s" | "cpu_s" => MICROSECOND,
        "peak_rss_bytes" | "peak_tree_bytes" => PAGE,
        "minor_faults" => 1.0,
        _ => 0.0,
    }
}

/// The row of an allocator, if it counts; the baseline's second name is nobody's row.
pub(crate) fn row<'a>(result: &'a RaceResult, allocator: &str) -> Option<&'a EntrantResult> {
    let rows = result.entrants.iter();
    let own = rows.filter(|row| row.role != Role::Twin && row.status == Status::Ok);
    own.clone().find(|row| row.allocator == allocator)
}

/// Why an allocator has no row that counts, in words.
pub(crate) fn missing(result: &RaceResult, allocator: &str) -> &'static str {
    let row = result
        .entrants
        .iter()
        .find(|row| row.allocator == allocator);
    match row.map(|row| row.status) {
        None => "did not race",
        Some(Status::Failed) => "failed",
        Some(Status::NotServed) => "did not serve malloc",
        Some(Status::Timeout) => "ran out of time",
        Some(Status::Ok) => "has no such figure",
    }
}

/// The members of a collection that fill a cell of a suite, by rising value of the sweep.
pub(crate) fn of_cell<'a>(members: &[&'a Member], suite: &str, cell: &str) -> Vec<&'a Member> {
    let full = format!("{suite}/{cell}");
    let mut found: Vec<&Member> = members.iter().copied().filter(|m| m.cell == full).collect();
    found.sort_by_key(|member| member.swept);
    found
}
