//! Current activity of the machine: load, stolen time, busy processes, swapping and throttling.

use std::collections::BTreeMap;
use std::time::Duration;

use heapdrome_schema::Condition;

use crate::memory;
use heapdrome_system::kernel::keyed;

use crate::tell::{good, note, read, unreadable, warning};

/// Time between the two readings of the counters.
const WINDOW: Duration = Duration::from_millis(500);

/// Total and stolen time of all processors in clock ticks, from the first line of `/proc/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Times {
    all: u64,
    steal: u64,
}

/// Counters read at the start or the end of [`WINDOW`].
struct Moment {
    times: Option<Times>,
    swapped: Option<u64>,
    throttled: Option<u64>,
    processes: BTreeMap<u32, (String, u64)>,
}

impl Moment {
    fn now() -> Self {
        let times = read("/proc/stat").as_deref().and_then(times);
        let swapped = read("/proc/vmstat").as_deref().and_then(swapped);
        let counts = crate::processor::of_each_processor("thermal_throttle/core_throttle_count");
        let counts: Vec<u64> = counts
            .iter()
            .filter_map(|count| count.parse().ok())
            .collect();
        let throttled = (!counts.is_empty()).then(|| counts.iter().sum());
        Self {
            times,
            swapped,
            throttled,
            processes: processes(),
        }
    }
}

/// Returns the conditions of the machine's activity. Takes as long as [`WINDOW`].
pub(crate) fn examine() -> Vec<Condition> {
    let before = Moment::now();
    std::thread::sleep(WINDOW);
    let after = Moment::now();
    let moved = match (before.swapped, after.swapped) {
        (Some(before), Some(after)) => Some(after.saturating_sub(before)),
        _ => None,
    };
    let processors = crate::system::usable_processors();
    vec![
        load(read("/proc/loadavg").as_deref(), processors),
        steal(before.times, after.times),
        busy(&before.processes, &after.processes),
        memory::swap(&read("/proc/meminfo").unwrap_or_default(), moved),
        throttling(before.throttled, after.throttled),
    ]
}

/// Returns the total and stolen time of all processors; `None` if the text does not show stolen
/// time.
fn times(stat: &str) -> Option<Times> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let numbers: Option<Vec<u64>> = line
        .split_whitespace()
        .map(|number| number.parse().ok())
        .collect();
    // The first eight are user, nice, system, idle, iowait, irq, softirq and steal. The guest times
    // after them are already included in user and nice.
    let numbers = numbers?;
    Some(Times {
        all: numbers.iter().take(8).sum(),
        steal: *numbers.get(7)?,
    })
}

/// Returns the number of pages swapped in and out since the machine started; `None` if the text
/// does not show it.
fn swapped(vmstat: &str) -> Option<u64> {
    Some(keyed(vmstat, "pswpin")? + keyed(vmstat, "pswpout")?)
}

/// Returns the name and the processor ticks of every process except this one. The map's key is the
/// process id.
fn processes() -> BTreeMap<u32, (String, u64)> {
    let Ok(folder) = std::fs::read_dir("/proc") else {
        return BTreeMap::new();
    };
    let numbers = folder.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let others = numbers.filter(|number| *number != std::process::id());
    let known = others.filter_map(|number| {
        Some((
            number,
            name_and_ticks(&read(&format!("/proc/{number}/stat"))?)?,
        ))
    });
    known.collect()
}

/// Parses the name and the ticks of user and system time from a process's `stat` file. The name is
/// in parentheses, and may itself contain parentheses and spaces.
fn name_and_ticks(stat: &str) -> Option<(String, u64)> {
    let (_, rest) = stat.split_once('(')?;
    let (name, rest) = rest.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some((name.to_owned(), user + system))
}

/// Checks the load: the average number of processes that ran, or waited for a processor or a disk,
/// in the last minute.
fn load(loadavg: Option<&str>, processors: usize) -> Condition {
    const NAME: &str = "load";
    const MEANING: &str = "other work takes processors, caches and memory bandwidth from the runs";
    const FIX: &str = "wait until the load has fallen; `top` shows the busy processes";
    let first = loadavg.and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
    let Some(load) = first else {
        return unreadable(NAME, "/proc/loadavg", MEANING);
    };
    let value = format!("{load:.2} over the last minute, {processors} processors");
    let share = load / processors.max(1) as f64;
    match share {
        share if share < 0.15 => good(NAME, value, MEANING),
        share if share < 0.5 => note(NAME, value, MEANING, Some(FIX)),
        _ => warning(NAME, value, MEANING, FIX),
    }
}

/// Checks the time that the hypervisor gave to other machines while this machine wanted to run.
fn steal(before: Option<Times>, after: Option<Times>) -> Condition {
    const NAME: &str = "steal";
    const MEANING: &str = "the hypervisor stops this machine while runs are timed";
    const FIX: &str = "race at a quieter time, or on a machine with dedicated processors";
    let (Some(before), Some(after)) = (before, after) else {
        return unreadable(NAME, "/proc/stat", MEANING);
    };
    let all = after.all.saturating_sub(before.all);
    let stolen = after.steal.saturating_sub(before.steal);
    if all == 0 {
        return unreadable(NAME, "/proc/stat does not advance", MEANING);
    }
    let now = stolen as f64 / all as f64;
    let since_start = after.steal as f64 / after.all.max(1) as f64;
    let value = format!(
        "{:.1}% now, {:.1}% since the start",
        now * 100.0,
        since_start * 100.0
    );
    if now >= 0.02 || since_start >= 0.05 {
        warning(NAME, value, MEANING, FIX)
    } else if stolen > 0 || since_start >= 0.005 {
        note(NAME, value, MEANING, Some(FIX))
    } else {
        good(NAME, value, MEANING)
    }
}

/// Checks for processes that used a noticeable share of a processor during the observation. Lists
/// at most three, the busiest first.
fn busy(before: &BTreeMap<u32, (String, u64)>, after: &BTreeMap<u32, (String, u64)>) -> Condition {
    const NAME: &str = "busy processes";
    const MEANING: &str = "they compete with the runs for processors and caches";
    const FIX: &str = "stop them while the race runs, or move the race away with --pin";
    if after.is_empty() {
        return unreadable(NAME, "/proc shows no other process", MEANING);
    }
    let used = after.iter().filter_map(|(number, (name, ticks))| {
        let earlier = before.get(number).map_or(0, |(_, ticks)| *ticks);
        let percent = ticks.saturating_sub(earlier) * 1000 / WINDOW.as_millis() as u64;
        (before.contains_key(number) && percent >= 10).then_some((percent, number, name))
    });
    let mut used: Vec<_> = used.collect();
    used.sort_by(|a, b| b.cmp(a));
    let told = used
        .iter()
        .take(3)
        .map(|(percent, number, name)| format!("{name} ({number}) {percent}%"));
    let value = told.collect::<Vec<_>>().join(", ");
    match used.first() {
        None => good(NAME, "none", MEANING),
        Some((percent, ..)) if *percent < 30 => note(NAME, value, MEANING, Some(FIX)),
        Some(_) => warning(NAME, value, MEANING, FIX),
    }
}

/// Checks whether heat throttled the processor, during the observation or at any time since the
/// machine started.
fn throttling(before: Option<u64>, after: Option<u64>) -> Condition {
    const NAME: &str = "thermal throttling";
    const MEANING: &str = "a hot processor slows down, the later runs of a race most";
    const FIX: &str = "let the machine cool down, and turn frequency boost off";
    let (Some(before), Some(after)) = (before, after) else {
        return unreadable(NAME, "thermal_throttle/core_throttle_count", MEANING);
    };
    match after.saturating_sub(before) {
        0 if after == 0 => good(NAME, "never since the start", MEANING),
        0 => note(
            NAME,
            format!("{after} times since the start, not now"),
            MEANING,
            Some(FIX),
        ),
        now => warning(NAME, format!("{now} times just now"), MEANING, FIX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapdrome_schema::Level;

    const STAT: &str = "cpu  100 0 50 800 10 0 5 35 7 0\ncpu0 1 2 3\n";

    #[test]
    fn guest_time_is_not_counted_twice() {
        assert_eq!(
            times(STAT),
            Some(Times {
                all: 1000,
                steal: 35
            })
        );
        assert_eq!(
            times("cpu  1 2 3\n"),
            None,
            "a kernel without steal tells nothing"
        );
        assert_eq!(times("intr 5\n"), None);
    }

    #[test]
    fn stolen_time_is_judged_over_the_window() {
        let before = Some(Times {
            all: 10_000,
            steal: 0,
        });
        let level = |steal_now| {
            steal(
                before,
                Some(Times {
                    all: 10_100,
                    steal: steal_now,
                }),
            )
            .level
        };
        assert_eq!(level(0), Level::Good);
        assert_eq!(level(1), Level::Note);
        assert_eq!(level(5), Level::Warning);
        assert!(steal(None, before).value.starts_with("not readable here"));
        assert!(steal(before, before).value.starts_with("not readable here"));
    }

    #[test]
    fn load_is_judged_by_the_processors_there_are() {
        assert_eq!(load(Some("0.60 0.5 0.4 1/96 6062"), 2).level, Level::Note);
        assert_eq!(load(Some("0.60 0.5 0.4 1/96 6062"), 16).level, Level::Good);
        assert_eq!(
            load(Some("3.00 0.5 0.4 1/96 6062"), 2).level,
            Level::Warning
        );
        assert!(load(Some("x"), 2).value.starts_with("not readable here"));
    }

    #[test]
    fn a_processs_name_may_hold_anything() {
        let stat = "42 (a) b (c) R 1 1 1 0 -1 4194304 100 0 0 0 70 30 0 0 20 0 1 0 5 0 0";
        assert_eq!(name_and_ticks(stat), Some(("a) b (c".to_owned(), 100)));
        assert_eq!(name_and_ticks("42 nonsense"), None);
    }

    #[test]
    fn only_what_worked_during_the_window_is_busy() {
        let at = |ticks: [u64; 2]| {
            BTreeMap::from([
                (7, ("ld".to_owned(), ticks[0])),
                (8, ("old".to_owned(), ticks[1])),
            ])
        };
        let told = busy(&at([100, 9000]), &at([140, 9000]));
        assert_eq!(
            (told.value.as_str(), told.level),
            ("ld (7) 80%", Level::Warning)
        );
        assert_eq!(busy(&at([1, 1]), &at([1, 1])).level, Level::Good);
    }

    #[test]
    fn throttling_now_is_worse_than_before() {
        assert_eq!(throttling(Some(5), Some(5)).level, Level::Note);
        assert_eq!(throttling(Some(5), Some(6)).level, Level::Warning);
        assert_eq!(throttling(Some(0), Some(0)).level, Level::Good);
        assert!(
            throttling(None, None)
                .value
                .starts_with("not readable here")
        );
    }

    #[test]
    fn swap_traffic_is_in_and_out() {
        assert_eq!(swapped("nr_x 1\npswpin 3\npswpout 4\n"), Some(7));
        assert_eq!(swapped("nr_x 1\n"), None);
    }
}
