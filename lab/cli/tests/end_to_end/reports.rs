//! Tests of `heapdrome report` and `heapdrome plot`: the requested files, or one line with an
//! error.

use crate::saved::{self, RACE, SUITE, SWEEP};
use crate::support::Site;

fn sample() -> String {
    saved::text(RACE)
}

#[test]
fn a_page_is_written_and_not_written_over() {
    let site = Site::new();
    site.file("my result.json", sample());
    let ask = ["report", "my result.json", "-o", "my report.html"];
    assert_eq!(site.run(&ask).status, 0);
    let page = std::fs::read_to_string(site.path("my report.html")).expect("a page");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("json.loads"));
    site.run(&ask)
        .complains(2, &["my report.html exists", "--force"]);
    let forced = site.run(&[&ask[..], &["--force"]].concat());
    assert_eq!(forced.status, 0, "{}", forced.stderr);
    assert_eq!(site.visible_files(), ["my report.html", "my result.json"]);
}

#[test]
fn an_experiment_without_races_has_a_page_and_plots_of_its_times() {
    let site = Site::new();
    let mut experiment = saved::value(SUITE);
    experiment["races"] = serde_json::json!([]);
    site.file("empty.json", experiment.to_string());
    let outcome = site.run(&["plot", "empty.json", "-o", "plots"]);
    outcome.complains(2, &["holds no complete round"]);
    experiment["ccdfs"] = serde_json::json!([{
        "kind": "read", "cell": "512 MiB x 1", "count": 10,
        "points": [{"time": 90, "above": 0.5}, {"time": 20000, "above": 0.0}],
    }]);
    site.file("paging.json", experiment.to_string());
    site.run(&["report", "paging.json", "-o", "paging.html"])
        .ends_with(0);
    let page = std::fs::read_to_string(site.path("paging.html")).expect("a page");
    assert!(page.contains("How often a time was exceeded"));
    site.run(&["plot", "paging.json", "-o", "plots", "--format", "svg"])
        .ends_with(0);
    assert!(site.path("plots/ccdf-read.svg").exists());
}

#[test]
fn a_page_never_replaces_its_own_result() {
    let site = Site::new();
    site.file("r.json", sample());
    let outcome = site.run(&["report", "r.json", "-o", "./r.json", "--force"]);
    outcome.complains(2, &["is an input"]);
    for option in ["--json", "--csv", "--markdown"] {
        site.run(&["show", "r.json", option, "./r.json"])
            .complains(2, &["is an input"]);
    }
    assert_eq!(
        std::fs::read_to_string(site.path("r.json")).expect("it is there"),
        sample()
    );
}

#[test]
fn files_that_are_no_results_are_told_in_one_line() {
    let newer = r#"{"heapdrome": "9.0.0", "schema": 99}"#;
    let foreign = "r.json is not a heapdrome result";
    let cases = [
        (newer, "r.json has schema 99; this heapdrome reads 1 to 1"),
        (r#"{"name": "foreign"}"#, foreign),
        ("[]", foreign),
        ("not json", foreign),
        ("{\"schema\":", "r.json ends in the middle"),
        ("", "r.json is empty"),
    ];
    for (content, words) in cases {
        let site = Site::new();
        site.file("r.json", content);
        let asks: [&[&str]; 4] = [
            &["report", "r.json", "-o", "x"],
            &["plot", "r.json", "-o", "x"],
            &["show", "r.json"],
            &["compare", "r.json", "r.json"],
        ];
        for ask in asks {
            site.run(ask).complains(2, &[words]);
        }
        assert_eq!(site.visible_files(), ["r.json"], "nothing is written");
    }
}

#[test]
fn a_result_without_rounds_is_shown_and_its_page_says_so_too() {
    let site = Site::new();
    let mut result = saved::value(RACE);
    result["rounds"] = 0.into();
    site.file("r.json", result.to_string());
    let told = "No round is complete.";
    let shown = site.run(&["show", "r.json"]);
    shown.ends_with(0).tells(told);
    site.run(&["report", "r.json", "-o", "x.html"])
        .complains(0, &["wrote x.html"]);
    let page = std::fs::read_to_string(site.path("x.html")).expect("a page");
    assert!(page.contains(told));
    for line in ["plot r.json -o plots", "compare r.json r.json"] {
        let words: Vec<_> = line.split(' ').collect();
        site.run(&words)
            .complains(2, &["r.json holds no complete round; race again"]);
    }
    assert_eq!(site.visible_files(), ["r.json", "x.html"]);
}

#[test]
fn a_missing_result_and_a_folder_as_page() {
    let site = Site::new();
    site.run(&["report", "none.json", "-o", "x.html"])
        .complains(2, &["cannot read none.json"]);
    site.file("r.json", sample());
    site.run(&["report", "r.json", "-o", "."])
        .complains(2, &["is a folder"]);
    site.run(&["plot", "r.json", "-o", "r.json"])
        .complains(2, &["is a file"]);
}

#[test]
fn plots_are_drawn_in_the_forms_that_were_asked_for() {
    let site = Site::new();
    site.file("r.json", sample());
    let ask = ["plot", "r.json", "-o", "my plots", "--only", "ranking-wall"];
    let outcome = site.run(&ask);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    assert_eq!(
        outcome.stdout,
        "my plots/ranking-wall.svg\nmy plots/ranking-wall.png\n"
    );
    let png = std::fs::read(site.path("my plots/ranking-wall.png")).expect("an image");
    assert!(png.starts_with(b"\x89PNG\r\n"));
    site.run(&ask)
        .complains(2, &["ranking-wall.svg exists", "--force"]);
    let ask = ["plot", "r.json", "-o", "once", "--only", "Ranking: Wall"];
    let once = site.run(&[&ask[..], &["--format", "svg,svg"]].concat());
    assert_eq!(once.ends_with(0).stdout, "once/ranking-wall.svg\n");
    let unknown = ["plot", "r.json", "-o", "other", "--only", "nonsense"];
    site.run(&unknown)
        .complains(2, &["no such plot: nonsense", "time-memory"]);
    let beside_known = [
        "plot",
        "r.json",
        "-o",
        "other",
        "--only",
        "ranking,nonsense",
    ];
    site.run(&beside_known)
        .complains(2, &["no such plot: nonsense", "time-memory"]);
    for empty in ["", "ranking,"] {
        site.run(&["plot", "r.json", "-o", "other", "--only", empty])
            .complains(2, &["--only"]);
    }
    assert!(!site.path("other").exists());
}

#[test]
fn a_collection_of_nothing_is_refused_by_all_who_read_one() {
    let site = Site::new();
    let mut sweep = saved::value(SWEEP);
    sweep["races"] = serde_json::json!([]);
    site.file("empty.json", sweep.to_string());
    let told = "empty.json holds no complete round";
    for line in [
        "show empty.json",
        "report empty.json -o page.html",
        "plot empty.json -o plots",
        "compare empty.json empty.json",
    ] {
        let words: Vec<_> = line.split(' ').collect();
        site.run(&words).complains(2, &[told]);
    }
    assert_eq!(site.visible_files(), ["empty.json"]);
}
