//! Invented races of the entrants that race by default.

use std::collections::BTreeMap;

use heapdrome_schema::{Comparison, EntrantResult, RaceResult, Role, Verdict};

use crate::races::{compared, full, usual};

/// A ratio, and the distance from it to either end of its interval.
pub type Ratio = (f64, f64);

/// A ratio whose interval contains 1, and also values more than 2% away from 1.
pub const EVEN: Ratio = (1.0, 0.03);
/// A ratio whose interval lies within 2% of 1.
pub const SAME: Ratio = (1.0, 0.01);

/// Names of the rivals of the system's allocator.
pub const RIVALS: [&str; 6] = [
    "system-huge",
    "mimalloc2",
    "mimalloc3",
    "jemalloc",
    "snmalloc",
    "rpmalloc",
];

/// Returns a comparison with the interval from `ratio - spread` to `ratio + spread`. Its verdict is
/// `less` if the interval lies below 1, and `more` if it lies above 1.
fn judged((ratio, spread): Ratio, [less, more]: [Verdict; 2]) -> Comparison {
    let verdict = match (ratio - spread, ratio + spread) {
        (_, high) if high < 1.0 => less,
        (low, _) if low > 1.0 => more,
        _ => Verdict::Undecided,
    };
    compared(verdict, ratio, spread)
}

/// Returns a rival with these ratios of wall time, processor time and peak memory.
pub fn rival(name: &str, [wall, processor, memory]: [Ratio; 3]) -> EntrantResult {
    let time = [Verdict::Faster, Verdict::Slower];
    let mut rival = full(name, Role::Rival, 0.119 * wall.0, 20.3 * memory.0);
    let baseline = 0.117;
    for series in [&mut rival.user_s, &mut rival.system_s] {
        *series = crate::races::series(baseline * processor.0 / 2.0);
    }
    rival.versus_baseline = BTreeMap::from([
        ("wall_s".to_owned(), judged(wall, time)),
        ("cpu_s".to_owned(), judged(processor, time)),
        (
            "peak_rss_bytes".to_owned(),
            judged(memory, [Verdict::Less, Verdict::More]),
        ),
    ]);
    if name == "system-huge" {
        rival.library = None;
        let setting = ("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1");
        rival.settings = BTreeMap::from([(setting.0.to_owned(), setting.1.to_owned())]);
    }
    rival
}

/// Returns a race in which the rivals in `known` have their ratios, and all other default entrants
/// have the ratios `others`.
pub fn race(known: &[(&str, [Ratio; 3])], others: [Ratio; 3]) -> RaceResult {
    let mut result = usual();
    result.command = ["jq", ".", "items.json"].map(str::to_owned).to_vec();
    result.rounds = 32;
    result.options.judged = ["wall_s", "cpu_s"].map(str::to_owned).to_vec();
    result.remarks.clear();
    let mut baseline = full("system", Role::Baseline, 0.119, 20.3);
    baseline.library = None;
    for series in [&mut baseline.user_s, &mut baseline.system_s] {
        *series = crate::races::series(0.0585);
    }
    let mut twin = baseline.clone();
    (twin.allocator, twin.role) = ("system (again)".to_owned(), Role::Twin);
    let ratios = |name: &str| {
        let known = known.iter().find(|(known, _)| *known == name);
        known.map_or(others, |(_, ratios)| *ratios)
    };
    let rivals = RIVALS.map(|name| rival(name, ratios(name)));
    result.entrants = [baseline, twin].into_iter().chain(rivals).collect();
    result
}

/// Returns `result` with this smallest detectable difference in wall time and in processor time.
pub fn with_noise(mut result: RaceResult, smallest: f64) -> RaceResult {
    if let Some(noise) = &mut result.noise_floor {
        noise.smallest_difference = smallest;
        let judged = ["wall_s", "cpu_s"].map(|name| (name.to_owned(), smallest));
        noise.smallest_by_figure = BTreeMap::from(judged);
    }
    result
}
