//! Tests of the paging lab as a user runs it. Root, swap and control groups exist on some machines
//! only, so each test checks properties that hold on every machine, or returns early where it
//! cannot run.

use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::Site;

/// ID of the user `nobody`, who has no privileges.
const NOBODY: u32 = 65534;

fn ledgers(site: &Site) -> Vec<PathBuf> {
    let folder = site.path(".local/state/heapdrome/paging");
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    entries.flatten().map(|entry| entry.path()).collect()
}

/// Returns a command for an unprivileged user; `None` if that user may not run heapdrome, or this
/// user cannot switch to another.
pub fn without_rights(site: &Site, arguments: &[&str]) -> Option<Command> {
    // SAFETY: geteuid has no preconditions.
    if unsafe { libc::geteuid() } != 0 {
        return None;
    }
    let open = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(site.path("."), open).expect("it is ours");
    let mut probe = site.command(&["--version"]);
    let runs = probe.uid(NOBODY).gid(NOBODY).stdout(Stdio::null()).status();
    runs.ok().filter(std::process::ExitStatus::success)?;
    let mut command = site.command(arguments);
    command.uid(NOBODY).gid(NOBODY);
    Some(command)
}

#[test]
fn mistakes_are_told_in_one_line() {
    for (arguments, words) in [
        (
            &["paging", "random", "--swap", "disk:8G"][..],
            &["disk:8G", "file:8G"][..],
        ),
        (&["paging", "random", "--ram", "3K"], &["3K"]),
        (&["paging", "ratio-sweep", "--total", "many"], &["many"]),
        (
            &["paging", "strategies", "-a", "no-such-one"],
            &["no-such-one"],
        ),
        (&["paging", "throughput", "-t", "0"], &["1 to 256"]),
        (
            &["suite", "lgalloc", "--only", "fish"],
            &["--only fish", "ratio-sweep"],
        ),
        (
            &["suite", "lgalloc", "--resume", "none.json"],
            &["none.json"],
        ),
        (&["suite", "rpmalloc", "--thp"], &["for the suite lgalloc"]),
        (&["suite", "lgalloc", "-a", "no-such-one"], &["no-such-one"]),
    ] {
        let site = Site::new();
        site.run(arguments).complains(2, words);
        assert_eq!(site.visible_files(), [""; 0], "nothing is written");
    }
}

#[test]
fn a_file_that_cannot_be_written_is_told_of_before_anything_is_measured() {
    let site = Site::new();
    let outcome = site.run(&["suite", "lgalloc", "--quick", "--markdown", "none/x.md"]);
    outcome.complains(4, &["none/x.md"]);
    assert!(ledgers(&site).is_empty());
}

#[test]
fn the_check_names_every_mechanism_and_leaves_nothing() {
    let site = Site::new();
    let outcome = site.run(&["paging", "check"]);
    outcome.ends_with(0);
    for words in ["systemd-run", "cgroup v2", "cgroup v1", "swap"] {
        outcome.tells(words);
    }
    assert!(ledgers(&site).is_empty());
    site.run(&["paging", "clean"])
        .ends_with(0)
        .tells("nothing to remove");
}

/// Writes a ledger that names these items, as a killed lab would leave it.
fn leave_ledger(site: &Site, items: &[Value]) -> PathBuf {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("Linux has it");
    let making = items.iter().enumerate();
    let making = making.map(|(number, item)| serde_json::json!({ "making": [number, item] }));
    let begun = serde_json::json!({ "boot": boot.trim() });
    let lines = std::iter::once(begun).chain(making);
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    std::fs::create_dir_all(site.path(".local/state/heapdrome/paging")).expect("made");
    site.file(".local/state/heapdrome/paging/1-1.ledger", text)
}

/// Plain files and a plain folder stand for the kernel's swap files and control group.
#[test]
fn what_a_ledger_names_is_removed_and_nothing_else() {
    let site = Site::new();
    let ours = site.file("heapdrome-paging-swap-1", "x");
    let foreign = site.file("swapfile", "precious");
    let group = site.path("heapdrome-paging-group");
    std::fs::create_dir(&group).expect("made");
    let items = [
        serde_json::json!({ "kind": "swap-file", "path": ours }),
        serde_json::json!({ "kind": "swap-file", "path": foreign }),
        serde_json::json!({ "kind": "group", "folder": group }),
        serde_json::json!({ "kind": "swap-file", "path": site.path("heapdrome-paging-gone") }),
    ];
    leave_ledger(&site, &items);
    let outcome = site.run(&["paging", "clean"]);
    let told = |name: &str| format!("{}\n", site.path(name).display());
    let expected = [
        format!("removed control group {}", told("heapdrome-paging-group")),
        format!("removed swap file {}", told("heapdrome-paging-swap-1")),
        format!(
            "kept: swap file {}, which heapdrome did not create\n",
            foreign.display()
        ),
    ];
    assert_eq!(outcome.ends_with(0).stdout, expected.concat());
    assert!(!ours.exists() && !group.exists() && foreign.exists());
    assert!(ledgers(&site).is_empty());
}

/// A locked ledger stands for a running lab.
#[test]
fn what_a_running_lab_has_made_is_left_alone() {
    let site = Site::new();
    let made = site.file("heapdrome-paging-swap-1", "x");
    let item = serde_json::json!({ "kind": "swap-file", "path": made });
    let ledger = std::fs::File::open(leave_ledger(&site, &[item])).expect("it is there");
    let lock = |how: libc::c_int| {
        // SAFETY: flock accesses no memory, and `ledger` keeps the descriptor open.
        assert_eq!(unsafe { libc::flock(ledger.as_raw_fd(), how) }, 0);
    };
    lock(libc::LOCK_EX);
    let outcome = site.run(&["paging", "clean"]);
    let expected = "kept: items of running labs (1)\n";
    assert_eq!(outcome.ends_with(0).stdout, expected);
    assert!(made.exists() && ledgers(&site).len() == 1);
    // Unlock explicitly. Closing the file would not release the lock if a process that another test
    // is starting has inherited it.
    lock(libc::LOCK_UN);
    let outcome = site.run(&["paging", "clean"]);
    outcome.ends_with(0).tells("removed swap file");
    assert!(!made.exists() && ledgers(&site).is_empty());
}

/// Waits until the first cell runs.
fn wait_for_the_first_cell(running: &mut crate::support::Running) {
    wait_for(running, "round 1 of");
}

/// Waits until a running heapdrome prints this text on standard error.
fn wait_for(running: &mut crate::support::Running, words: &str) {
    let begun = Instant::now();
    while !running.stderr().contains(words) {
        assert!(running.is_running(), "{}", running.stderr());
        assert!(
            begun.elapsed() < Duration::from_secs(120),
            "{}",
            running.stderr()
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Arguments of a long run with one embedded allocator, for which nothing is fetched or built
/// first.
const LONG: [&str; 10] = [
    "paging",
    "throughput",
    "-a",
    "lgalloc",
    "-t",
    "1",
    "--rounds",
    "1000",
    "--time",
    "100s",
];

#[test]
fn ctrl_c_ends_an_experiment_and_leaves_nothing() {
    let site = Site::new();
    let mut running = site.start(site.command(&LONG));
    wait_for_the_first_cell(&mut running);
    running.signal(libc::SIGINT);
    let outcome = running.wait();
    outcome.ends_with(130);
    assert!(ledgers(&site).is_empty());
}

#[test]
fn what_a_killed_experiment_leaves_is_removed_by_the_next() {
    let site = Site::new();
    let mut running = site.start(site.command(&LONG));
    wait_for_the_first_cell(&mut running);
    running.signal(libc::SIGKILL);
    assert_eq!(running.wait().status, 128 + libc::SIGKILL);
    assert!(!ledgers(&site).is_empty(), "it could not clean up itself");
    site.run(&["paging", "clean"]).ends_with(0);
    assert!(ledgers(&site).is_empty());
}

/// Arguments for a part of a suite that needs neither swap nor a built allocator: five cells.
const SUITE: [&str; 6] = ["suite", "lgalloc", "--quick", "--only", "thp", "--rounds"];

fn suite<'a>(more: &[&'a str]) -> Vec<&'a str> {
    SUITE.into_iter().chain(more.iter().copied()).collect()
}

/// Returns the round of each stored report, by cell of the suite.
fn rounds(site: &Site, file: &str) -> Vec<Vec<u64>> {
    let text = std::fs::read_to_string(site.path(file)).expect("it is kept");
    let result: Value = serde_json::from_str(&text).expect("JSON");
    let cells = result["paging_cells"].as_array().expect("cells").iter();
    let of = |cell: &Value| {
        let reports = cell["reports"].as_array().expect("reports").iter();
        let round = |report: &Value| report["round"].as_u64().expect("a round");
        reports.map(round).collect()
    };
    cells.map(of).collect()
}

#[test]
fn a_suite_that_was_interrupted_or_killed_goes_on_where_it_stopped() {
    for signal in [libc::SIGINT, libc::SIGKILL] {
        let site = Site::new();
        let mut running = site.start(site.command(&suite(&["4", "--json", "a b.json"])));
        wait_for(&mut running, "round 2 of 4, 3 of 5");
        running.signal(signal);
        let outcome = running.wait();
        if signal == libc::SIGINT {
            outcome.ends_with(130);
            // The message contains the command line that the call below runs.
            let how = "heapdrome suite lgalloc --quick --only thp --rounds 4 --resume 'a b.json'";
            assert!(outcome.stderr.contains(how), "{}", outcome.stderr);
            assert!(
                outcome.stdout.contains("lgalloc+touch"),
                "what was measured is printed"
            );
        }
        let kept = rounds(&site, "a b.json");
        assert!(kept.iter().all(|own| own.starts_with(&[1])), "{kept:?}");
        let second = kept.iter().filter(|own| own.len() == 2).count();
        assert!((2..5).contains(&second), "{kept:?}");

        let on = suite(&["4", "--resume", "a b.json"]);
        let outcome = site.run(&on);
        outcome.ends_with(0);
        assert!(!outcome.stderr.contains("round 1 of"), "{}", outcome.stderr);
        assert_eq!(rounds(&site, "a b.json"), vec![vec![1, 2, 3, 4]; 5]);

        let shown = site.run(&["show", "a b.json"]);
        assert_eq!(shown.ends_with(0).stdout, outcome.stdout);
        let again = site.run(&on);
        assert!(
            !again.ends_with(0).stderr.contains("round"),
            "{}",
            again.stderr
        );
        assert_eq!(
            again.stdout, outcome.stdout,
            "tables and verdicts are made of what is kept"
        );
    }
}

#[test]
fn a_cell_of_another_setting_does_not_go_on() {
    let site = Site::new();
    let words = suite(&["1", "--json", "r.json"]);
    site.run(&words).ends_with(0);
    let text = std::fs::read_to_string(site.path("r.json")).expect("it is kept");
    let other = text.replace("\"warm_up\": 0.1", "\"warm_up\": 0.2");
    assert_ne!(text, other);
    site.file("r.json", other);
    let on = suite(&["1", "--resume", "r.json"]);
    site.run(&on)
        .complains(2, &["--resume r.json: thp/", "start the suite again"]);
}

#[test]
fn a_suite_of_cells_is_estimated() {
    let site = Site::new();
    let outcome = site.run(&suite(&["4", "--estimate"]));
    outcome.ends_with(0);
    for words in [" thp\n", " all together"] {
        assert!(outcome.stdout.contains(words), "{}", outcome.stdout);
    }
    assert_eq!(site.visible_files(), [""; 0], "nothing is written");
    assert!(!outcome.stderr.contains("round"), "{}", outcome.stderr);
}

#[test]
fn without_rights_one_line_says_what_is_missing() {
    for arguments in [
        &["paging", "random", "--quick"][..],
        &["paging", "strategies", "--swap", "file:1G"],
        &["survive", "-a", "system", "--", "/bin/true"],
    ] {
        let site = Site::new();
        let Some(command) = without_rights(&site, arguments) else {
            return;
        };
        site.finish(command)
            .complains(4, &["no memory limit can be made", "sudo"]);
    }
}

/// Requests the only part that needs neither a limit nor swap, and a part that is omitted without
/// them.
#[test]
fn without_rights_the_suite_runs_what_it_can() {
    let site = Site::new();
    let arguments = [
        "suite",
        "lgalloc",
        "--quick",
        "--rounds",
        "1",
        "--only",
        "heavy,thp",
        "--json",
        "r.json",
        "--markdown",
        "r.md",
    ];
    let Some(command) = without_rights(&site, &arguments) else {
        return;
    };
    let outcome = site.finish(command);
    outcome.ends_with(0);
    let text = std::fs::read_to_string(site.path("r.md")).expect("written");
    for words in [
        "left out",
        "measured without a limit",
        "lgalloc+touch",
        "not measured",
    ] {
        assert!(text.contains(words), "'{words}' is missing in:\n{text}");
    }
    let text = std::fs::read_to_string(site.path("r.json")).expect("written");
    let result: Value = serde_json::from_str(&text).expect("JSON");
    let claims = result["claims"].as_array().expect("claims");
    assert!(
        claims.iter().all(|claim| claim["holds"] != "held"),
        "one round decides nothing"
    );
    let shown = site.run(&["show", "r.json"]);
    assert_eq!(shown.ends_with(0).stdout, outcome.stdout);
    let drawn = site.run(&["plot", "r.json", "-o", "plots", "--format", "svg"]);
    assert!(
        drawn.ends_with(0).stdout.contains("ccdf"),
        "{}",
        drawn.stdout
    );
    site.run(&["report", "r.json", "-o", "r.html"]).ends_with(0);
}
