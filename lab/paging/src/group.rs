//! Control groups for memory: the group of this process, its limits and its counts.

use std::path::Path;

use heapdrome_schema::Bytes;
use heapdrome_system::group::{Group, Version, field, limit, memory_limit, number, quota};

/// The limits of a process's group.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seen {
    /// The memory limit; `None` for no limit.
    pub memory: Option<Bytes>,
    /// The swap limit; `None` for no limit.
    pub swap: Option<Bytes>,
    /// The quota of processor time, in processors; `None` for no quota.
    pub processors: Option<f64>,
}

/// Reads the limits of this process's own group.
#[must_use]
pub fn seen_limit() -> Seen {
    let mut limits = Group::both("memory").map(|own| limits_of(own.version, &own.folder));
    let mut quotas = Group::both("cpu").map(|own| quota(own.version, &own.folder));
    Seen {
        processors: quotas.find_map(|quota| quota),
        ..limits
            .find(|seen| seen.memory.is_some())
            .unwrap_or_default()
    }
}

/// Reads the kernel's counts in the group of this process; see [`tally_of`]. Returns no counts if
/// the group has no memory limit.
#[must_use]
pub fn own_tally() -> Tally {
    let limited = |own: &Group| memory_limit(own.version, &own.folder).is_some();
    let own = Group::both("memory").find(limited);
    own.map(|own| tally_of(own.version, &own.folder))
        .unwrap_or_default()
}

/// The kernel's counts in a group; `None` where the kernel does not report one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of times that the memory limit was hit. Each time, the kernel reclaims memory.
    pub limit_hits: Option<u64>,
    /// Number of times that the swap limit was hit. In version 1 of the interface, this limit
    /// covers memory and swap together.
    pub swap_limit_hits: Option<u64>,
    /// Number of processes that the OOM killer killed.
    pub oom_kills: Option<u64>,
    /// Maximum memory charged at any moment, including page cache.
    pub peak: Option<Bytes>,
}

impl Tally {
    /// Returns the counts as figures, each with the name under which it is recorded.
    #[must_use]
    pub fn figures(&self) -> Vec<(String, f64)> {
        let all = [
            ("group_limit_hits", self.limit_hits),
            ("group_swap_limit_hits", self.swap_limit_hits),
            ("group_oom_kills", self.oom_kills),
            ("group_peak_bytes", self.peak.map(|peak| peak.0)),
        ];
        let known = |(name, value): (&str, Option<u64>)| Some((name.to_owned(), value? as f64));
        all.into_iter().filter_map(known).collect()
    }
}

/// Reads the counts from a group's files.
pub(crate) fn tally_of(version: Version, folder: &Path) -> Tally {
    let number = |file| number(folder, file);
    let field = |file, key| field(folder, file, key);
    match version {
        Version::One => Tally {
            limit_hits: number("memory.failcnt"),
            swap_limit_hits: number("memory.memsw.failcnt"),
            oom_kills: field("memory.oom_control", "oom_kill"),
            peak: number("memory.max_usage_in_bytes").map(Bytes),
        },
        Version::Two => Tally {
            limit_hits: field("memory.events", "max"),
            swap_limit_hits: field("memory.swap.events", "max"),
            oom_kills: field("memory.events", "oom_kill"),
            peak: number("memory.peak").map(Bytes),
        },
    }
}

/// Reads the limits of memory and swap from a group's files.
pub(crate) fn limits_of(version: Version, folder: &Path) -> Seen {
    let memory = memory_limit(version, folder);
    let of_swap = |file| limit(folder, file);
    let swap = match version {
        Version::Two => of_swap("memory.swap.max"),
        Version::One => {
            let both = of_swap("memory.memsw.limit_in_bytes").zip(memory);
            both.map(|(both, memory)| both - memory)
        }
    };
    Seen {
        memory,
        swap,
        processors: None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn limits_are_told_from_none() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let write = |file: &str, text: &str| {
            fs::write(folder.path().join(file), text).expect("written");
        };
        write("memory.max", "max\n");
        assert_eq!(limits_of(Version::Two, folder.path()), Seen::default());
        write("memory.limit_in_bytes", "1048576\n");
        write("memory.memsw.limit_in_bytes", "3145728\n");
        let seen = limits_of(Version::One, folder.path());
        assert_eq!(
            (seen.memory, seen.swap),
            (Some(Bytes(1 << 20)), Some(Bytes(2 << 20)))
        );
        write("memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(limits_of(Version::One, folder.path()).memory, None);
    }

    /// Tests files in the format of each version of the kernel's interface.
    #[test]
    fn kills_and_hits_are_read_from_either_kind_of_group() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let write = |file: &str, text: &str| {
            fs::write(folder.path().join(file), text).expect("written");
        };
        assert_eq!(tally_of(Version::One, folder.path()), Tally::default());
        write("memory.failcnt", "12\n");
        write("memory.memsw.failcnt", "3\n");
        write(
            "memory.oom_control",
            "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
        );
        write("memory.max_usage_in_bytes", "4096\n");
        let one = Tally {
            limit_hits: Some(12),
            swap_limit_hits: Some(3),
            oom_kills: Some(2),
            peak: Some(Bytes(4096)),
        };
        assert_eq!(tally_of(Version::One, folder.path()), one);
        write("memory.events", "low 0\nhigh 0\nmax 7\noom 1\noom_kill 1\n");
        let two = tally_of(Version::Two, folder.path());
        assert_eq!((two.limit_hits, two.oom_kills), (Some(7), Some(1)));
        assert_eq!((two.swap_limit_hits, two.peak), (None, None));
        let names: Vec<_> = two.figures().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["group_limit_hits", "group_oom_kills"]);
    }
}
