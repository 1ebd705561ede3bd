use std::path::Path;

use super::*;

const GENEROUS: Duration = Duration::from_secs(120);

/// Starts a shell that starts a child of its own before it executes `end`.
fn shell(folder: &Path, end: &str) -> Child {
    let script = format!("sleep 60 & echo $! >new; mv new child; {end}");
    Command::new("sh")
        .args(["-c", &script])
        .current_dir(folder)
        .process_group(0)
        .spawn()
        .expect("a shell starts")
}

/// Waits until the shell has started its child, and returns the child's process id.
fn child_in(folder: &Path) -> libc::pid_t {
    let started = Instant::now();
    loop {
        assert!(started.elapsed() < GENEROUS, "no child was made");
        if let Ok(text) = std::fs::read_to_string(folder.join("child")) {
            return text.trim().parse().expect("a process id");
        }
        std::thread::sleep(PAUSE);
    }
}

fn lives(pid: libc::pid_t) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, after)| !after.starts_with(['Z', 'X']))
}

#[test]
fn what_a_program_leaves_behind_goes_with_it_however_it_ended() {
    use std::os::unix::process::ExitStatusExt as _;
    for (end, code, signal) in [
        ("exit 0", Some(0), None),
        ("exit 3", Some(3), None),
        ("kill -SEGV $$", None, Some(libc::SIGSEGV)),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut shell = shell(folder.path(), end);
        let child = child_in(folder.path());
        let ending = wait(
            &mut shell,
            Limits::of_time(GENEROUS),
            &AtomicBool::new(false),
        );
        let Ok(Ended::Itself(status)) = ending else {
            panic!("{end}: it does not end by itself");
        };
        assert_eq!((status.code(), status.signal()), (code, signal));
        let started = Instant::now();
        while lives(child) {
            assert!(started.elapsed() < GENEROUS, "{end}: the child is left");
            std::thread::sleep(PAUSE);
        }
    }
}

#[test]
fn an_interrupt_ends_a_program() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut shell = shell(folder.path(), "wait");
    let ending = wait(
        &mut shell,
        Limits::of_time(GENEROUS),
        &AtomicBool::new(true),
    );
    assert!(matches!(ending, Err(WaitError::Interrupted)));
}

#[test]
fn a_program_that_takes_more_than_it_may_is_ended() {
    let memory = Limits {
        memory: Some(Bytes(1)),
        ..Limits::of_time(GENEROUS)
    };
    for limits in [Limits::of_time(PAUSE), memory] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut shell = shell(folder.path(), "wait");
        let ending = wait(&mut shell, limits, &AtomicBool::new(false));
        assert_eq!(ending.ok(), Some(Ended::OverLimit));
    }
}

#[test]
fn output_is_collected_to_its_end() {
    let mut command = Command::new("sh");
    command.args(["-c", "echo one; echo two; echo"]);
    dies_with_parent(in_own_group(&mut command)).stdout(Stdio::piped());
    let mut child = command.spawn().expect("a shell starts");
    let reader = collect(child.stdout.take());
    let ended = wait(&mut child, Limits::NONE, &AtomicBool::new(false));
    assert!(matches!(ended, Ok(Ended::Itself(status)) if status.success()));
    let text = String::from_utf8(reader.join().expect("read")).expect("text");
    assert_eq!(text, "one\ntwo\n\n");
    assert_eq!(last_line(&text), Some("two"));
}
