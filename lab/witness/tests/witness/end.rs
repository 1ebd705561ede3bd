//! Tests that runs end as expected, and that no process remains: after timeouts, interrupts,
//! dropped sessions, signals, an exec by a thread, killed parents and concurrent starts.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::bench::{Bench, system};
use heapdrome_schema::{Coverage, Ending};
use heapdrome_witness::{Witness, WitnessError};

/// Returns whether a process is alive. A zombie is not.
fn alive(pid: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status
        .lines()
        .any(|line| line.starts_with("State:") && !line.contains("zombie"))
}

/// Returns whether a process runs whose command line consists of this program name and argument.
fn runs(program: &str, argument: &str) -> bool {
    let wanted = format!("{program}\0{argument}\0");
    let processes = std::fs::read_dir("/proc").expect("/proc is there");
    let mut lines = processes
        .flatten()
        .filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    lines.any(|line| line == wanted.as_bytes())
}

#[test]
fn the_time_limit_ends_the_whole_tree() {
    let bench = Bench::new();
    let script = "setsid sleep 1000 & (trap '' TERM; sleep 1000) & sleep 1000";
    let mut request = bench.request(&bench.bump(), &["sh", "-c", script]);
    request.timeout = Some(Duration::from_millis(500));
    let start = Instant::now();
    let report = bench.take(&request).expect("a report");
    assert_eq!(report.ending, Ending::TimedOut);
    assert!(start.elapsed() < Duration::from_secs(120));
    for image in &report.images {
        assert!(!alive(image.pid));
    }
}

#[test]
fn an_interrupt_and_a_dropped_session_end_the_tree() {
    let bench = Bench::new();
    let request = bench.request(&bench.bump(), &["sleep", "1000"]);
    let witness = Witness::new(bench.folder.path()).expect("a witness");
    let session = witness.start(&request).expect("a session");
    assert!(session.is_running());
    request.interrupt.store(true, Ordering::Release);
    assert!(matches!(session.finish(), Err(WitnessError::Interrupted)));
    request.interrupt.store(false, Ordering::Release);
    let session = witness.start(&request).expect("a session");
    let pid = session.pid();
    drop(session);
    assert!(!alive(pid));
}

#[test]
fn a_server_is_stopped_and_what_it_left_is_seen() {
    let bench = Bench::new();
    let request = bench.request(
        &bench.bump(),
        &["sh", "-c", "setsid sleep 500.125 & sleep 1000.125"],
    );
    let session = Witness::new(bench.folder.path())
        .unwrap()
        .start(&request)
        .expect("a session");
    while !(runs("sleep", "500.125") && runs("sleep", "1000.125")) {
        assert!(session.is_running(), "it ended before it was stopped");
        std::thread::sleep(Duration::from_millis(10));
    }
    session.stop(libc::SIGTERM);
    let report = session.finish().expect("a report");
    assert_eq!(report.ending, Ending::Killed(libc::SIGTERM));
    assert_eq!(report.proof.coverage, Coverage::Whole, "{report:#?}");
    assert!(
        report
            .images
            .iter()
            .filter(|image| image.program.contains("sleep"))
            .count()
            >= 1
    );
}

#[test]
fn stops_and_continuations_are_the_programs_own() {
    let bench = Bench::new();
    let script = "sleep 0.3 & kill -STOP $!; kill -CONT $!; wait $!; echo $?; kill -9 $$";
    let report = bench.run(&bench.bump(), &["bash", "-c", script]);
    assert_eq!(report.ending, Ending::Killed(9));
    assert_eq!(
        std::fs::read_to_string(bench.path("stdout")).unwrap(),
        "0\n"
    );
}

#[test]
fn a_thread_may_exec() {
    let bench = Bench::new();
    let source = r#"
        #include <pthread.h>
        #include <stdlib.h>
        #include <unistd.h>
        void *idle(void *p) { for (;;) pause(); }
        void *work(void *p) { execl("/bin/sh", "sh", "-c", "exit 5", (char *)0); return 0; }
        int main() {
            pthread_t a, b;
            for (int i = 0; i < 10; i++) malloc(1);
            pthread_create(&a, 0, idle, 0);
            pthread_create(&b, 0, work, 0);
            pthread_exit(0);
        }"#;
    let program = bench.c("thread", source, &["-pthread"]);
    let report = bench.run(&bench.bump(), &[&program]);
    assert_eq!(report.ending, Ending::Exited(5));
    assert_eq!(
        (report.proof.processes, report.proof.coverage),
        (2, Coverage::Whole),
        "{report:#?}"
    );
}

#[test]
fn children_of_parents_that_were_killed_while_they_forked_are_ended() {
    let bench = Bench::new();
    let source = r#"
        #include <signal.h>
        #include <sys/wait.h>
        #include <unistd.h>
        int main() {
            for (int i = 0; i < 30; i++) {
                int parent = fork();
                if (parent == 0) {
                    for (int n = 0; n < 20; n++) if (fork() == 0) for (;;) pause();
                    for (;;) pause();
                }
                usleep(500 + 50 * i);
                kill(parent, SIGKILL);
                waitpid(parent, 0, 0);
            }
        }"#;
    let program = bench.c("orphans", source, &[]);
    let request = bench.request(&bench.bump(), &[&program]);
    let witness = Witness::new(bench.folder.path()).expect("a witness");
    let session = witness.start(&request).expect("a session");
    let (done, waits) = std::sync::mpsc::channel();
    // One child that the tree does not know would keep the run from ending.
    std::thread::spawn(move || done.send(session.finish().map(|report| report.ending)));
    let ending = waits.recv_timeout(Duration::from_secs(120));
    let ending = ending.expect("the run ends").expect("a report");
    assert_eq!(ending, Ending::Exited(0));
}

/// A new child waits until its parent closes an end of a pipe. If another thread forks a second
/// child in the meantime, that child has a copy of the end until its own exec. The two children
/// must not wait for each other.
#[test]
fn sessions_that_begin_at_once_do_not_wait_for_one_another() {
    let bench = Bench::new();
    let mut request = bench.request(&system(), &["/bin/true"]);
    request.timeout = Some(Duration::from_secs(20));
    let run_many = || {
        for _ in 0..40 {
            let report = bench.take(&request).expect("a report");
            assert_eq!(report.ending, Ending::Exited(0));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(run_many);
        }
    });
}
