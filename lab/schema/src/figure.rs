//! Names of a row's figures, and the resolution of each figure.

/// Name, in a result, of wall time.
pub const WALL: &str = "wall_s";

/// Name, in a result, of processor time, which is the sum of user and system time.
pub const CPU: &str = "cpu_s";

/// Name, in a result, of the peak resident memory of the largest process.
pub const PEAK_RSS: &str = "peak_rss_bytes";

/// Size of a page in bytes, the unit of resident memory.
const PAGE: f64 = 4096.0;

/// One microsecond in seconds, the resolution of the kernel's processor times.
const MICROSECOND: f64 = 1e-6;

/// One nanosecond in seconds, the resolution of wall time.
const NANOSECOND: f64 = 1e-9;

/// Names of figures that heapdrome itself measures in a race, beginning with wall time. Only
/// untimed memory runs measure `peak_tree_bytes`.
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

/// Returns whether heapdrome itself measures a figure of this name in a race: one of
/// [`COMMON_FIGURES`], or the average memory of the process tree.
pub fn is_common_figure(name: &str) -> bool {
    COMMON_FIGURES.contains(&name) || name == "average_tree_bytes"
}

/// Returns the name of a figure for use in a sentence. Any figure except [`WALL`], [`CPU`] and
/// [`PEAK_RSS`] keeps its name.
pub fn spoken(figure: &str) -> &str {
    match figure {
        WALL => "wall time",
        CPU => "processor time",
        PEAK_RSS => "peak memory",
        metric => metric,
    }
}

/// Returns the smallest step between two values of a figure, in the figure's unit; 0 if the step is
/// unknown or negligible.
pub fn resolution(figure: &str) -> f64 {
    match figure {
        WALL => NANOSECOND,
        "user_s" | "system_s" | CPU => MICROSECOND,
        "peak_rss_bytes" | "peak_tree_bytes" => PAGE,
        "minor_faults" | "major_faults" | "voluntary_switches" | "involuntary_switches" => 1.0,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_that_heapdrome_measures_has_a_resolution() {
        let unknown = COMMON_FIGURES.iter().find(|name| resolution(name) <= 0.0);
        assert_eq!(unknown, None);
    }
}
