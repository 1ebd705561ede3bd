//! Tests of gen-data on a full disk, in several processes at the same time, and interrupted by
//! Ctrl-C or kill -9.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{catalog, names, refusal, success, text};

/// Starts to write many data sets, and waits for the first one.
fn started(folder: &Path) -> Child {
    let first = folder.join("set-000.bin");
    let mut command = catalog(&["gen-data", text(folder), "-n", "64", "-s", "20"]);
    // SAFETY: `heed_signals` only calls `signal`, which is async-signal-safe and allowed after
    // fork.
    unsafe { command.pre_exec(heed_signals) };
    let child = command.stderr(Stdio::piped()).spawn().expect("started");
    let since = Instant::now();
    while !first.exists() {
        assert!(
            since.elapsed() < Duration::from_secs(120),
            "nothing is made"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

/// Restores the default actions of signals, which a shell may set to ignore for background
/// commands.
fn heed_signals() -> std::io::Result<()> {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: `SIG_DFL` is a valid action for each of these signals.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    Ok(())
}

fn send(child: &Child, signal: i32) {
    let id = libc::pid_t::try_from(child.id()).expect("a process id");
    // SAFETY: `kill` takes only numbers. The child has not been waited for, so no other process has
    // its id.
    assert_eq!(unsafe { libc::kill(id, signal) }, 0);
}

#[test]
fn ctrl_c_leaves_nothing() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        let root = tempfile::tempdir().expect("a temporary folder");
        let child = started(&root.path().join("data"));
        send(&child, signal);
        let done = child.wait_with_output().expect("waited for");
        assert_eq!(done.status.code(), Some(130));
        let line = crate::common::stderr(&done);
        assert_eq!(
            line,
            "heapdrome-catalog: interrupted; nothing was left behind\n"
        );
        assert_eq!(names(root.path()), Vec::<String>::new());
    }
}

#[test]
fn what_a_killed_run_left_is_neither_used_nor_overwritten() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let folder = root.path().join("data");
    let mut killed = started(&folder);
    send(&killed, libc::SIGKILL);
    killed.wait().expect("waited for");
    let left = names(&folder);
    let test = ["test", text(&folder), "-n", "1"];
    let again = ["gen-data", text(&folder), "-n", "1", "-s", "20"];
    for words in [&test[..], &again] {
        let line = refusal(2, &mut catalog(words));
        assert!(line.contains("are incomplete"), "{line}");
    }
    assert_eq!(names(&folder), left);
}

#[test]
fn of_runs_at_once_one_writes_the_data_and_the_others_leave_them_alone() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let folder = root.path().join("data");
    let start = || {
        catalog(&["gen-data", text(&folder), "-n", "2", "-s", "8"])
            .stderr(Stdio::piped())
            .spawn()
            .expect("started")
    };
    let children = [start(), start(), start()];
    let done = children.map(|child| child.wait_with_output().expect("waited for"));
    let codes = done.each_ref().map(|done| done.status.code());
    assert!(codes.contains(&Some(0)), "{codes:?}");
    assert!(
        codes.iter().all(|code| matches!(code, Some(0 | 2))),
        "{codes:?}"
    );
    assert_eq!(names(&folder), ["set-000.bin", "set-001.bin"]);
    success(&mut catalog(&["test", text(&folder), "-n", "2"]));
}

/// Returns a command that runs a script in its own mount namespace, where the script can mount a
/// small file system. Returns `None` if this system does not allow that.
fn on_a_small_disk(script: &str, arguments: &[&str]) -> Option<Command> {
    let namespace = ["-m", "-r"];
    let tried = Command::new("unshare")
        .args(namespace)
        .args(["sh", "-c", "mount -t tmpfs -o size=1m tmpfs /mnt"])
        .output();
    if !tried.is_ok_and(|done| done.status.success()) {
        return None;
    }
    let mut command = Command::new("unshare");
    command.args(namespace).args(["sh", "-c", script]);
    command.args(arguments);
    Some(command)
}

#[test]
fn a_full_disk_is_said_in_one_line_and_nothing_is_left() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let script = "mount -t tmpfs -o size=1m tmpfs \"$1\" || exit 99
        \"$0\" gen-data \"$1/data\" -n 4 -s 10
        status=$?
        ls -A \"$1\" > \"$2\"
        exit $status";
    let mount = root.path().join("mount");
    std::fs::create_dir(&mount).expect("made");
    let list = root.path().join("list");
    let words = [env!("CARGO_BIN_EXE_catalog"), text(&mount), text(&list)];
    let Some(mut command) = on_a_small_disk(script, &words) else {
        println!("skipped: a small file system cannot be mounted here without root");
        return;
    };
    let line = refusal(2, &mut command);
    assert!(line.contains("No space left on device"), "{line}");
    assert!(line.contains("nothing was left behind"), "{line}");
    assert_eq!(std::fs::read_to_string(&list).expect("written"), "");
}
