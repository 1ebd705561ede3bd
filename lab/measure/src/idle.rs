//! The longest idle period of a process tree, and the tree's memory at the end of that period.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use heapdrome_schema::{AfterIdle, MemoryParts, Nanoseconds};

use crate::tree::{self, Process};

/// Minimum duration of an idle period.
const SHORTEST: Duration = Duration::from_secs(1);

/// Activity of a tree's processes at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Activity {
    /// Processor time of each process in clock ticks. The key is its id and its start time.
    ticks: BTreeMap<(libc::pid_t, u64), u64>,
    /// Whether any thread ran, waited for a processor, or waited for a disk.
    busy: bool,
}

impl Activity {
    pub(crate) fn of(processes: &[Process]) -> Self {
        let mut activity = Self::default();
        for process in processes {
            let Some(stat) = tree::stat_of(process.pid) else {
                continue;
            };
            let key = (process.pid, stat.started);
            activity.ticks.insert(key, stat.ticks);
            activity.busy |= threads_of(process.pid).any(|state| matches!(state, 'R' | 'D'));
        }
        activity
    }
}

/// Returns the state letter of each thread of a process, such as `R` for running.
fn threads_of(pid: libc::pid_t) -> impl Iterator<Item = char> {
    let folder = fs::read_dir(format!("/proc/{pid}/task"));
    let threads = folder.into_iter().flatten().flatten();
    threads.filter_map(|thread| {
        let text = fs::read(thread.path().join("stat")).ok()?;
        tree::parse_stat(&String::from_utf8_lossy(&text)).map(|stat| stat.state)
    })
}

/// Search for the longest idle period of a tree.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    /// Start of the current idle period, with the processor times at that moment.
    since: Option<(Nanoseconds, Activity)>,
    longest: Option<AfterIdle>,
}

impl Rest {
    /// Records the activity of the tree and its memory at one moment.
    pub(crate) fn observe(&mut self, activity: Activity, parts: MemoryParts) {
        let still = !activity.busy
            && self
                .since
                .as_ref()
                .is_some_and(|(_, before)| before.ticks == activity.ticks);
        if !still {
            self.since = (!activity.busy).then_some((parts.at, activity));
            return;
        }
        let idle = parts.at - self.since.as_ref().map_or(parts.at, |(since, _)| *since);
        let longer = self.longest.is_none_or(|known| idle >= known.idle);
        if Duration::from(idle) >= SHORTEST && longer {
            self.longest = Some(AfterIdle { idle, parts });
        }
    }

    /// Returns the memory at the end of the longest idle period; `None` if no period lasted at
    /// least [`SHORTEST`].
    pub(crate) fn longest(&self) -> Option<AfterIdle> {
        self.longest
    }
}

#[cfg(test)]
mod tests {
    use heapdrome_schema::Bytes;

    use super::*;

    fn at(milliseconds: u64, mebibytes: u64) -> MemoryParts {
        MemoryParts {
            at: Nanoseconds(milliseconds * 1_000_000),
            anonymous: Bytes(mebibytes << 20),
            ..MemoryParts::default()
        }
    }

    fn doing(ticks: u64, busy: bool) -> Activity {
        Activity {
            ticks: BTreeMap::from([((7, 1), ticks)]),
            busy,
        }
    }

    #[test]
    fn the_end_of_the_longest_rest_counts() {
        let mut rest = Rest::default();
        rest.observe(doing(5, true), at(0, 90));
        rest.observe(doing(5, false), at(100, 80));
        rest.observe(doing(5, false), at(1000, 70));
        assert_eq!(rest.longest(), None, "not a second yet");
        rest.observe(doing(5, false), at(1700, 30));
        rest.observe(doing(9, false), at(1800, 99));
        rest.observe(doing(9, false), at(2900, 95));
        let longest = rest.longest().expect("a rest");
        assert_eq!(longest.parts, at(1700, 30));
        assert_eq!(longest.idle, Nanoseconds(1_600_000_000));
    }

    #[test]
    fn whoever_waits_for_a_processor_does_not_rest() {
        let mut rest = Rest::default();
        for step in 0..50 {
            rest.observe(doing(5, step % 2 == 0), at(step * 100, 10));
        }
        assert_eq!(rest.longest(), None);
    }

    #[test]
    fn a_process_that_ends_is_no_rest() {
        let mut rest = Rest::default();
        rest.observe(doing(5, false), at(0, 10));
        rest.observe(Activity::default(), at(1500, 1));
        assert_eq!(rest.longest(), None);
    }
}
