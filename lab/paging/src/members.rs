//! The processes in a control group that the lab made.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpid, kill_process};

/// Maximum time that killed processes may take to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// Kills every process in a group, and waits until the group is empty. Does nothing if the folder
/// does not exist or is not a control group.
///
/// # Errors
/// When some processes are still alive after `PATIENCE`, or cannot be listed.
pub(crate) fn kill_all(folder: &Path) -> io::Result<()> {
    if !is_control_group(folder) {
        return Ok(());
    }
    // In version 2, this write kills all members. If the file does not exist, the loop below kills
    // them.
    let _ = fs::OpenOptions::new()
        .write(true)
        .open(folder.join("cgroup.kill"))
        .and_then(|mut file| io::Write::write_all(&mut file, b"1"));
    let end = Instant::now() + PATIENCE;
    loop {
        let text = match fs::read_to_string(folder.join("cgroup.procs")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other?,
        };
        let there = members(&text);
        if there.is_empty() {
            return Ok(());
        }
        if Instant::now() >= end {
            let count = there.len();
            return Err(io::Error::other(format!(
                "{count} killed processes did not end"
            )));
        }
        for process in there {
            // The kernel has just listed this process as a member of the group. Only the lab places
            // processes in the group.
            let _ = kill_process(process, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Parses a list of process ids. Omits init and this process. Also omits 0, which stands for a
/// process of another PID namespace, because `kill` would apply it to this process's own group.
fn members(text: &str) -> Vec<Pid> {
    let numbers = text.lines().filter_map(|line| line.trim().parse().ok());
    let others = [Pid::INIT, getpid()];
    numbers
        .filter_map(Pid::from_raw)
        .filter(|process| !others.contains(process))
        .collect()
}

/// Returns whether a folder is in the kernel's own file system for groups. Only there can the lab
/// trust the files of the folder.
fn is_control_group(folder: &Path) -> bool {
    let kinds = [libc::CGROUP_SUPER_MAGIC, libc::CGROUP2_SUPER_MAGIC];
    rustix::fs::statfs(folder).is_ok_and(|found| kinds.contains(&found.f_type))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_killed_that_a_plain_file_names() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .expect("started");
        fs::write(folder.path().join("cgroup.procs"), child.id().to_string()).expect("written");
        kill_all(folder.path()).expect("left alone");
        assert!(child.try_wait().expect("asked").is_none(), "it still runs");
        child.kill().expect("killed");
        child.wait().expect("waited for");
        kill_all(&folder.path().join("nothing")).expect("left alone");
    }

    #[test]
    fn this_process_and_those_without_a_number_are_no_members() {
        let text = format!("0\n1\n{}\n4194304\nx\n", std::process::id());
        assert_eq!(members(&text), Vec::from_iter(Pid::from_raw(4_194_304)));
    }
}
