//! The memory that can be had: what the kernel has, what control groups and limits allow.

use std::path::Path;

use heapdrome_record::Bytes;

use crate::error::CatalogError;

/// An amount of memory, and what sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Allowance {
    bytes: Bytes,
    limit: &'static str,
}

/// Whether `needed` bytes can be had for `what`. Where nothing tells, they are taken to be there.
///
/// # Errors
/// When the memory would not do.
pub(crate) fn require(what: &str, needed: Bytes) -> Result<(), CatalogError> {
    match least() {
        Some(least) if least.bytes < needed => Err(CatalogError::Memory {
            what: what.to_owned(),
            needed,
            available: least.bytes,
            limit: least.limit,
        }),
        _ => Ok(()),
    }
}

/// The least of what the machine, the control groups and the process's limits leave; `None` where
/// none of them tells.
pub(crate) fn available() -> Option<Bytes> {
    least().map(|least| least.bytes)
}

fn least() -> Option<Allowance> {
    let found = [machine(), group(), address_space()];
    found.into_iter().flatten().min_by_key(|one| one.bytes)
}

/// What the kernel can give without swapping.
fn machine() -> Option<Allowance> {
    let meminfo = std::fs::read_to_string("/proc/meminfo").ok()?;
    Some(Allowance {
        bytes: Bytes::from_kib(keyed(&meminfo, "MemAvailable:")?),
        limit: "free memory of the machine",
    })
}

/// What the control groups of this process leave.
fn group() -> Option<Allowance> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let bytes = room_in_groups(&groups, Path::new("/sys/fs/cgroup"))?;
    Some(Allowance {
        bytes,
        limit: "memory limit of the control group",
    })
}

/// What `ulimit -v` leaves; allocators reserve more than they use, so this is the most that fits.
fn address_space() -> Option<Allowance> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is a valid place for the answer and outlives the call.
    let asked = unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) };
    let limited = asked == 0 && limit.rlim_cur != libc::RLIM_INFINITY;
    limited.then_some(Allowance {
        bytes: Bytes(limit.rlim_cur),
        limit: "ulimit -v",
    })
}

/// The least room in the memory group of this process and the groups above it, both versions.
fn room_in_groups(groups: &str, mount: &Path) -> Option<Bytes> {
    let folders = groups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let root = match controllers {
            "" => mount.to_owned(),
            names if names.split(',').any(|name| name == "memory") => mount.join("memory"),
            _ => return None,
        };
        let inside = root.join(path.trim_start_matches('/'));
        // A container sees its own group as the root, though the path names it from the host's.
        let folder = if inside.is_dir() {
            inside
        } else {
            root.clone()
        };
        Some((root, folder))
    });
    let rooms = folders.flat_map(|(root, folder)| {
        let inside = folder.ancestors().take_while(|one| one.starts_with(&root));
        inside.filter_map(room_in_group).collect::<Vec<_>>()
    });
    rooms.min()
}

/// What one group leaves: its limit less what it uses, file pages that can be dropped not counted.
fn room_in_group(folder: &Path) -> Option<Bytes> {
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
    let number = |name: &str| read(name)?.trim().parse::<u64>().ok();
    let (limit, used, key) = match number("memory.max") {
        Some(limit) => (limit, number("memory.current")?, "inactive_file"),
        None => (
            number("memory.limit_in_bytes")?,
            number("memory.usage_in_bytes")?,
            "total_inactive_file",
        ),
    };
    // Version 1 writes "no limit" as a number near 2^63.
    if limit >= 1 << 60 {
        return None;
    }
    let droppable = keyed(&read("memory.stat").unwrap_or_default(), key).unwrap_or(0);
    Some(Bytes(limit.saturating_sub(used.saturating_sub(droppable))))
}

/// The number after `key` in a text of `key number` lines.
fn keyed(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next()? == key)
            .then(|| words.next()?.parse().ok())
            .flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group_folder(root: &Path, path: &str, files: &[(&str, &str)]) {
        let folder = root.join(path);
        std::fs::create_dir_all(&folder).expect("a folder");
        for (name, text) in files {
            std::fs::write(folder.join(name), text).expect("written");
        }
    }

    #[test]
    fn the_tightest_group_of_version_two_counts_and_droppable_pages_do_not() {
        let root = tempfile::tempdir().expect("a temporary folder");
        let stat = "anon 5\ninactive_file 300\n";
        let files = [
            ("memory.max", "1000\n"),
            ("memory.current", "500\n"),
            ("memory.stat", stat),
        ];
        group_folder(root.path(), "outer", &files);
        group_folder(root.path(), "outer/inner", &[("memory.max", "max\n")]);
        let room = room_in_groups("0::/outer/inner\n", root.path());
        assert_eq!(room, Some(Bytes(800)));
    }

    #[test]
    fn version_one_is_read_and_its_huge_numbers_are_no_limit() {
        let root = tempfile::tempdir().expect("a temporary folder");
        let limited = [
            ("memory.limit_in_bytes", "4096\n"),
            ("memory.usage_in_bytes", "96\n"),
        ];
        group_folder(root.path(), "memory/jobs", &limited);
        let free = [
            ("memory.limit_in_bytes", "9223372036854771712\n"),
            ("memory.usage_in_bytes", "1\n"),
        ];
        group_folder(root.path(), "memory/jobs/a", &free);
        let groups = "5:cpu:/\n4:memory:/jobs/a\n";
        assert_eq!(room_in_groups(groups, root.path()), Some(Bytes(4000)));
    }

    #[test]
    fn a_container_whose_path_is_not_mounted_reads_the_root() {
        let root = tempfile::tempdir().expect("a temporary folder");
        let files = [("memory.max", "77"), ("memory.current", "7")];
        group_folder(root.path(), "", &files);
        let room = room_in_groups("0::/host/only/path\n", root.path());
        assert_eq!(room, Some(Bytes(70)));
    }

    #[test]
    fn what_cannot_be_had_is_refused_with_its_reason() {
        require("nothing", Bytes(0)).expect("nothing can always be had");
        let refused = require("n=8", Bytes(u64::MAX)).expect_err("too much");
        assert!(refused.to_string().starts_with("n=8 may take up to"));
        assert_eq!(refused.exit_status(), 2);
    }
}
