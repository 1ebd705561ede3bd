//! Tests of the runs that follow every block, and of the display of their findings. Also tests the
//! entrant `system-huge`.

use std::path::Path;

use crate::support::{Site, allocator, baseline, program, row};

/// Options for enough rounds that heapdrome adds a run that follows every block. It does so only if
/// three typical runs fit into two seconds or half of the rounds' time. The median of five rounds
/// stays typical even if another program uses the processor during one or two of them.
const ENOUGH_ROUNDS: [&str; 2] = ["--rounds", "5"];

/// Returns a shell line that runs `then` under the witness, except in the first two such runs,
/// which are the proofs of the baseline and of one rival.
fn after_the_proofs(then: &str) -> String {
    format!(
        "case $LD_PRELOAD in *heapdrome-witness*) echo >> watched; \
         test $(wc -l < watched) -lt 3 || {then};; esac; {} work 20000",
        program()
    )
}

#[test]
fn the_baseline_and_the_leader_are_followed_and_shown() {
    let (site, sound) = (Site::new(), allocator(""));
    let (outcome, result) = site.race(&[&sound], &ENOUGH_ROUNDS, &[&program(), "work", "20000"]);
    outcome.ends_with(0);
    for followed in [baseline(&result), row(&result, &sound)] {
        let evidence = &followed["evidence"];
        let number = |name: &str| evidence[name].as_u64().unwrap_or_default();
        assert!(
            number("peak_live_bytes") > 0 && number("frees") >= 20_000,
            "{evidence}"
        );
        let calls = &evidence["system_calls"];
        assert!(
            calls["mmap"].as_u64().is_some_and(|calls| calls > 0),
            "{evidence}"
        );
        let time = evidence["call_time"]["spent_s"].as_f64();
        assert!(
            time.is_some_and(|time| time > 0.0 && time < 10.0),
            "{evidence}"
        );
    }
    let twin = &result["entrants"][1];
    assert_eq!(
        (&twin["role"], twin["evidence"].is_null()),
        (&"twin".into(), true)
    );
    let fault = result["machine"]["fault_s"].as_f64();
    assert!(fault.is_some_and(|fault| fault > 0.0), "{fault:?}");
    let name = sound.to_str().expect("plain");
    let shown = site.run(&["show", "result.json", "--entrant", name]);
    shown.ends_with(0);
    for words in [
        "wall time",
        "in the kernel",
        "peak of live bytes",
        "madvise",
        "block size below",
    ] {
        shown.tells(words);
    }
    let wide = shown.stdout.lines().find(|line| line.chars().count() > 80);
    assert_eq!(wide, None, "{}", shown.stdout);
    let unknown = site.run(&["show", "result.json", "--entrant", "unknown"]);
    unknown.complains(2, &["no such entrant: unknown", "system"]);
}

#[test]
fn a_run_that_cannot_be_followed_is_no_failure() {
    let (site, sound) = (Site::new(), allocator(""));
    let line = after_the_proofs("exit 7");
    let (outcome, result) = site.race(&[&sound], &ENOUGH_ROUNDS, &["sh", "-c", &line]);
    outcome.ends_with(0);
    assert!(baseline(&result)["evidence"].is_null());
    assert!(row(&result, &sound)["evidence"].is_null());
    let watched = std::fs::read_to_string(site.path("watched")).expect("it was watched");
    let lines = watched.lines().count();
    assert_eq!(lines, 4, "two proofs, and two runs that end early");
    let shown = site.run(&["show", "result.json", "--entrant", "system"]);
    shown.ends_with(0).tells("No run followed its blocks");
}

#[test]
fn an_interrupted_run_is_made_again_when_the_race_goes_on() {
    let (site, sound) = (Site::new(), allocator(""));
    let line = after_the_proofs("test -e go-on || { touch waits; exec sleep 100; }");
    let sound = sound.to_str().expect("plain");
    let ask = [
        "race", "-a", sound, "--rounds", "2", "--", "sh", "-c", &line,
    ];
    let mut running = site.start(site.command(&ask));
    while !site.path("waits").exists() {
        assert!(running.is_running(), "{}", running.stderr());
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    running.signal(libc::SIGINT);
    let outcome = running.wait();
    outcome.says(130, &["--resume"]);
    site.file("go-on", "");
    let resumed = site.run(&["race", "--resume", "--json", "result.json"]);
    resumed.ends_with(0);
    let text = std::fs::read_to_string(site.path("result.json")).expect("a result");
    let result: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(result["rounds"], 2);
    assert!(row(&result, Path::new(sound))["evidence"].is_object());
}

#[test]
fn huge_pages_of_the_c_library_are_a_setting_beside_others() {
    let mode = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    let applicable = mode.is_ok_and(|mode| mode.contains("[madvise]"));
    let (site, huge) = (Site::new(), Path::new("system-huge"));
    let options = [
        "--env",
        "GLIBC_TUNABLES=glibc.malloc.perturb=0",
        "--rounds",
        "1",
    ];
    let (outcome, result) = site.race(&[huge], &options, &[&program(), "work", "2000"]);
    if !applicable {
        outcome.complains(2, &["system-huge is not applicable here"]);
        return;
    }
    outcome.ends_with(0);
    let rows = result["entrants"].as_array().expect("rows");
    let settings = &rows[2]["settings"]["GLIBC_TUNABLES"];
    assert_eq!(settings, "glibc.malloc.hugetlb=1");
    assert!(rows[2]["library"].is_null(), "it needs no library");
    let site_run = [
        "exec",
        "-a",
        "system-huge",
        "--",
        "sh",
        "-c",
        "echo $GLIBC_TUNABLES",
    ];
    let mut command = site.command(&site_run);
    command.env("GLIBC_TUNABLES", "glibc.malloc.perturb=0");
    let told = site.finish(command);
    assert_eq!(
        told.stdout,
        "glibc.malloc.perturb=0:glibc.malloc.hugetlb=1\n"
    );
}
