//! Control groups of memory runs, one for each run, to read the memory of a process tree.
//!
//! Only anonymous memory is read. A group's own peak (`memory.peak`, `memory.max_usage_in_bytes`)
//! includes the page cache, so a program that reads a file of 500 MB would seem to need that
//! memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use heapdrome_schema::Bytes;
use heapdrome_system::group::{self, Group, Version};

use crate::launcher::CgroupFiles;
use crate::tree;

/// Prefix of the names of groups for memory runs.
const PREFIX: &str = "heapdrome-";
/// Minimum age of a group that [`remove_leftovers`] removes.
const FRESH: Duration = Duration::from_secs(60);

/// A group created for one memory run. Dropping this value removes the group.
#[derive(Debug)]
pub(crate) struct Cgroup {
    version: Version,
    folder: PathBuf,
    own: PathBuf,
}

impl Cgroup {
    /// Creates a group, if this machine and the permissions of this process allow it.
    pub(crate) fn make() -> Option<Self> {
        Group::both("memory").find_map(|own| {
            let mut parents = own.parents("memory").into_iter();
            parents.find_map(|parent| Self::make_in(&parent, &own))
        })
    }

    fn make_in(parent: &Path, own: &Group) -> Option<Self> {
        remove_leftovers(parent);
        let pid = tree::own_pid();
        let name = format!("{PREFIX}{pid}-{}", tree::start_of(pid)?);
        let folder = parent.join(name);
        fs::create_dir(&folder).ok()?;
        let group = Self {
            version: own.version,
            folder,
            own: own.folder.clone(),
        };
        group.anonymous().map(|_| group)
    }

    /// Returns the files through which a launcher enters and leaves the group.
    pub(crate) fn files(&self) -> CgroupFiles {
        let name = self
            .folder
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let leave = (&self.own.join("cgroup.procs")).into();
        CgroupFiles {
            join: (&self.folder.join("cgroup.procs")).into(),
            name,
            leave,
        }
    }

    /// Returns the anonymous memory of all processes in the group and its subgroups; `None` if it
    /// cannot be read.
    pub(crate) fn anonymous(&self) -> Option<Bytes> {
        let key = match self.version {
            Version::One => "total_rss",
            Version::Two => "anon",
        };
        group::field(&self.folder, "memory.stat", key).map(Bytes)
    }

    /// Returns the name under which the report shows the method of reading memory.
    pub(crate) fn method(&self) -> &'static str {
        match self.version {
            Version::One => "cgroup v1 memory.stat total_rss",
            Version::Two => "cgroup v2 memory.stat anon",
        }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // A group cannot be removed until the kernel has removed its last process from it, a moment
        // after that process has ended.
        for _ in 0..50 {
            if fs::remove_dir(&self.folder).is_ok() || !self.folder.exists() {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Removes the groups of heapdrome processes that have ended, except groups that contain processes.
/// Keeps new groups: a heapdrome in a container may own one, with a process id that is meaningless
/// here, and may not have moved its processes into the group yet.
fn remove_leftovers(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else {
        return;
    };
    for entry in entries.flatten() {
        if owner_of(&entry.file_name().to_string_lossy())
            .is_some_and(|(pid, started)| tree::start_of(pid) != Some(started))
            && is_old(&entry)
        {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Returns whether a group is old enough to be removed. The kernel may set a group's date only at
/// its first lookup, so the group can be older than its date but never newer.
fn is_old(entry: &fs::DirEntry) -> bool {
    let made = entry.metadata().and_then(|data| data.modified());
    made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age >= FRESH))
}

/// Returns the owner that a group's name contains, as process id and start time; `None` if the
/// group was not created for a memory run.
fn owner_of(name: &str) -> Option<(libc::pid_t, u64)> {
    let (pid, started) = name.strip_prefix(PREFIX)?.split_once('-')?;
    Some((pid.parse().ok()?, started.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_groups_that_heapdrome_made_are_its_own() {
        assert_eq!(owner_of("heapdrome-12-3456"), Some((12, 3456)));
        assert_eq!(owner_of("heapdrome-mine"), None);
        assert_eq!(owner_of("system.slice"), None);
    }

    #[test]
    fn groups_of_a_killed_heapdrome_are_removed_and_no_others() {
        let folder = tempfile::tempdir().expect("a folder");
        let pid = tree::own_pid();
        let own = format!("{PREFIX}{pid}-{}", tree::start_of(pid).expect("a start"));
        let names = [
            own,
            format!("{PREFIX}{pid}-1"),
            format!("{PREFIX}mine"),
            "other".to_owned(),
        ];
        let left = || {
            names
                .each_ref()
                .map(|name| folder.path().join(name).exists())
        };
        for name in &names {
            fs::create_dir(folder.path().join(name)).expect("a folder");
        }
        remove_leftovers(folder.path());
        assert_eq!(left(), [true; 4], "they are new");
        let before = std::time::SystemTime::now() - FRESH - Duration::from_secs(1);
        for name in &names {
            let group = fs::File::open(folder.path().join(name)).expect("a folder");
            group.set_modified(before).expect("its owner may");
        }
        remove_leftovers(folder.path());
        assert_eq!(left(), [true, false, true, true]);
    }
}
