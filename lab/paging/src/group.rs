//! Control groups of memory: where this process is, and which limits it is under.

use std::fs;
use std::path::{Path, PathBuf};

/// The two kinds of hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    One,
    Two,
}

/// Where this process is in a hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) version: Version,
    /// The folder where the hierarchy is mounted.
    pub(crate) mount: PathBuf,
    /// The folder of the process's own group.
    pub(crate) own: PathBuf,
}

/// Limits of the group that a process is in.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seen {
    /// Of memory; `None` for no limit.
    pub memory: Option<u64>,
    /// Of swap; `None` for no limit.
    pub swap: Option<u64>,
    /// The quota of processor time, in processors; `None` for no quota.
    pub processors: Option<f64>,
}

/// The limits that this process reads in its own group.
#[must_use]
pub fn seen_limit() -> Seen {
    let read = |version, controller| {
        place(version, controller)
            .map(|place| limits_of(version, &place.own))
            .filter(|seen| seen.memory.is_some())
    };
    let seen = read(Version::One, "memory").or_else(|| read(Version::Two, "memory"));
    let quota = |version| quota_of(version, &place(version, "cpu")?.own);
    Seen {
        processors: quota(Version::One).or_else(|| quota(Version::Two)),
        ..seen.unwrap_or_default()
    }
}

/// The quota of processor time that a group's files tell, in processors.
pub(crate) fn quota_of(version: Version, folder: &Path) -> Option<f64> {
    let text = |file: &str| fs::read_to_string(folder.join(file)).ok();
    let (quota, period) = match version {
        Version::One => (text("cpu.cfs_quota_us")?, text("cpu.cfs_period_us")?),
        Version::Two => {
            let both = text("cpu.max")?;
            let (quota, period) = both.split_once(' ')?;
            (quota.to_owned(), period.to_owned())
        }
    };
    // Without a quota there is -1, or a word.
    let number = |text: &str| {
        text.trim()
            .parse()
            .ok()
            .filter(|number: &f64| *number > 0.0)
    };
    Some(number(&quota)? / number(&period)?)
}

/// What the kernel has counted in the group that this process is in; see [`tally_of`].
#[must_use]
pub fn own_tally() -> Tally {
    let read = |version| {
        let place = place(version, "memory")?;
        let limited = limits_of(version, &place.own).memory.is_some();
        limited.then(|| tally_of(version, &place.own))
    };
    read(Version::One)
        .or_else(|| read(Version::Two))
        .unwrap_or_default()
}

/// What the kernel has counted in a group; `None` where it does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How often the limit of memory was met, which is when the kernel reclaims.
    pub limit_hits: Option<u64>,
    /// How often the limit of swap was met.
    pub swap_limit_hits: Option<u64>,
    /// Processes that were killed for memory.
    pub oom_kills: Option<u64>,
    /// The most memory that was charged at once, in bytes; page cache is part of it.
    pub peak: Option<u64>,
}

impl Tally {
    /// As figures, by the names under which they are recorded.
    #[must_use]
    pub fn figures(&self) -> Vec<(String, f64)> {
        let all = [
            ("group_limit_hits", self.limit_hits),
            ("group_swap_limit_hits", self.swap_limit_hits),
            ("group_oom_kills", self.oom_kills),
            ("group_peak_bytes", self.peak),
        ];
        let known = |(name, value): (&str, Option<u64>)| Some((name.to_owned(), value? as f64));
        all.into_iter().filter_map(known).collect()
    }
}

/// What a group's files have counted.
pub(crate) fn tally_of(version: Version, folder: &Path) -> Tally {
    let number = |file: &str| -> Option<u64> {
        let text = fs::read_to_string(folder.join(file)).ok()?;
        text.trim().parse().ok()
    };
    let line = |file: &str, name: &str| -> Option<u64> {
        let text = fs::read_to_string(folder.join(file)).ok()?;
        let value = |line: &str| line.strip_prefix(name)?.trim().parse().ok();
        text.lines().find_map(value)
    };
    match version {
        Version::One => Tally {
            limit_hits: number("memory.failcnt"),
            swap_limit_hits: number("memory.memsw.failcnt"),
            oom_kills: line("memory.oom_control", "oom_kill "),
            peak: number("memory.max_usage_in_bytes"),
        },
        Version::Two => Tally {
            limit_hits: line("memory.events", "max "),
            swap_limit_hits: line("memory.swap.events", "max "),
            oom_kills: line("memory.events", "oom_kill "),
            peak: number("memory.peak"),
        },
    }
}

/// The limits of memory and swap that a group's files tell.
pub(crate) fn limits_of(version: Version, folder: &Path) -> Seen {
    let number = |file: &str| {
        let text = fs::read_to_string(folder.join(file)).ok()?;
        text.trim()
            .parse()
            .ok()
            .filter(|bytes: &u64| *bytes < 1 << 60)
    };
    match version {
        Version::Two => Seen {
            memory: number("memory.max"),
            swap: number("memory.swap.max"),
            processors: None,
        },
        Version::One => {
            let memory: Option<u64> = number("memory.limit_in_bytes");
            let both: Option<u64> = number("memory.memsw.limit_in_bytes");
            let swap = both
                .zip(memory)
                .map(|(both, memory)| both.saturating_sub(memory));
            Seen {
                memory,
                swap,
                processors: None,
            }
        }
    }
}

/// Where this process is in the hierarchy that has `controller`.
pub(crate) fn place(version: Version, controller: &str) -> Option<Place> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    locate(version, controller, &groups, &mounts)
}

fn locate(version: Version, controller: &str, groups: &str, mounts: &str) -> Option<Place> {
    let path = groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (names, path) = (fields.next()?, fields.next()?);
        let right = match version {
            Version::One => names.split(',').any(|name| name == controller),
            Version::Two => names.is_empty(),
        };
        right.then_some(path)
    })?;
    mounts.lines().find_map(|line| {
        let (mount, system) = line.split_once(" - ")?;
        let mut system = system.split_whitespace();
        let kind = system.next()?;
        let options = system.nth(1).unwrap_or_default();
        let right = match version {
            Version::One => kind == "cgroup" && options.split(',').any(|one| one == controller),
            Version::Two => kind == "cgroup2",
        };
        let mut fields = mount.split_whitespace().skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        let inside = path
            .strip_prefix(root.trim_end_matches('/'))
            .unwrap_or(path);
        right.then(|| Place {
            version,
            mount: point.into(),
            own: Path::new(point).join(inside.trim_start_matches('/')),
        })
    })
}

impl Place {
    /// The folders in which a group with `controller` may be made, the nearest first.
    pub(crate) fn parents(&self, controller: &str) -> Vec<PathBuf> {
        let inside = self
            .own
            .ancestors()
            .take_while(|folder| folder.starts_with(&self.mount));
        inside
            .filter(|folder| self.version == Version::One || hands_down(folder, controller))
            .map(Path::to_owned)
            .collect()
    }
}

/// Whether groups below a version 2 group have the controller.
fn hands_down(folder: &Path, controller: &str) -> bool {
    let text = fs::read_to_string(folder.join("cgroup.subtree_control")).unwrap_or_default();
    text.split_whitespace().any(|name| name == controller)
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = "4:memory:/jobs/a\n2:cpuacct,cpu:/\n0::/\n";
    const V1_MOUNTS: &str = "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n41 31 0:38 / /sys/fs/cgroup/unified rw shared:9 - cgroup2 cgroup2 rw\n";
    const V2: &str = "0::/user.slice/session-2.scope\n";
    const V2_MOUNTS: &str = "29 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n";

    #[test]
    fn the_group_of_either_version_is_found() {
        let one = locate(Version::One, "memory", V1, V1_MOUNTS).expect("mounted");
        assert_eq!(one.own, Path::new("/sys/fs/cgroup/memory/jobs/a"));
        assert_eq!(one.parents("memory").len(), 3);
        let two = locate(Version::Two, "memory", V2, V2_MOUNTS).expect("mounted");
        assert_eq!(
            two.own,
            Path::new("/sys/fs/cgroup/user.slice/session-2.scope")
        );
        assert_eq!(locate(Version::One, "memory", V2, V2_MOUNTS), None);
    }

    #[test]
    fn a_container_sees_its_own_group_as_the_root() {
        let mounts = "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
        let place = locate(Version::One, "memory", "4:memory:/docker/abc\n", mounts);
        assert_eq!(
            place.expect("mounted").own,
            Path::new("/sys/fs/cgroup/memory")
        );
    }

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
        assert_eq!((seen.memory, seen.swap), (Some(1 << 20), Some(2 << 20)));
        write("memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(limits_of(Version::One, folder.path()).memory, None);
    }

    #[test]
    fn a_quota_is_told_from_none() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let write = |file: &str, text: &str| {
            fs::write(folder.path().join(file), text).expect("written");
        };
        let quota = |version| quota_of(version, folder.path());
        assert_eq!((quota(Version::One), quota(Version::Two)), (None, None));
        write("cpu.max", "max 100000\n");
        write("cpu.cfs_quota_us", "-1\n");
        write("cpu.cfs_period_us", "100000\n");
        assert_eq!((quota(Version::One), quota(Version::Two)), (None, None));
        write("cpu.max", "150000 100000\n");
        write("cpu.cfs_quota_us", "1600000\n");
        assert_eq!(
            (quota(Version::One), quota(Version::Two)),
            (Some(16.0), Some(1.5))
        );
    }

    /// The files as either version of the kernel writes them.
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
            peak: Some(4096),
        };
        assert_eq!(tally_of(Version::One, folder.path()), one);
        write("memory.events", "low 0\nhigh 0\nmax 7\noom 1\noom_kill 1\n");
        let two = tally_of(Version::Two, folder.path());
        assert_eq!((two.limit_hits, two.oom_kills), (Some(7), Some(1)));
        assert_eq!((two.swap_limit_hits, two.peak), (None, None));
        let names: Vec<_> = two.figures().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["group_limit_hits", "group_oom_kills"]);
    }

    #[test]
    fn only_a_group_that_hands_the_controller_down_is_a_parent() {
        let mount = tempfile::tempdir().expect("a temporary folder");
        let own = mount.path().join("a/b");
        fs::create_dir_all(&own).expect("made");
        fs::write(mount.path().join("cgroup.subtree_control"), "cpu memory\n").expect("written");
        fs::write(own.join("cgroup.subtree_control"), "cpu\n").expect("written");
        let place = Place {
            version: Version::Two,
            mount: mount.path().to_owned(),
            own,
        };
        assert_eq!(place.parents("memory"), [mount.path()]);
    }
}
