//! Tests of the search for the smallest memory limit. Where no limit can be set, the tests that
//! search check the error instead.

use serde_json::Value;

use crate::saved::{self, EXPERIMENT};
use crate::support::{Outcome, Site, program};

/// Returns the output of a search for `command`, with the JSON; `None` if no limit can be set here,
/// which one line must report.
fn search(site: &Site, command: &[&str]) -> Option<(Outcome, Value)> {
    let mut arguments = vec![
        "survive",
        "-a",
        "system",
        "--runs",
        "1",
        "--precision",
        "50%",
        "--json",
        "r.json",
        "--",
    ];
    arguments.extend(command);
    let outcome = site.run(&arguments);
    if outcome.stderr.contains("no memory limit can be made") {
        outcome.complains(4, &["no memory limit can be made", "sudo"]);
        return None;
    }
    let text = std::fs::read_to_string(site.path("r.json")).unwrap_or_default();
    Some((outcome, serde_json::from_str(&text).unwrap_or(Value::Null)))
}

#[test]
fn mistakes_are_told_in_one_line() {
    let site = Site::new();
    site.run(&["survive", "--", "no-such-command"])
        .complains(2, &["cannot find the command no-such-command"]);
    site.run(&["survive", "--patience", "0", "--", "true"])
        .complains(2, &["expected a factor"]);
    site.run(&["survive"]).complains(2, &["COMMAND"]);
    assert_eq!(site.visible_files(), [""; 0], "nothing is written");
}

#[test]
fn a_command_that_traces_has_no_limit() {
    let site = Site::new();
    let Some((outcome, result)) = search(&site, &[&program(), "trace-child"]) else {
        return;
    };
    outcome.says(outcome.status, &["traces programs itself"]);
    let survival = &result["survival"][0];
    assert_eq!(survival["smallest_bytes"], Value::Null);
}

/// Writing CSV needs no memory limit, so this test runs on every machine.
#[test]
fn the_limits_of_a_saved_search_are_written_as_csv() {
    let site = Site::new();
    let mut result = saved::value(EXPERIMENT);
    site.file("experiment.json", result.to_string());
    site.run(&["show", "experiment.json", "--csv", "-"])
        .complains(2, &["lgalloc has no samples"]);
    let trial = |bytes: u64, failure: Value| {
        serde_json::json!({
            "limit_bytes": bytes, "wall_s": [2.0, 4.0, 3.0], "failure": failure, "limit_hits": 5,
            "oom_kills": 0,
        })
    };
    result["survival"] = serde_json::json!([{
        "allocator": "mine", "swap": true, "peak_bytes": 1, "unlimited_s": [1.0, 1.0, 1.0],
        "smallest_bytes": 131_072, "at": [], "failure": null,
        "trials": [trial(131_072, Value::Null), trial(65_536, "killed".into())],
    }]);
    site.file("search.json", result.to_string());
    let shown = site.run(&["show", "search.json", "--csv", "-"]);
    let lines: Vec<&str> = shown.ends_with(0).stdout.lines().collect();
    let expected = [
        "allocator,swap,limit_bytes,runs,status,slower,slower_low,slower_high,limit_hits",
        "mine,with swap,,3,finished,1,1,1,0",
        "mine,with swap,65536,4,killed,,,,5",
        "mine,with swap,131072,3,finished,3,2,4,5",
    ];
    assert_eq!(lines, expected);
    let drawn = site.run(&["plot", "search.json", "-o", "plots", "--format", "svg"]);
    assert!(drawn.ends_with(0).stdout.contains("survive-limits"));
}

#[test]
fn a_command_survives_under_less_than_it_takes_when_nothing_is_short() {
    let site = Site::new();
    let Some((outcome, result)) = search(&site, &[&program()]) else {
        return;
    };
    outcome.ends_with(0);
    let row = &result["survival"][0];
    assert_eq!(
        (&row["allocator"], &row["swap"]),
        (&"system".into(), &false.into())
    );
    let smallest = row["smallest_bytes"].as_u64().expect("there is one");
    assert!(
        smallest > 0 && smallest.is_multiple_of(64 << 10),
        "{smallest}"
    );
    assert_eq!(row["at"].as_array().map(Vec::len), Some(3));
    let alone = &outcome.stdout;
    assert!(!alone.contains("needs the least"), "of whom? {alone}");
    let shown = site.run(&["show", "r.json"]);
    assert_eq!(shown.ends_with(0).stdout, outcome.stdout);
    outcome.tells("* tried once");
    for told in ["Least memory for", "fewer than 3 runs"] {
        assert!(alone.contains(told), "{alone}");
    }
    let table = site.run(&["show", "r.json", "--csv", "-"]);
    let lines = table.ends_with(0).stdout.lines().count();
    let tried = row["trials"].as_array().map_or(0, Vec::len);
    assert!(lines > tried, "{}", table.stdout);
}

#[test]
fn a_command_that_fails_without_a_limit_is_told_of() {
    let site = Site::new();
    let Some((outcome, _)) = search(&site, &["sh", "-c", "exit 3"]) else {
        return;
    };
    outcome.says(3, &["system", "fails without a limit"]);
}
