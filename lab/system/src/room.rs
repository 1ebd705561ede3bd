//! Memory available to this process, given the machine's free memory and the limits of its control
//! groups and address space.

use std::path::Path;

use heapdrome_schema::Bytes;
use rustix::process::{Resource, getrlimit};

use crate::group::{self, Group, Version};
use crate::kernel::keyed;

/// Amount of available memory, with the factor that limits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Amount in bytes.
    pub bytes: Bytes,
    /// Limiting factor, in a few words.
    pub limit: &'static str,
}

/// Returns the memory still available under the tightest of three limits: the machine's memory, the
/// control groups and the limit on address space. Returns `None` if no limit can be read.
pub fn available() -> Option<Room> {
    let found = [machine(), groups(), address_space()];
    found.into_iter().flatten().min_by_key(|one| one.bytes)
}

/// Returns the memory that the kernel can provide without swapping.
fn machine() -> Option<Room> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    Some(Room {
        bytes: Bytes::from_kib(keyed(&text, "MemAvailable:")?),
        limit: "free memory of the machine",
    })
}

/// Returns the memory still available under the limits of this process's control groups; `None` if
/// no limit can be read.
fn groups() -> Option<Room> {
    let all = Group::both("memory").filter_map(|group| least(&group));
    Some(Room {
        bytes: all.min()?,
        limit: "memory limit of the control group",
    })
}

/// Returns the memory still available under the limit on this process's address space; `None` if
/// there is no limit or it cannot be read.
fn address_space() -> Option<Room> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let mapped = Bytes::from_kib(keyed(&status, "VmSize:")?);
    Some(Room {
        bytes: Bytes(address_space_limit()?.0.saturating_sub(mapped.0)),
        limit: "ulimit -v",
    })
}

/// Returns the limit on this process's address space (`ulimit -v`); `None` if there is none.
pub fn address_space_limit() -> Option<Bytes> {
    getrlimit(Resource::As).current.map(Bytes)
}

/// Returns the memory still available under the tightest limit of a group and its ancestors; `None`
/// if no limit can be read.
fn least(group: &Group) -> Option<Bytes> {
    let rooms = group
        .upwards()
        .filter_map(|folder| of_group(group.version, folder));
    rooms.min()
}

/// Returns the memory still available under the limit of one group: the limit minus the group's
/// usage. Usage excludes file pages that the kernel can drop. `None` if there is no limit, or it or
/// the usage cannot be read.
fn of_group(version: Version, folder: &Path) -> Option<Bytes> {
    let limit = group::memory_limit(version, folder)?;
    let (used, key) = match version {
        Version::One => ("memory.usage_in_bytes", "total_inactive_file"),
        Version::Two => ("memory.current", "inactive_file"),
    };
    let used = group::number(folder, used)?;
    let droppable = group::field(folder, "memory.stat", key).unwrap_or(0);
    let held = used.saturating_sub(droppable);
    Some(Bytes(limit.0.saturating_sub(held)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group_folder(folder: &Path, files: &[(&str, &str)]) {
        std::fs::create_dir_all(folder).expect("a folder");
        for (name, text) in files {
            std::fs::write(folder.join(name), text).expect("written");
        }
    }

    fn group_in(version: Version, mount: &Path, inside: &str) -> Group {
        Group {
            version,
            mount: mount.to_owned(),
            folder: mount.join(inside),
        }
    }

    #[test]
    fn the_tightest_group_of_version_two_counts_and_droppable_pages_do_not() {
        let root = tempfile::tempdir().expect("a temporary folder");
        let files = [
            ("memory.max", "1000\n"),
            ("memory.current", "900\n"),
            ("memory.stat", "anon 5\ninactive_file 50\n"),
        ];
        group_folder(&root.path().join("outer"), &files);
        let inner = [("memory.max", "max\n"), ("memory.current", "10\n")];
        group_folder(&root.path().join("outer/inner"), &inner);
        let group = group_in(Version::Two, root.path(), "outer/inner");
        assert_eq!(least(&group), Some(Bytes(150)));
    }

    #[test]
    fn version_one_is_read_and_its_huge_numbers_are_no_limit() {
        let root = tempfile::tempdir().expect("a temporary folder");
        let limited = [
            ("memory.limit_in_bytes", "1000\n"),
            ("memory.usage_in_bytes", "700\n"),
            ("memory.stat", "inactive_file 1\ntotal_inactive_file 90\n"),
        ];
        group_folder(&root.path().join("jobs"), &limited);
        let free = [
            ("memory.limit_in_bytes", "9223372036854771712\n"),
            ("memory.usage_in_bytes", "9000\n"),
        ];
        group_folder(&root.path().join("jobs/a"), &free);
        let group = group_in(Version::One, root.path(), "jobs/a");
        assert_eq!(least(&group), Some(Bytes(390)));
    }

    /// A container may see its group under the path on the host, which need not exist inside the
    /// container.
    #[test]
    fn a_container_whose_path_is_not_mounted_reads_the_root() {
        let root = tempfile::tempdir().expect("a temporary folder");
        group_folder(
            root.path(),
            &[("memory.max", "77"), ("memory.current", "7")],
        );
        let group = group_in(Version::Two, root.path(), "host/only/path");
        assert_eq!(least(&group), Some(Bytes(70)));
    }

    #[test]
    fn something_is_available() {
        assert!(available().is_some_and(|room| room.bytes > Bytes(0)));
    }
}
