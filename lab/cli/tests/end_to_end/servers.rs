//! Tests of races in which a server runs under the allocator, and the command is the server's load.

use crate::support::{Site, allocator, baseline, program, row};

#[test]
fn the_server_runs_under_the_allocator_and_the_load_does_not() {
    let (site, sound) = (Site::new(), allocator(""));
    let serve = format!("exec {} serve", program());
    let settings = [
        "--prepare",
        "rm -f ready",
        "--serve",
        &serve,
        "--ready",
        "test -e ready",
        "--idle",
        "1s",
    ];
    let load = "test -z \"$LD_PRELOAD\" && sleep 0.2";
    let (outcome, result) = site.race(&[&sound], &settings, &["sh", "-c", load]);
    outcome.ends_with(0);
    assert_eq!(result["options"]["server"]["idle"], 1_000_000_000);
    for served in [baseline(&result), row(&result, &sound)] {
        let rest = &served["after_idle"];
        let idle = rest["idle"].as_u64();
        assert!(idle.is_some_and(|idle| idle >= 1_000_000_000), "{rest}");
        let anonymous = rest["parts"]["anonymous"].as_u64();
        assert!(anonymous.is_some_and(|bytes| bytes > 0), "{rest}");
    }
    let shown = site.in_full();
    shown.tells("after idle: anonymous memory after at least");
    shown.tells("in which the server was left alone after its load");
    let proof = &row(&result, &sound)["proof"];
    assert_eq!(proof["served_by"].as_str(), sound.to_str());
    assert!(
        proof["calls"].as_u64().is_some_and(|calls| calls > 40_000),
        "{proof}"
    );
    let wall = baseline(&result)["wall_s"]["median"]
        .as_f64()
        .expect("a figure");
    assert!(
        (0.2..10.0).contains(&wall),
        "the load's time, not the server's: {wall}"
    );
}

#[test]
fn a_server_that_ends_at_once_is_told() {
    let (site, sound) = (Site::new(), allocator(""));
    let settings = ["--serve", "echo no port >&2; exit 3", "--ready", "false"];
    let (outcome, _) = site.race(&[&sound], &settings, &["true"]);
    outcome.says(3, &["exit status 3", "no port"]);
}
