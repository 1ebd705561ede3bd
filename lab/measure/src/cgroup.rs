//! Control groups that heapdrome makes for one run, to read the memory of a process tree.
//!
//! Only anonymous memory is read. A group's own peak (`memory.peak`, `memory.max_usage_in_bytes`)
//! holds the page cache too: a program that reads a file of 500 MB would seem to need it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use heapdrome_record::Bytes;

use crate::launcher::CgroupFiles;
use crate::tree;

/// What the names of all groups that heapdrome makes begin with.
const PREFIX: &str = "heapdrome-";
/// For how long a group that seems to be nobody's may be one that was just made.
const FRESH: Duration = Duration::from_secs(60);

/// The two kinds of hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// A place where groups can be made.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Parent {
    version: Version,
    folder: PathBuf,
    /// The group that this process is in.
    own: PathBuf,
}

/// A group made for one run; it is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Cgroup {
    version: Version,
    folder: PathBuf,
    own: PathBuf,
}

impl Cgroup {
    /// Makes a group, if this machine and the rights of this process allow it.
    pub(crate) fn make() -> Option<Self> {
        let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        parents(&groups, &mounts)
            .into_iter()
            .find_map(Self::make_in)
    }

    fn make_in(parent: Parent) -> Option<Self> {
        remove_leftovers(&parent.folder);
        let pid = tree::own_pid();
        let name = format!("{PREFIX}{pid}-{}", tree::start_of(pid)?);
        let folder = parent.folder.join(name);
        fs::create_dir(&folder).ok()?;
        let group = Self {
            version: parent.version,
            folder,
            own: parent.own,
        };
        group.anonymous().map(|_| group)
    }

    /// What a launcher needs to enter and leave the group.
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

    /// The anonymous memory of all processes in the group and in groups below it.
    pub(crate) fn anonymous(&self) -> Option<Bytes> {
        let text = fs::read_to_string(self.folder.join("memory.stat")).ok()?;
        let key = match self.version {
            Version::One => "total_rss",
            Version::Two => "anon",
        };
        stat_field(&text, key).map(Bytes)
    }

    /// The method's name for the report.
    pub(crate) fn method(&self) -> &'static str {
        match self.version {
            Version::One => "cgroup v1 memory.stat total_rss",
            Version::Two => "cgroup v2 memory.stat anon",
        }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // The kernel takes a moment to forget the last process.
        for _ in 0..50 {
            if fs::remove_dir(&self.folder).is_ok() || !self.folder.exists() {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

fn stat_field(text: &str, key: &str) -> Option<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.parse().ok())
}

/// Removes groups whose heapdrome is gone. A group with processes in it cannot be removed. A new
/// one is left alone: it may be that of a heapdrome in a container whose process ids mean nothing
/// here, and that has not put its processes into it yet.
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

/// The kernel may date a group from when it was first looked at, so it can be older than it seems
/// and never newer.
fn is_old(entry: &fs::DirEntry) -> bool {
    let made = entry.metadata().and_then(|data| data.modified());
    made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age >= FRESH))
}

/// The process that made the group of this name, if heapdrome did: its id and its start.
fn owner_of(name: &str) -> Option<(libc::pid_t, u64)> {
    let (pid, started) = name.strip_prefix(PREFIX)?.split_once('-')?;
    Some((pid.parse().ok()?, started.parse().ok()?))
}

/// Where groups with a memory controller might be made, the best place first.
fn parents(groups: &str, mounts: &str) -> Vec<Parent> {
    let mut found = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
            continue;
        };
        if controllers.is_empty() {
            found.extend(parents_v2(mounts, path));
        } else if controllers
            .split(',')
            .any(|controller| controller == "memory")
        {
            let own = mounted_at(mounts, "cgroup", Some("memory"), path);
            found.extend(own.map(|own| Parent {
                version: Version::One,
                folder: own.clone(),
                own,
            }));
        }
    }
    found
}

/// A group of version 2 that holds processes can have no groups below it that count memory, so
/// the places are beside this process's group, or beside one above it: where the parent hands
/// the memory controller down. Whether this process may is seen by trying.
fn parents_v2(mounts: &str, path: &str) -> Vec<Parent> {
    let Some(own) = mounted_at(mounts, "cgroup2", None, path) else {
        return Vec::new();
    };
    let hands_down = |folder: &&Path| {
        fs::read_to_string(folder.join("cgroup.subtree_control")).is_ok_and(|list| {
            list.split_whitespace()
                .any(|controller| controller == "memory")
        })
    };
    let above = own
        .ancestors()
        .take_while(|folder| folder.join("cgroup.procs").exists());
    let places = above.filter(hands_down);
    places
        .map(|folder| Parent {
            version: Version::Two,
            folder: folder.to_owned(),
            own: own.clone(),
        })
        .collect()
}

/// The folder of the group `path` in the hierarchy of this type and controller.
fn mounted_at(mounts: &str, kind: &str, controller: Option<&str>, path: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut after = after.split(' ');
        let (found, options) = (after.next()?, after.nth(1)?);
        let has = |wanted| options.split(',').any(|option| option == wanted);
        if found != kind || !controller.is_none_or(has) {
            return None;
        }
        let mut fields = before.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        let below = Path::new(path).strip_prefix(root).ok()?;
        Some(Path::new(point).join(below))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
        30 25 0:26 / /sys/fs/cgroup ro - tmpfs tmpfs ro\n\
        31 30 0:27 / /sys/fs/cgroup/cpu rw shared:9 - cgroup cgroup rw,cpu\n\
        32 30 0:28 /docker/x /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n\
        33 30 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

    #[test]
    fn the_group_of_this_process_is_found_through_its_mount() {
        let found = parents("4:memory:/docker/x/y\n1:cpu:/\n", MOUNTS);
        let own: PathBuf = "/sys/fs/cgroup/memory/y".into();
        assert_eq!(
            found,
            [Parent {
                version: Version::One,
                folder: own.clone(),
                own
            }]
        );
        assert!(parents("4:memory:/elsewhere\n", MOUNTS).is_empty());
    }

    #[test]
    fn only_whole_names_are_fields() {
        assert_eq!(stat_field("anon_thp 5\nanon 7\n", "anon"), Some(7));
        assert_eq!(stat_field("rss 5\n", "total_rss"), None);
    }

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
