//! Control groups: the group of this process in both kinds of hierarchy, and the values in a
//! group's files.

use std::fs;
use std::path::{Path, PathBuf};

use heapdrome_schema::Bytes;

use crate::kernel::keyed;

/// Smallest value that means "no limit" in version 1.
const NO_LIMIT: u64 = 1 << 60;

/// Version of a control group hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Several hierarchies, each with some of the controllers.
    One,
    /// One hierarchy for all controllers.
    Two,
}

/// Group of this process in a hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Version of the hierarchy.
    pub version: Version,
    /// Folder in which the hierarchy is mounted.
    pub mount: PathBuf,
    /// Folder of the group.
    pub folder: PathBuf,
}

impl Group {
    /// Returns the group of this process in a hierarchy of `version`. In version 1, this is the
    /// hierarchy of `controller`; in version 2, it is the only one, even if it lacks the
    /// controller. `None` if the hierarchy is not mounted.
    pub fn of_this_process(version: Version, controller: &str) -> Option<Self> {
        let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        Self::locate(version, controller, &groups, &mounts)
    }

    /// Returns the groups of this process in both versions, version 1 first. A controller is in
    /// only one hierarchy, but many machines mount both versions.
    pub fn both(controller: &str) -> impl Iterator<Item = Self> + use<'_> {
        let versions = [Version::One, Version::Two].into_iter();
        versions.filter_map(|version| Self::of_this_process(version, controller))
    }

    /// Finds the group from the texts of `/proc/self/cgroup` and `/proc/self/mountinfo`. In a
    /// container, the container's own group appears as the root of the hierarchy. Returns `None` if
    /// the hierarchy is not mounted, or the group is outside the mounted part.
    pub fn locate(version: Version, controller: &str, groups: &str, mounts: &str) -> Option<Self> {
        let has = |names: &str| names.split(',').any(|name| name == controller);
        let path = groups.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let (names, path) = (fields.next()?, fields.next()?);
            let right = match version {
                Version::One => has(names),
                Version::Two => names.is_empty(),
            };
            right.then_some(path)
        })?;
        mounts.lines().find_map(|line| {
            let (mount, system) = line.split_once(" - ")?;
            let mut system = system.split_whitespace();
            let kind = system.next()?;
            let right = match version {
                Version::One => kind == "cgroup" && has(system.nth(1).unwrap_or_default()),
                Version::Two => kind == "cgroup2",
            };
            let mut fields = mount.split_whitespace().skip(3);
            let (root, point) = (fields.next()?, fields.next()?);
            let inside = Path::new(path).strip_prefix(root).ok()?;
            right.then(|| Self {
                version,
                mount: point.into(),
                folder: Path::new(point).join(inside),
            })
        })
    }

    /// Returns the visible folders of the group and its ancestors, the nearest first.
    pub fn upwards(&self) -> impl Iterator<Item = &Path> {
        let inside = |folder: &&Path| folder.starts_with(&self.mount);
        self.folder.ancestors().take_while(inside)
    }

    /// Returns the folders in which groups with `controller` may be created, the nearest first. In
    /// version 2, these are the groups that enable the controller for their subgroups.
    pub fn parents(&self, controller: &str) -> Vec<PathBuf> {
        let may = |folder: &&Path| {
            self.version == Version::One || lists(folder, "cgroup.subtree_control", controller)
        };
        self.upwards().filter(may).map(Path::to_owned).collect()
    }
}

/// Returns whether a group's file is a list of words that contains `word`.
pub fn lists(folder: &Path, file: &str, word: &str) -> bool {
    text(folder, file).is_some_and(|text| text.split_whitespace().any(|one| one == word))
}

fn text(folder: &Path, file: &str) -> Option<String> {
    fs::read_to_string(folder.join(file)).ok()
}

/// Reads a number from a group's file; `None` for a word such as `max`, or if the file is
/// unreadable.
pub fn number(folder: &Path, file: &str) -> Option<u64> {
    text(folder, file)?.trim().parse().ok()
}

/// Reads the number after `key` from a group's file of key-value lines.
pub fn field(folder: &Path, file: &str, key: &str) -> Option<u64> {
    keyed(&text(folder, file)?, key)
}

/// Reads a limit from a group's file; `None` if there is no limit or the file is unreadable.
pub fn limit(folder: &Path, file: &str) -> Option<Bytes> {
    let found = number(folder, file).filter(|bytes| *bytes < NO_LIMIT);
    found.map(Bytes)
}

/// Returns a group's memory limit; `None` if there is no limit or it is unreadable.
pub fn memory_limit(version: Version, folder: &Path) -> Option<Bytes> {
    limit(
        folder,
        match version {
            Version::One => "memory.limit_in_bytes",
            Version::Two => "memory.max",
        },
    )
}

/// Returns a group's quota of processor time, as a number of processors; `None` if there is no
/// quota or it is unreadable.
pub fn quota(version: Version, folder: &Path) -> Option<f64> {
    let both = match version {
        Version::One => {
            let [quota, period] =
                ["cpu.cfs_quota_us", "cpu.cfs_period_us"].map(|file| text(folder, file));
            format!("{} {}", quota?.trim(), period?.trim())
        }
        Version::Two => text(folder, "cpu.max")?,
    };
    let mut numbers = both.split_whitespace().map(|word| word.parse::<f64>().ok());
    let (quota, period) = (numbers.next()??, numbers.next()??);
    // Without a quota, the first word is -1 in version 1 and `max` in version 2.
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = "4:memory:/jobs/a b\n2:cpuacct,cpu:/\n0::/\n";
    const V1_MOUNTS: &str = "\
        30 25 0:26 / /sys/fs/cgroup ro - tmpfs tmpfs ro\n\
        35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n\
        36 31 0:33 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpuacct,cpu\n\
        41 31 0:38 / /sys/fs/cgroup/unified rw shared:9 - cgroup2 cgroup2 rw\n";
    const V2: &str = "0::/user.slice/user-1000.slice/session-2.scope\n";
    const V2_MOUNTS: &str =
        "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

    fn write(folder: &Path, file: &str, text: &str) {
        fs::create_dir_all(folder).expect("a folder");
        fs::write(folder.join(file), text).expect("written");
    }

    #[test]
    fn the_group_of_either_version_is_found() {
        let one = Group::locate(Version::One, "memory", V1, V1_MOUNTS).expect("mounted");
        assert_eq!(one.folder, Path::new("/sys/fs/cgroup/memory/jobs/a b"));
        assert_eq!(one.parents("memory").len(), 3);
        let cpu = Group::locate(Version::One, "cpu", V1, V1_MOUNTS);
        let cpu = cpu.expect("mounted with another controller");
        assert_eq!(cpu.folder, Path::new("/sys/fs/cgroup/cpu"));
        let two = Group::locate(Version::Two, "memory", V2, V2_MOUNTS).expect("mounted");
        let scope = "/sys/fs/cgroup/user.slice/user-1000.slice/session-2.scope";
        assert_eq!(two.folder, Path::new(scope));
        assert_eq!(two.upwards().count(), 4);
    }

    #[test]
    fn a_container_sees_its_own_group_as_the_root() {
        let mounts = "35 31 0:32 /docker/x /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
        let of = |groups| Group::locate(Version::One, "memory", groups, mounts);
        let folder = |groups| of(groups).expect("mounted").folder;
        assert_eq!(
            folder("4:memory:/docker/x\n"),
            Path::new("/sys/fs/cgroup/memory")
        );
        assert_eq!(
            folder("4:memory:/docker/x/y\n"),
            Path::new("/sys/fs/cgroup/memory/y")
        );
        assert_eq!(of("4:memory:/elsewhere\n"), None);
    }

    #[test]
    fn what_is_not_mounted_is_not_found() {
        for (groups, mounts) in [
            (V2, V2_MOUNTS),
            (V1, ""),
            ("", V1_MOUNTS),
            ("nonsense", "more - nonsense"),
        ] {
            assert_eq!(Group::locate(Version::One, "memory", groups, mounts), None);
        }
    }

    #[test]
    fn limits_are_told_from_none() {
        let home = tempfile::tempdir().expect("a temporary folder");
        let folder = home.path();
        assert_eq!(memory_limit(Version::Two, folder), None);
        write(folder, "memory.max", "max\n");
        assert_eq!(memory_limit(Version::Two, folder), None);
        write(folder, "memory.max", "1073741824\n");
        assert_eq!(memory_limit(Version::Two, folder), Some(Bytes(1 << 30)));
        write(folder, "memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(memory_limit(Version::One, folder), None);
        write(folder, "memory.limit_in_bytes", "1048576\n");
        assert_eq!(memory_limit(Version::One, folder), Some(Bytes(1 << 20)));
    }

    #[test]
    fn a_quota_is_told_from_none() {
        let home = tempfile::tempdir().expect("a temporary folder");
        let both = || [Version::One, Version::Two].map(|version| quota(version, home.path()));
        assert_eq!(both(), [None, None]);
        write(home.path(), "cpu.max", "max 100000\n");
        write(home.path(), "cpu.cfs_quota_us", "-1\n");
        write(home.path(), "cpu.cfs_period_us", "100000\n");
        assert_eq!(both(), [None, None]);
        write(home.path(), "cpu.max", "150000 100000\n");
        write(home.path(), "cpu.cfs_quota_us", "1600000\n");
        assert_eq!(both(), [Some(16.0), Some(1.5)]);
    }

    #[test]
    fn only_a_group_that_hands_the_controller_down_is_a_parent() {
        let mount = tempfile::tempdir().expect("a temporary folder");
        let folder = mount.path().join("a/b");
        write(mount.path(), "cgroup.subtree_control", "cpu memory\n");
        write(&folder, "cgroup.subtree_control", "cpu\n");
        let group = Group {
            version: Version::Two,
            mount: mount.path().to_owned(),
            folder,
        };
        assert_eq!(group.parents("memory"), [mount.path()]);
    }
}
