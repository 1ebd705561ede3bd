//! Control groups: their limits on this process, and their ability to measure memory.

use std::path::Path;

use heapdrome_schema::Condition;
use heapdrome_system::group::{self, Group, Version};

use crate::tell::{good, note, unreadable, warning};

/// Returns all conditions of control groups.
pub(crate) fn examine() -> Vec<Condition> {
    let memory = Group::both("memory").next();
    let processors = Group::both("cpu").next();
    vec![
        watching(memory.as_ref()),
        limit_of_memory(memory.as_ref()),
        limit_of_time(processors.as_ref()),
    ]
}

const WATCH: &str =
    "without a writable memory group, the tree's peak is sampled from /proc, which can miss spikes";

/// Checks whether this process may create groups that measure the memory of a process tree.
fn watching(group: Option<&Group>) -> Condition {
    const NAME: &str = "control group for memory";
    let Some(group) = group else {
        return note(NAME, "none mounted", WATCH, None);
    };
    let (version, delegated) = match group.version {
        Version::One => ("v1", true),
        Version::Two => {
            let has = group::lists(&group.folder, "cgroup.controllers", "memory");
            ("v2", has)
        }
    };
    let writable = crate::system::may_write(&group.folder);
    match (writable, delegated) {
        (true, true) => good(NAME, format!("{version}, writable"), WATCH),
        (true, false) => note(
            NAME,
            format!("{version}, without the memory controller"),
            WATCH,
            None,
        ),
        (false, _) => {
            let fix = "start under `systemd-run --user --scope -p Delegate=yes`, or as root";
            note(NAME, format!("{version}, not writable"), WATCH, Some(fix))
        }
    }
}

/// Returns the smallest value that `read` finds in the group or a visible ancestor; `None` if it
/// finds none.
fn least<T: PartialOrd>(group: &Group, read: impl Fn(Version, &Path) -> Option<T>) -> Option<T> {
    let found = group
        .upwards()
        .filter_map(|folder| read(group.version, folder));
    found.reduce(|least, next| if next < least { next } else { least })
}

/// Checks for a memory limit on this process.
fn limit_of_memory(group: Option<&Group>) -> Condition {
    const NAME: &str = "memory limit";
    const MEANING: &str = "near the limit the kernel reclaims or kills, and allocators look slow";
    match group {
        None => unreadable(NAME, "no control group for memory is mounted", MEANING),
        Some(group) => match least(group, group::memory_limit) {
            None => good(NAME, "none", MEANING),
            Some(bytes) => note(NAME, bytes.to_string(), MEANING, None),
        },
    }
}

/// Checks for a quota of processor time on this process, which containers often have.
fn limit_of_time(group: Option<&Group>) -> Condition {
    const NAME: &str = "processor quota";
    const MEANING: &str =
        "when the quota is used up, the kernel pauses the command, which looks like noise";
    const FIX: &str = "start the container without --cpus or a CPU limit, and pin it instead";
    match group {
        None => unreadable(
            NAME,
            "no control group for processor time is mounted",
            MEANING,
        ),
        Some(group) => match least(group, group::quota) {
            None => good(NAME, "none", MEANING),
            Some(processors) => warning(NAME, format!("{processors:.2} processors"), MEANING, FIX),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapdrome_schema::Level;

    #[test]
    fn what_is_not_mounted_is_a_note() {
        assert_eq!(watching(None).level, Level::Note);
    }

    #[test]
    fn the_least_limit_of_all_groups_above_holds() {
        let root = std::env::temp_dir().join(format!("heapdrome-cgroup-{}", std::process::id()));
        let inner = root.join("outer/inner");
        std::fs::create_dir_all(&inner).expect("a temporary folder");
        for (folder, limit) in [(root.join("outer"), "1000"), (inner.clone(), "max")] {
            std::fs::write(folder.join("memory.max"), limit).expect("written");
        }
        let told = limit_of_memory(Some(&Group {
            version: Version::Two,
            mount: root.clone(),
            folder: inner,
        }));
        std::fs::remove_dir_all(&root).expect("removed");
        assert_eq!(told.value, "1000 B");
    }
}
