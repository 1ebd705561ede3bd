//! Process trees, read from `/proc`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use heapdrome_schema::Bytes;
use heapdrome_system::kernel::keyed;

pub(crate) fn own_pid() -> libc::pid_t {
    libc::pid_t::try_from(std::process::id()).unwrap_or(0)
}

/// A process at the time of its lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: libc::pid_t,
    /// Start time. It distinguishes the process from a later process with the same id.
    started: u64,
    pub(crate) parent: libc::pid_t,
    group: libc::pid_t,
}

/// Processes that existed before another process was started, and do not count as its descendants.
#[derive(Debug, Default)]
pub(crate) struct Earlier {
    processes: BTreeSet<(libc::pid_t, u64)>,
    /// Process groups of the earlier processes. A daemon's workers stay in its group, regardless of
    /// their parents.
    groups: BTreeSet<libc::pid_t>,
}

impl Earlier {
    /// Returns all current descendants of `root`.
    pub(crate) fn below(root: libc::pid_t) -> Self {
        let found = processes_below(root, &Self::default());
        Self {
            processes: found
                .iter()
                .map(|process| (process.pid, process.started))
                .collect(),
            groups: found.iter().map(|process| process.group).collect(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.processes.is_empty()
    }

    fn has(&self, process: &Process) -> bool {
        self.processes.contains(&(process.pid, process.started))
            || self.groups.contains(&process.group)
    }
}

/// Returns all descendants of `root` that are alive or not yet reaped, parents first. Excludes
/// `root` itself, the `earlier` processes and their process groups, and the descendants of both.
pub(crate) fn processes_below(root: libc::pid_t, earlier: &Earlier) -> Vec<Process> {
    let mut children: BTreeMap<libc::pid_t, Vec<Process>> = BTreeMap::new();
    for process in all_processes() {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found = Vec::new();
    let mut open = vec![root];
    while let Some(parent) = open.pop() {
        let mut below = children.remove(&parent).unwrap_or_default();
        below.retain(|process| !earlier.has(process));
        open.extend(below.iter().map(|process| process.pid));
        found.append(&mut below);
    }
    found
}

/// Returns whether the id of `process` still belongs to the same process, and this process is one
/// that [`processes_below`] lists. Listing all processes takes time, in which an id may be reused.
pub(crate) fn is_below(process: &Process, root: libc::pid_t, earlier: &Earlier) -> bool {
    let mut current = process_of(process.pid);
    if current.is_none_or(|now| now.started != process.started) {
        return false;
    }
    while let Some(process) = current.filter(|process| !earlier.has(process)) {
        if process.parent == root {
            return true;
        }
        current = process_of(process.parent);
    }
    false
}

/// Returns every process of the system.
fn all_processes() -> Vec<Process> {
    let Ok(folder) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = folder
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(process_of).collect()
}

fn process_of(pid: libc::pid_t) -> Option<Process> {
    stat_of(pid).map(|stat| Process {
        pid,
        started: stat.started,
        parent: stat.parent,
        group: stat.group,
    })
}

/// The fields of `/proc/PID/stat` that are needed.
pub(crate) struct Stat {
    name: String,
    pub(crate) state: char,
    parent: libc::pid_t,
    group: libc::pid_t,
    pub(crate) started: u64,
    /// Processor time in clock ticks.
    pub(crate) ticks: u64,
}

pub(crate) fn stat_of(pid: libc::pid_t) -> Option<Stat> {
    parse_stat(&String::from_utf8_lossy(
        &fs::read(format!("/proc/{pid}/stat")).ok()?,
    ))
}

/// Parses the text of a `stat` file. The name is in parentheses, and may itself contain any
/// character, including parentheses.
pub(crate) fn parse_stat(text: &str) -> Option<Stat> {
    let (before, after) = text.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    let fields: Vec<&str> = after.split_whitespace().collect();
    let number = |place: usize| fields.get(place)?.parse::<u64>().ok();
    Some(Stat {
        name: name.to_owned(),
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        started: number(19)?,
        ticks: number(11)? + number(12)?,
    })
}

/// Returns the name of a process; `None` if it has ended.
pub(crate) fn name_of_live(pid: libc::pid_t) -> Option<String> {
    stat_of(pid)
        .filter(|stat| !matches!(stat.state, 'Z' | 'X'))
        .map(|stat| stat.name)
}

/// Returns the start time of a process, in clock ticks since boot. It distinguishes the process
/// from a later process with the same id.
pub(crate) fn start_of(pid: libc::pid_t) -> Option<u64> {
    stat_of(pid).map(|stat| stat.started)
}

/// Sizes that distinguish one process's memory from another's.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Footprint {
    anonymous_kib: u64,
    size_kib: u64,
    data_kib: u64,
}

/// Returns the resident anonymous memory of all descendants of `root`, excluding `root` itself.
///
/// A child with exactly its parent's footprint is not counted. Between vfork and exec it uses the
/// parent's address space, and just after a fork it shares every page.
pub(crate) fn anonymous_below(root: libc::pid_t) -> Bytes {
    let mut footprints = BTreeMap::new();
    let mut total = 0;
    for Process { pid, .. } in processes_below(root, &Earlier::default()) {
        let Some((parent, footprint)) = footprint_of(pid) else {
            continue;
        };
        if footprints.get(&parent) != Some(&footprint) {
            total += footprint.anonymous_kib;
        }
        footprints.insert(pid, footprint);
    }
    Bytes::from_kib(total)
}

fn footprint_of(pid: libc::pid_t) -> Option<(libc::pid_t, Footprint)> {
    parse_status(&String::from_utf8_lossy(
        &fs::read(format!("/proc/{pid}/status")).ok()?,
    ))
}

fn parse_status(text: &str) -> Option<(libc::pid_t, Footprint)> {
    let footprint = Footprint {
        anonymous_kib: keyed(text, "RssAnon:")?,
        size_kib: keyed(text, "VmSize:")?,
        data_kib: keyed(text, "VmData:")?,
    };
    Some((
        libc::pid_t::try_from(keyed(text, "PPid:")?).ok()?,
        footprint,
    ))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;
    use std::process::{Child, Command};
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn names_with_parentheses_do_not_confuse() {
        let text = format!("7 (a) S (b)) R 42 41 {}", "1 ".repeat(16) + "99 5");
        let stat = parse_stat(&text).expect("a stat line");
        assert_eq!(
            (stat.name.as_str(), stat.state, stat.parent, stat.group),
            ("a) S (b)", 'R', 42, 41)
        );
        assert_eq!(stat.started, 99);
    }

    #[test]
    fn a_status_without_memory_is_no_footprint() {
        assert!(parse_status("Name:\tkthreadd\nPPid:\t0\n").is_none());
        let text = "PPid:\t3\nVmSize:\t  900 kB\nVmData:\t 50 kB\nRssAnon:\t 40 kB\n";
        let (parent, footprint) = parse_status(text).expect("a footprint");
        assert_eq!(
            (parent, footprint.anonymous_kib, footprint.size_kib),
            (3, 40, 900)
        );
    }

    /// Starts a shell in its own process group, with a child in that group.
    fn shell() -> Child {
        Command::new("/bin/sh")
            .args(["-c", "sleep 30 & wait"])
            .process_group(0)
            .spawn()
            .expect("a shell starts")
    }

    fn child_of(shell: &Child) -> Process {
        let end = Instant::now() + Duration::from_secs(10);
        loop {
            assert!(Instant::now() < end, "no grandchild seen");
            if let Some(&process) = processes_below(pid_of(shell), &Earlier::default()).first() {
                return process;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn pid_of(child: &Child) -> libc::pid_t {
        libc::pid_t::try_from(child.id()).expect("an id")
    }

    fn end(mut shell: Child) {
        // SAFETY: the group's leader is this test's own child, whose id is valid until it is reaped
        // below.
        unsafe { libc::kill(-pid_of(&shell), libc::SIGKILL) };
        shell.wait().expect("the shell ends");
    }

    #[test]
    fn a_child_and_its_child_are_descendants() {
        let shell = shell();
        let sleep = child_of(&shell);
        let none = Earlier::default();
        assert!(processes_below(own_pid(), &none).contains(&sleep));
        assert!(is_below(&sleep, own_pid(), &none));
        assert!(start_of(sleep.pid) >= start_of(pid_of(&shell)));
        end(shell);
    }

    #[test]
    fn earlier_processes_and_what_is_below_them_are_left_out() {
        let first = shell();
        let first_sleep = child_of(&first);
        let earlier = Earlier::below(own_pid());
        let second = shell();
        let second_sleep = child_of(&second);
        let found = processes_below(own_pid(), &earlier);
        assert!(found.contains(&second_sleep) && !found.contains(&first_sleep));
        assert!(is_below(&second_sleep, own_pid(), &earlier));
        assert!(!is_below(&first_sleep, own_pid(), &earlier));

        // Only the shell is listed as earlier: first by its id, so that its child is recognised by
        // its parent, and then by its group.
        let shell = process_of(pid_of(&first)).expect("it lives");
        for processes in [vec![(shell.pid, shell.started)], Vec::new()] {
            let groups = if processes.is_empty() {
                vec![shell.group]
            } else {
                Vec::new()
            };
            let earlier = Earlier {
                processes: processes.into_iter().collect(),
                groups: groups.into_iter().collect(),
            };
            assert!(!processes_below(own_pid(), &earlier).contains(&first_sleep));
            assert!(!is_below(&first_sleep, own_pid(), &earlier));
        }
        end(first);
        end(second);
    }

    #[test]
    fn another_process_of_the_same_id_is_a_stranger() {
        let shell = shell();
        let sleep = child_of(&shell);
        let none = Earlier::default();
        let before = Process {
            started: sleep.started - 1,
            ..sleep
        };
        assert!(!is_below(&before, own_pid(), &none));
        assert!(
            !is_below(&sleep, sleep.pid, &none),
            "no process is below itself"
        );
        end(shell);
    }
}
