//! Control groups: what limits this process, and whether memory can be watched through them.

use std::path::{Path, PathBuf};

use heapdrome_record::{Bytes, Condition};

use crate::tell::{good, note, unreadable, warning};

/// A mounted hierarchy and the group of this process in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    /// The folder of the group.
    pub(crate) folder: PathBuf,
    /// Whether it is of version 2.
    pub(crate) unified: bool,
}

/// The group of this process that has `controller`, from the texts of `/proc/self/cgroup` and
/// `/proc/self/mountinfo`. Version 1 comes first, since a controller is in one hierarchy only;
/// the version 2 hierarchy is returned whether or not it has the controller.
pub(crate) fn group(cgroup: &str, mountinfo: &str, controller: &str) -> Option<Group> {
    let of_line = |line: &str| {
        let mut fields = line.splitn(3, ':').skip(1).map(str::to_owned);
        Some((fields.next()?, fields.next()?))
    };
    let lines: Vec<(String, String)> = cgroup.lines().filter_map(of_line).collect();
    let first = lines
        .iter()
        .find(|(names, _)| names.split(',').any(|name| name == controller));
    if let Some((_, path)) = first
        && let Some(folder) = mounted(mountinfo, "cgroup", Some(controller), path)
    {
        return Some(Group {
            folder,
            unified: false,
        });
    }
    let (_, path) = lines.iter().find(|(names, _)| names.is_empty())?;
    let folder = mounted(mountinfo, "cgroup2", None, path)?;
    Some(Group {
        folder,
        unified: true,
    })
}

/// The folder where group `path` of a hierarchy is seen, if it is mounted.
fn mounted(mountinfo: &str, kind: &str, controller: Option<&str>, path: &str) -> Option<PathBuf> {
    mountinfo.lines().find_map(|line| {
        let (mount, system) = line.split_once(" - ")?;
        let mut system = system.split_whitespace();
        let right_kind = system.next()? == kind;
        let options = system.nth(1).unwrap_or_default();
        let has = controller.is_none_or(|wanted| options.split(',').any(|option| option == wanted));
        let mut mount = mount.split_whitespace().skip(3);
        let (root, point) = (mount.next()?, mount.next()?);
        if !right_kind || !has {
            return None;
        }
        let inside = path
            .strip_prefix(root.trim_end_matches('/'))
            .unwrap_or(path);
        Some(Path::new(point).join(inside.trim_start_matches('/')))
    })
}

/// A quota of processor time from `cpu.max` (version 2), in processors.
pub(crate) fn quota(cpu_max: &str) -> Option<f64> {
    let mut words = cpu_max.split_whitespace();
    let quota: f64 = words.next()?.parse().ok()?;
    let period: f64 = words.next()?.parse().ok()?;
    (period > 0.0 && quota > 0.0).then(|| quota / period)
}

/// A memory limit; `max` and the huge numbers of version 1 are none.
pub(crate) fn memory_limit(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|bytes| *bytes < 1 << 60)
}

/// All conditions of control groups.
pub(crate) fn examine() -> Vec<Condition> {
    let texts = ["/proc/self/cgroup", "/proc/self/mountinfo"].map(crate::tell::read);
    let [Some(cgroup), Some(mountinfo)] = texts else {
        return vec![unreadable("control groups", "/proc/self/cgroup", WATCH)];
    };
    let memory = group(&cgroup, &mountinfo, "memory");
    let cpu = group(&cgroup, &mountinfo, "cpu");
    vec![
        watching(memory.as_ref()),
        limit_of_memory(memory.as_ref()),
        limit_of_time(cpu.as_ref()),
    ]
}

const WATCH: &str =
    "without a writable memory group, the tree's peak is sampled from /proc, which can miss spikes";

/// Whether groups can be made to watch a process tree's memory.
fn watching(group: Option<&Group>) -> Condition {
    const NAME: &str = "control group for memory";
    let Some(group) = group else {
        return note(NAME, "none mounted", WATCH, None);
    };
    let version = if group.unified { "v2" } else { "v1" };
    let writable = crate::system::may_write(&group.folder);
    let delegated = !group.unified || has_memory(&group.folder);
    match (writable, delegated) {
        (true, true) => good(NAME, format!("{version}, writable"), WATCH),
        (true, false) => note(
            NAME,
            format!("{version}, without the memory controller"),
            WATCH,
            None,
        ),
        (false, _) => {
            let mend = "start under `systemd-run --user --scope -p Delegate=yes`, or as root";
            note(NAME, format!("{version}, not writable"), WATCH, Some(mend))
        }
    }
}

/// Whether a version 2 group has the memory controller.
fn has_memory(folder: &Path) -> bool {
    let text = std::fs::read_to_string(folder.join("cgroup.controllers")).unwrap_or_default();
    text.split_whitespace()
        .any(|controller| controller == "memory")
}

/// The least value that `read` finds in the group or a group above it that is visible.
fn least<T: PartialOrd>(group: &Group, read: impl Fn(&Path) -> Option<T>) -> Option<T> {
    let inside = |folder: &&Path| folder.join("cgroup.procs").exists();
    let found = group.folder.ancestors().take_while(inside).filter_map(read);
    found.reduce(|least, next| if next < least { next } else { least })
}

/// A limit of memory on this process.
fn limit_of_memory(group: Option<&Group>) -> Condition {
    const NAME: &str = "memory limit";
    const MEANING: &str = "near the limit the kernel reclaims or kills, and allocators look slow";
    let file = |unified: bool| {
        if unified {
            "memory.max"
        } else {
            "memory.limit_in_bytes"
        }
    };
    let read = |group: &Group| {
        let of = |folder: &Path| std::fs::read_to_string(folder.join(file(group.unified))).ok();
        least(group, |folder| memory_limit(&of(folder)?))
    };
    match group {
        None => unreadable(NAME, "no control group for memory is mounted", MEANING),
        Some(group) => match read(group) {
            None => good(NAME, "none", MEANING),
            Some(bytes) => note(NAME, Bytes(bytes).to_string(), MEANING, None),
        },
    }
}

/// A quota of processor time on this process, as containers have.
fn limit_of_time(group: Option<&Group>) -> Condition {
    const NAME: &str = "processor quota";
    const MEANING: &str =
        "when the quota is used up the kernel stops the command, which looks like noise";
    const MEND: &str = "start the container without --cpus or a CPU limit, and pin it instead";
    let read = |group: &Group| {
        let of = |folder: &Path, file: &str| std::fs::read_to_string(folder.join(file)).ok();
        least(group, |folder| match group.unified {
            true => quota(&of(folder, "cpu.max")?),
            false => {
                let [limit, period] =
                    ["cpu.cfs_quota_us", "cpu.cfs_period_us"].map(|file| of(folder, file));
                quota(&format!("{} {}", limit?.trim(), period?.trim()))
            }
        })
    };
    match group {
        None => unreadable(
            NAME,
            "no control group for processor time is mounted",
            MEANING,
        ),
        Some(group) => match read(group) {
            None => good(NAME, "none", MEANING),
            Some(processors) => warning(NAME, format!("{processors:.2} processors"), MEANING, MEND),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapdrome_record::Level;

    const V1: &str = "4:memory:/jobs/a b\n2:cpuacct,cpu:/\n0::/\n";
    const V1_MOUNTS: &str = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n36 31 0:33 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpuacct,cpu\n41 31 0:38 / /sys/fs/cgroup/unified rw shared:9 - cgroup2 cgroup2 rw\n";
    const V2: &str = "0::/user.slice/user-1000.slice/session-2.scope\n";
    const V2_MOUNTS: &str =
        "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn the_group_of_either_version_is_found() {
        let memory = group(V1, V1_MOUNTS, "memory").expect("mounted");
        assert_eq!(memory.folder, Path::new("/sys/fs/cgroup/memory/jobs/a b"));
        assert!(!memory.unified);
        let cpu = group(V1, V1_MOUNTS, "cpu").expect("mounted with another controller");
        assert_eq!(cpu.folder, Path::new("/sys/fs/cgroup/cpu"));
        let unified = group(V2, V2_MOUNTS, "memory").expect("mounted");
        let scope = "/sys/fs/cgroup/user.slice/user-1000.slice/session-2.scope";
        assert_eq!(
            unified,
            Group {
                folder: scope.into(),
                unified: true
            }
        );
    }

    #[test]
    fn a_container_sees_its_own_group_as_the_root() {
        let cgroup = "4:memory:/docker/abc\n";
        let mounts = "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
        let memory = group(cgroup, mounts, "memory").expect("mounted");
        assert_eq!(memory.folder, Path::new("/sys/fs/cgroup/memory"));
    }

    #[test]
    fn what_is_not_mounted_is_not_found() {
        assert_eq!(group(V1, "", "memory"), None);
        assert_eq!(group("", V1_MOUNTS, "memory"), None);
        assert_eq!(group("nonsense", "more - nonsense", "memory"), None);
        assert_eq!(watching(None).level, Level::Note);
    }

    #[test]
    fn limits_are_told_from_none() {
        assert_eq!(quota("max 100000"), None);
        assert_eq!(quota("150000 100000"), Some(1.5));
        assert_eq!(quota("-1 100000"), None);
        assert_eq!(memory_limit("max\n"), None);
        assert_eq!(memory_limit("9223372036854771712"), None);
        assert_eq!(memory_limit("1073741824"), Some(1 << 30));
    }

    #[test]
    fn the_least_limit_of_all_groups_above_holds() {
        let root = std::env::temp_dir().join(format!("heapdrome-cgroup-{}", std::process::id()));
        let inner = root.join("outer/inner");
        std::fs::create_dir_all(&inner).expect("a temporary folder");
        for (folder, limit) in [(root.join("outer"), "1000"), (inner.clone(), "max")] {
            std::fs::write(folder.join("cgroup.procs"), "").expect("written");
            std::fs::write(folder.join("memory.max"), limit).expect("written");
        }
        let told = limit_of_memory(Some(&Group {
            folder: inner,
            unified: true,
        }));
        std::fs::remove_dir_all(&root).expect("removed");
        assert_eq!(told.value, "1000 B");
    }
}
