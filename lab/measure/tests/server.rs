//! Tests servers that are measured under load.

mod common;

use std::path::Path;

use common::{round, shell_plan, start};
use heapdrome_measure::{Interrupt, MeasureError};
use heapdrome_schema::{Bytes, Ending, Nanoseconds, Plan, Server};

fn server_plan(serve: &str, load: &str, folder: &Path) -> Plan {
    let mut plan = shell_plan(load, folder);
    plan.entrants.truncate(1);
    plan.options.prepare = Some("rm -f ready".to_owned());
    plan.options.server = Some(Server {
        serve: serve.to_owned(),
        ready: "test -e ready".to_owned(),
        ready_within: LONG,
        idle: Nanoseconds(0),
    });
    plan
}

/// Time limit that the test exceeds.
const SHORT: Nanoseconds = Nanoseconds(700_000_000);
/// Time limit that the test does not exceed, even on a busy machine.
const LONG: Nanoseconds = Nanoseconds(120_000_000_000);

#[test]
fn the_load_gives_the_wall_time_and_the_server_all_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let tool = common::tool();
    let tool = tool.display();
    // The shell does not wait for its child when it receives SIGTERM, so the cost of the child must
    // be added.
    let serve = format!("echo $A >said; '{tool}' hold 80 ready & wait");
    let load = format!("echo \"${{A-none}}\" >asked; '{tool}' touch 10");
    let mut plan = server_plan(&serve, &load, folder.path());
    plan.entrants[0]
        .settings
        .insert("A".into(), "under it".into());
    let mut race = start(&plan, folder.path()).expect("a race");
    round(&mut race).expect("a round");
    let run = &race.runs()[0];
    assert!(
        run.peak_rss > Bytes(80 << 20) && run.peak_rss < Bytes(90 << 20),
        "{}",
        run.peak_rss
    );
    assert!(run.wall > Nanoseconds(200_000_000) && run.wall < LONG);
    assert!(run.minor_faults > 1000 || run.system > Nanoseconds(0));
    assert_eq!(run.ending, Ending::Exited(0));
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect("a file");
    assert_eq!(
        (read("said").as_str(), read("asked").as_str()),
        ("under it\n", "none\n")
    );
    assert!(run.detached.is_empty() && !common::is_alive("hold"));
}

#[test]
fn a_server_that_dies_or_is_late_is_a_failed_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let failure = |serve: &str, load: &str, name: &str| {
        let mut plan = server_plan(serve, load, folder.path());
        if let Some(server) = &mut plan.options.server {
            server.ready_within = if name == "late" { SHORT } else { LONG };
        }
        let mut race = start(&plan, &folder.path().join(name)).expect("a race");
        round(&mut race).expect("a round");
        assert!(!common::is_alive("75.25"));
        race.failures()[0].clone()
    };
    let early = failure("echo no port >&2; exit 7", "true", "early");
    assert_eq!(early.ending, Ending::Exited(7));
    assert_eq!(
        early.stderr_tail,
        "the server ended before it was ready\nno port"
    );
    let late = failure("sleep 75.25", "true", "late");
    assert_eq!(late.ending, Ending::TimedOut);
    let midway = failure(
        "touch ready; sleep 3; kill -SEGV $$",
        "sleep 75.25",
        "midway",
    );
    assert_eq!(midway.ending, Ending::Killed(libc::SIGSEGV));
    assert_eq!(midway.stderr_tail, "the server ended before its load did");
    let load = failure(
        "touch ready; exec sleep 75.25",
        "echo refused >&2; exit 2",
        "load",
    );
    assert_eq!(load.ending, Ending::Exited(2));
    assert_eq!(load.stderr_tail, "the load failed: refused");
}

#[test]
fn a_server_that_does_not_end_is_killed() {
    let folder = tempfile::tempdir().expect("a folder");
    let serve = "trap '' TERM; touch ready; sleep 76.25; sleep 76.25";
    let mut race =
        start(&server_plan(serve, "true", folder.path()), folder.path()).expect("a race");
    round(&mut race).expect("a round");
    assert_eq!(race.complete_rounds(), 1);
    assert!(!common::is_alive("76.25"));
}

#[test]
fn an_interrupt_ends_the_server_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = server_plan(
        "touch ready; sleep 77.25",
        "touch loaded; sleep 77.5",
        folder.path(),
    );
    let mut race = start(&plan, folder.path()).expect("a race");
    let interrupt = Interrupt::default();
    let raised = interrupt.clone();
    let loaded = folder.path().join("loaded");
    let raiser = std::thread::spawn(move || {
        common::within(std::time::Duration::from_secs(120), "the load", || {
            loaded.exists()
        });
        raised.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let error = race
        .next_round(&mut |_| {}, &interrupt)
        .expect_err("interrupted");
    raiser.join().expect("raised");
    assert!(matches!(error, MeasureError::Interrupted));
    assert!(!common::is_alive("77.25") && !common::is_alive("77.5"));
}

#[test]
fn what_setup_started_outlives_the_steps_after_it_and_not_the_race() {
    let folder = tempfile::tempdir().expect("a folder");
    let both = || common::is_alive("78.25") && common::is_alive("78.5");
    let run = |name: &str, ready: &str, serve: &str, load: &str| {
        let mut plan = server_plan(serve, load, folder.path());
        // One daemon runs in the background of the setup's shell. The other is detached and has a
        // worker.
        plan.options.setup = Some("sleep 78.25 & setsid sh -c 'sleep 78.5; true' &".to_owned());
        plan.options.timeout = Some(if name == "load" { SHORT } else { LONG });
        if let Some(server) = &mut plan.options.server {
            server.ready = ready.to_owned();
            server.ready_within = if name == "late" { SHORT } else { LONG };
        }
        let mut race = start(&plan, &folder.path().join(name)).expect("a race");
        race.setup(&Interrupt::default()).expect("set up");
        common::within(std::time::Duration::from_secs(120), "the daemons", both);
        round(&mut race).expect("a round");
        assert!(both(), "{name}: a daemon is gone");
        assert!(!common::is_alive("79.25"), "{name}: the step is left");
        let failure = race.failures()[0].clone();
        drop(race);
        assert!(!common::is_alive("78.25") && !common::is_alive("78.5"));
        (failure.ending, failure.stderr_tail)
    };
    // The shell command `long` leaves two processes behind: one in its process group, and a
    // detached one.
    let long = "setsid sleep 79.25 & sleep 79.25 & sleep 79.25";
    let serve = "touch ready; exec sleep 77.75";
    let (_, said) = run("load", "test -e ready", serve, long);
    assert!(said.starts_with("the load failed"), "{said}");
    let (ending, said) = run("late", long, serve, "true");
    assert_eq!(ending, Ending::TimedOut);
    assert!(said.starts_with("the server was not ready"), "{said}");
    let (_, said) = run("orphan", "test -e ready", "touch ready; sleep 3", long);
    assert!(
        said.starts_with("the server ended before its load"),
        "{said}"
    );
}

#[test]
fn a_server_may_have_all_the_time_to_be_ready() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut plan = server_plan("touch ready; exec sleep 77.5", "true", folder.path());
    if let Some(server) = &mut plan.options.server {
        server.ready_within = Nanoseconds(u64::MAX);
    }
    let mut race = start(&plan, folder.path()).expect("a race");
    round(&mut race).expect("a round");
    assert_eq!(race.complete_rounds(), 1);
}
