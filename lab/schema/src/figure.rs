//! The figures of a row by their names, and how finely they are read.

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

/// Whether every race has a figure of this name: one of [`COMMON_FIGURES`], or the average of the
/// process tree.
pub fn is_common_figure(name: &str) -> bool {
    COMMON_FIGURES.contains(&name) || name == "average_tree_bytes"
}

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
