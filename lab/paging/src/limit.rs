//! Memory limits for single children, each set by a mechanism of this machine.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use heapdrome_schema::Limit;
use heapdrome_system::FileError;
use heapdrome_system::group::{Group, Version};
use heapdrome_system::rights::is_root;

use crate::group::{limits_of, tally_of};
use crate::item::PREFIX;
use crate::ledger::unique_name;
use crate::{Error, Item, Ledger, Made, Seen, Tally, members};

/// A mechanism that sets a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// `systemd-run --scope`, for the user or for root.
    SystemdRun,
    /// A control group of version 2.
    CgroupTwo,
    /// Control groups of version 1.
    CgroupOne,
}

impl Mechanism {
    /// All mechanisms, in the order in which they are tried.
    pub const ALL: [Self; 3] = [Self::SystemdRun, Self::CgroupTwo, Self::CgroupOne];

    /// Returns the mechanism's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::SystemdRun => "systemd-run",
            Self::CgroupTwo => "cgroup v2",
            Self::CgroupOne => "cgroup v1",
        }
    }
}

/// The result of trying a mechanism.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Mechanism that was tried.
    pub mechanism: Mechanism,
    /// Reason why the mechanism does not work on this machine; `None` if it works.
    pub reason: Option<String>,
    /// Suggested remedy, if one is known.
    pub fix: Option<String>,
}

/// A limit for one child.
#[derive(Debug)]
pub struct Enclosure {
    /// Words that precede the child's command.
    pub(crate) prefix: Vec<OsString>,
    /// Process lists of the groups that the child joins.
    pub(crate) join: Vec<PathBuf>,
    limit: Limit,
    /// The memory group, if the lab itself created it.
    group: Option<(Version, PathBuf)>,
    // Dropping these removes the groups. A group must be empty then, so the child must have ended.
    _made: Vec<Made>,
}

impl Enclosure {
    /// Makes a limit by this mechanism.
    ///
    /// # Errors
    /// When the mechanism does not work here, or the ledger cannot be written. A failure of systemd
    /// shows only when the child runs.
    pub fn make(mechanism: Mechanism, limit: Limit, ledger: &Arc<Ledger>) -> Result<Self, Error> {
        match mechanism {
            Mechanism::SystemdRun => Ok(Self::systemd(limit)),
            Mechanism::CgroupTwo => Self::of_groups(Version::Two, limit, ledger),
            Mechanism::CgroupOne => Self::of_groups(Version::One, limit, ledger),
        }
    }

    /// Checks that the limit seen by the child is the requested one.
    ///
    /// # Errors
    /// When the child saw another limit. The error is one line.
    pub fn check(&self, seen: Seen) -> Result<(), Error> {
        let Limit {
            memory,
            swap,
            processors,
        } = self.limit;
        if (seen.memory, seen.swap) != (Some(memory), Some(swap)) {
            return Err(Error::Child(format!(
                "reads another limit than the one that was set: {seen:?}"
            )));
        }
        // The quota passed to systemd is rounded to whole percents, so the comparison has a
        // tolerance.
        let close = |wanted: f64| {
            seen.processors
                .is_some_and(|quota| (quota - wanted).abs() < 0.01)
        };
        match processors {
            Some(wanted) if !close(wanted) => {
                Err(no_quota(wanted, "it is not what a process reads in it"))
            }
            _ => Ok(()),
        }
    }

    /// Returns the kernel's counts in the group so far; `None` for a group of systemd.
    #[must_use]
    pub fn tally(&self) -> Option<Tally> {
        let (version, folder) = self.group.as_ref()?;
        Some(tally_of(*version, folder))
    }

    /// Kills every process in the group, and waits until it is empty. Does nothing to a group of
    /// systemd.
    ///
    /// # Errors
    /// When some processes do not end, or cannot be listed.
    pub fn empty(&self) -> Result<(), Error> {
        if let Some((_, folder)) = &self.group {
            members::kill_all(folder).map_err(FileError::of("empty", folder))?;
        }
        Ok(())
    }

    fn systemd(limit: Limit) -> Self {
        let mut prefix: Vec<OsString> = vec!["systemd-run".into()];
        if !is_root() {
            prefix.push("--user".into());
        }
        prefix.extend(["--scope", "--quiet", "--collect"].map(OsString::from));
        let mut property = |text: String| prefix.extend([OsString::from("-p"), text.into()]);
        property(format!("MemoryMax={}", limit.memory.0));
        property(format!("MemorySwapMax={}", limit.swap.0));
        if let Some(processors) = limit.processors {
            property(format!("CPUQuota={:.0}%", processors * 100.0));
        }
        prefix.push("--".into());
        Self {
            prefix,
            join: Vec::new(),
            limit,
            group: None,
            _made: Vec::new(),
        }
    }

    fn of_groups(version: Version, limit: Limit, ledger: &Arc<Ledger>) -> Result<Self, Error> {
        let name = format!("{PREFIX}{}", unique_name());
        let (folder, group) = memory_group(version, &name, limit, ledger)?;
        let mut join = vec![folder.join("cgroup.procs")];
        let mut made = vec![group];
        let own = Some((version, folder.clone()));
        if let Some(processors) = limit.processors {
            let folder = match version {
                Version::Two => folder,
                Version::One => {
                    let (folder, group) = processor_group(&name, ledger)?;
                    join.push(folder.join("cgroup.procs"));
                    made.push(group);
                    folder
                }
            };
            set_quota(version, &folder, processors)?;
        }
        Ok(Self {
            prefix: Vec::new(),
            join,
            limit,
            group: own,
            _made: made,
        })
    }
}

/// Returns the error for a quota of processor time that cannot be set.
fn no_quota(processors: f64, why: &str) -> Error {
    Error::missing(
        format!("cannot set a quota of {processors} processors ({why})"),
        "run as root, with the cpu controller",
    )
}

/// Returns the error for a group that cannot be made.
fn no_group(version: Version, controller: &str, why: &str) -> Error {
    let number = match version {
        Version::One => "v1",
        Version::Two => "v2",
    };
    let fix = match version {
        Version::One => "run as root, with the controller mounted and not in cgroup v2",
        Version::Two => "systemd-run --user --scope -p Delegate=yes heapdrome ..., or run as root",
    };
    Error::missing(
        format!("cannot make a {controller} group in cgroup {number} ({why})"),
        fix,
    )
}

fn find_group(version: Version, controller: &str) -> Result<Group, Error> {
    let own = Group::of_this_process(version, controller);
    own.ok_or_else(|| no_group(version, controller, "not mounted"))
}

/// Creates a group in the closest ancestor that allows subgroups and limits.
fn memory_group(
    version: Version,
    name: &str,
    limit: Limit,
    ledger: &Arc<Ledger>,
) -> Result<(PathBuf, Made), Error> {
    let parents = find_group(version, "memory")?.parents("memory");
    let mut why = "no group here delegates the controller".to_owned();
    for folder in parents.iter().map(|parent| parent.join(name)) {
        match new_group(&folder, ledger)? {
            Ok(made) => match set_limits(version, &folder, limit) {
                Ok(()) => return Ok((folder, made)),
                Err(reason) => why = reason,
            },
            Err(error) => why = error.to_string(),
        }
    }
    Err(no_group(version, "memory", &why))
}

fn processor_group(name: &str, ledger: &Arc<Ledger>) -> Result<(PathBuf, Made), Error> {
    let parents = find_group(Version::One, "cpu")?.parents("cpu");
    let mut why = String::new();
    for folder in parents.iter().map(|parent| parent.join(name)) {
        match new_group(&folder, ledger)? {
            Ok(made) => return Ok((folder, made)),
            Err(error) => why = error.to_string(),
        }
    }
    Err(no_group(Version::One, "processor time", &why))
}

/// Creates a group without limits. The outer error is a failure of the ledger, the inner one the
/// kernel's refusal.
fn new_group(folder: &Path, ledger: &Arc<Ledger>) -> Result<std::io::Result<Made>, Error> {
    let made = ledger.making(Item::Group {
        folder: folder.to_owned(),
    })?;
    match fs::create_dir(folder) {
        Ok(()) => Ok(Ok(made)),
        Err(error) => {
            made.forget()?;
            Ok(Err(error))
        }
    }
}

fn set_limits(version: Version, folder: &Path, limit: Limit) -> Result<(), String> {
    let both = limit.memory + limit.swap;
    let files = match version {
        Version::Two => [
            ("memory.max", limit.memory),
            ("memory.swap.max", limit.swap),
        ],
        // Write the memory limit first: the combined limit of memory and swap must never be below
        // it.
        Version::One => [
            ("memory.limit_in_bytes", limit.memory),
            ("memory.memsw.limit_in_bytes", both),
        ],
    };
    for (file, value) in files {
        fs::write(folder.join(file), value.0.to_string())
            .map_err(|error| format!("{file}: {error}"))?;
    }
    let seen = limits_of(version, folder);
    if (seen.memory, seen.swap) == (Some(limit.memory), Some(limit.swap)) {
        Ok(())
    } else {
        Err("the limit that was written is not the one that is read".to_owned())
    }
}

fn set_quota(version: Version, folder: &Path, processors: f64) -> Result<(), Error> {
    const PERIOD: u64 = 100_000;
    let quota = (processors * PERIOD as f64).round() as u64;
    let (file, text) = match version {
        Version::Two => ("cpu.max", format!("{quota} {PERIOD}")),
        Version::One => ("cpu.cfs_quota_us", quota.to_string()),
    };
    fs::write(folder.join(file), text)
        .map_err(|error| no_quota(processors, &format!("{file}: {error}")))
}

#[cfg(test)]
mod tests {
    use heapdrome_schema::Bytes;

    use super::*;

    const LIMIT: Limit = Limit {
        memory: Bytes::from_mib(64),
        swap: Bytes::from_mib(32),
        processors: Some(1.5),
    };

    #[test]
    fn systemd_is_asked_for_exactly_the_limit() {
        let enclosure = Enclosure::systemd(LIMIT);
        let words: Vec<_> = enclosure
            .prefix
            .iter()
            .map(|word| word.to_string_lossy())
            .collect();
        assert!(words.contains(&"MemoryMax=67108864".into()));
        assert!(words.contains(&"MemorySwapMax=33554432".into()));
        assert!(words.contains(&"CPUQuota=150%".into()));
        assert_eq!(words.last().map(AsRef::as_ref), Some("--"));
    }

    #[test]
    fn only_the_limit_that_was_asked_for_holds() {
        let enclosure = Enclosure::systemd(LIMIT);
        let holds = |memory, swap, processors| {
            let seen = Seen {
                memory,
                swap,
                processors,
            };
            enclosure.check(seen).is_ok()
        };
        let (memory, swap) = (Some(LIMIT.memory), Some(LIMIT.swap));
        assert!(holds(memory, swap, Some(1.5)));
        assert!(!holds(memory, None, Some(1.5)));
        assert!(!holds(None, swap, Some(1.5)));
        assert!(!holds(Some(Bytes::from_mib(65)), swap, Some(1.5)));
        assert!(!holds(memory, swap, None) && !holds(memory, swap, Some(2.0)));
        let without = Limit {
            processors: None,
            ..LIMIT
        };
        let seen = Seen {
            memory,
            swap,
            processors: Some(0.5),
        };
        let checked = Enclosure::systemd(without).check(seen);
        assert!(checked.is_ok(), "nothing was asked for");
    }

    #[test]
    fn a_quota_that_cannot_be_made_is_told_of_with_what_mends_it() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let missing = folder.path().join("nothing");
        let error = set_quota(Version::Two, &missing, 16.0).expect_err("no such folder");
        assert!(matches!(error, Error::Missing { .. }), "{error}");
        let text = error.to_string();
        assert!(
            text.contains("16 processors") && text.contains("cpu.max"),
            "{text}"
        );
        set_quota(Version::One, folder.path(), 1.5).expect("plain files keep what is written");
        let written = fs::read_to_string(folder.path().join("cpu.cfs_quota_us"));
        assert_eq!(written.expect("read"), "150000");
    }

    #[test]
    fn a_limit_that_does_not_read_back_is_refused() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let missing = folder.path().join("nothing");
        assert!(set_limits(Version::Two, &missing, LIMIT).is_err());
        set_limits(Version::Two, folder.path(), LIMIT).expect("plain files keep what is written");
        set_limits(Version::One, folder.path(), LIMIT).expect("plain files keep what is written");
    }

    /// With sufficient rights, this test creates real groups. Without them, the refusal must be one
    /// line.
    #[test]
    fn a_group_is_made_and_removed_or_refused_in_one_line() {
        let home = tempfile::tempdir().expect("a temporary folder");
        let (ledger, _) = Ledger::open(home.path()).expect("opened");
        for mechanism in [Mechanism::CgroupTwo, Mechanism::CgroupOne] {
            match Enclosure::make(mechanism, LIMIT, &ledger) {
                Ok(enclosure) => {
                    let folders: Vec<_> = enclosure.join.clone();
                    assert!(folders.iter().all(|file| file.exists()));
                    drop(enclosure);
                    assert!(folders.iter().all(|file| !file.exists()));
                }
                Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
            }
        }
    }
}
