//! Composition of a process tree's memory, read from `/proc/PID/smaps_rollup`.
//!
//! The kernel walks all pages of a process for each reading, so readings are rare, and [`Pace`]
//! bounds their cost.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use heapdrome_schema::{Bytes, MemoryParts, Nanoseconds};
use heapdrome_system::kernel::keyed;

use crate::tree::Process;

/// Default time between two readings of a tree's memory.
pub(crate) const INTERVAL: Duration = Duration::from_millis(50);
/// Divisor of the elapsed time. At the beginning, the next reading is due after `elapsed / EARLY`,
/// so that a short run has some readings, too.
const EARLY: u32 = 8;
/// Reciprocal of the maximum share of a run's time that readings take.
pub(crate) const SHARE: u32 = 20;

/// Schedule of readings. The next one is due [`INTERVAL`] after the previous one, or sooner at the
/// beginning. Readings are rare enough to take at most one [`SHARE`]th of the time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    started: Instant,
    due: Instant,
}

impl Pace {
    /// Creates a pace whose first reading is due at `now`.
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            started: now,
            due: now,
        }
    }

    /// Returns whether a reading is due at `now`.
    pub(crate) fn is_due(self, now: Instant) -> bool {
        now >= self.due
    }

    /// Records a reading that ended at `ended` and took `cost` of processor time. Time in which the
    /// reader waited for a processor does not count, because it does not disturb the run.
    pub(crate) fn took(&mut self, ended: Instant, cost: Duration) {
        let interval = INTERVAL.min((ended - self.started) / EARLY);
        self.due = ended + interval.max(cost * SHARE);
    }
}

/// Returns the processor time of this thread, or `None` if the kernel does not count it.
pub(crate) fn own_time() -> Option<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds = text.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanoseconds))
}

/// Composition of one process's memory, in KiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Rollup {
    anonymous: u64,
    huge: u64,
    lazily_freed: u64,
    file: u64,
    shared: u64,
    swapped: u64,
    /// Resident pages that were written and that no other process shares.
    private: u64,
}

/// Returns the composition of the memory of `processes`, which must list parents first, and the id
/// of the process with the most anonymous memory. Returns `None` if nothing can be read.
pub(crate) fn of(processes: &[Process], at: Nanoseconds) -> Option<(MemoryParts, libc::pid_t)> {
    let mut seen: BTreeMap<libc::pid_t, Rollup> = BTreeMap::new();
    let mut sum = Rollup::default();
    for process in processes {
        let Some(rollup) = rollup_of(process.pid) else {
            continue;
        };
        let parent = seen.get(&process.parent).copied();
        if !parent.is_some_and(|parent| is_same_memory(parent, rollup)) {
            sum = add(sum, rollup);
        }
        seen.insert(process.pid, rollup);
    }
    let largest = seen.iter().max_by_key(|(_, rollup)| rollup.anonymous);
    largest.map(|(pid, _)| (parts(sum, at), *pid))
}

fn parts(sum: Rollup, at: Nanoseconds) -> MemoryParts {
    MemoryParts {
        at,
        anonymous: Bytes::from_kib(sum.anonymous),
        huge: Bytes::from_kib(sum.huge),
        lazily_freed: Bytes::from_kib(sum.lazily_freed),
        file: Bytes::from_kib(sum.file),
        shared: Bytes::from_kib(sum.shared),
        swapped: Bytes::from_kib(sum.swapped),
    }
}

/// Returns whether a child uses its parent's address space, as between vfork and exec. A forked
/// child has equal sizes, too, but its pages are shared, so few of them are private.
fn is_same_memory(parent: Rollup, child: Rollup) -> bool {
    parent == child && 2 * child.private >= child.anonymous
}

fn add(one: Rollup, other: Rollup) -> Rollup {
    Rollup {
        anonymous: one.anonymous + other.anonymous,
        huge: one.huge + other.huge,
        lazily_freed: one.lazily_freed + other.lazily_freed,
        file: one.file + other.file,
        shared: one.shared + other.shared,
        swapped: one.swapped + other.swapped,
        private: one.private + other.private,
    }
}

fn rollup_of(pid: libc::pid_t) -> Option<Rollup> {
    parse(&fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?)
}

/// Parses proportional sizes (`Pss`): a page that several processes map counts in proportion for
/// each. Huge and lazily freed pages count fully for each, because the kernel reports no
/// proportional size for them.
fn parse(text: &str) -> Option<Rollup> {
    Some(Rollup {
        anonymous: keyed(text, "Pss_Anon:")?,
        huge: keyed(text, "AnonHugePages:")?,
        // A kernel before 4.12 has no such line, and does not report MADV_FREE pages separately.
        lazily_freed: keyed(text, "LazyFree:").unwrap_or(0),
        file: keyed(text, "Pss_File:")?,
        shared: keyed(text, "Pss_Shmem:")?,
        swapped: keyed(text, "SwapPss:")?,
        private: keyed(text, "Private_Dirty:")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROLLUP: &str = "\
        555f85d89000-7ffc1f1a4000 ---p 00000000 00:00 0     [rollup]\n\
        Rss:                1780 kB\n\
        Pss_Anon:            900 kB\n\
        Pss_File:            119 kB\n\
        Pss_Shmem:             7 kB\n\
        Private_Dirty:       880 kB\n\
        Anonymous:           930 kB\n\
        LazyFree:             40 kB\n\
        AnonHugePages:       512 kB\n\
        Swap:                 30 kB\n\
        SwapPss:              20 kB\n";

    #[test]
    fn a_rollup_is_read_in_proportion() {
        let rollup = parse(ROLLUP).expect("a rollup");
        let told = [rollup.anonymous, rollup.huge, rollup.lazily_freed];
        assert_eq!(told, [900, 512, 40]);
        assert_eq!([rollup.file, rollup.shared, rollup.swapped], [119, 7, 20]);
        assert_eq!(parse("Rss: 5 kB\n"), None);
    }

    #[test]
    fn a_child_in_its_parents_memory_is_told_from_a_forked_one() {
        let one = parse(ROLLUP).expect("a rollup");
        assert!(is_same_memory(one, one));
        let forked = Rollup { private: 8, ..one };
        assert!(!is_same_memory(forked, forked));
        assert!(!is_same_memory(
            one,
            Rollup {
                anonymous: 1,
                ..one
            }
        ));
    }

    #[test]
    fn costly_readings_are_rare() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        assert!(pace.is_due(start));
        let later = start + Duration::from_secs(1);
        pace.took(later, Duration::from_millis(1));
        assert!(!pace.is_due(later + INTERVAL - Duration::from_millis(1)));
        assert!(pace.is_due(later + INTERVAL));
        pace.took(later, Duration::from_millis(100));
        assert!(!pace.is_due(later + Duration::from_millis(1999)));
        assert!(pace.is_due(later + Duration::from_secs(2)));
    }

    #[test]
    fn a_short_run_has_readings_too() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        let readings = (0..40).filter(|millisecond| {
            let now = start + Duration::from_millis(*millisecond);
            let due = pace.is_due(now);
            if due {
                pace.took(now, Duration::from_micros(50));
            }
            due
        });
        assert!(readings.count() >= 10);
    }
}
