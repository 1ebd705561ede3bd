//! Tests that entrants that do different work do not race, unless the user allows it or names a
//! metric.

use crate::support::{Site, allocator, program};

/// Returns a shell line whose first run does all the work, as in a build.
fn build() -> String {
    format!("test -e done || {} work 20000; touch done", program())
}

#[test]
fn a_build_that_is_done_after_the_first_run_is_not_raced() {
    let (site, sound) = (Site::new(), allocator(""));
    let (outcome, result) = site.race(&[&sound], &[], &["sh", "-c", &build()]);
    let words = [
        "the first run did different work",
        "in 3 processes under system",
        "in 2 processes in later runs",
        "--prepare",
        "--allow-different-work",
    ];
    outcome.says(3, &words);
    assert_eq!(result["rounds"], 0, "nothing was timed");
}

#[test]
fn undoing_the_work_before_each_run_makes_it_the_same() {
    let (site, sound) = (Site::new(), allocator(""));
    let options = ["--prepare", "rm -f done"];
    let (outcome, result) = site.race(&[&sound], &options, &["sh", "-c", &build()]);
    outcome.ends_with(0);
    assert_eq!(result["remarks"].as_array().map(Vec::len), Some(0));
}

#[test]
fn an_allocator_under_which_the_command_does_more_is_named() {
    let (site, sound) = (Site::new(), allocator(""));
    let more = "case $LD_PRELOAD in *libsound*) set 40000;; *) set 20000;; esac";
    let line = format!("{more}; {} work $1", program());
    let (outcome, _) = site.race(&[&sound], &[], &["sh", "-c", &line]);
    outcome.says(3, &["different work", "libsound.so", "--metric"]);
}

#[test]
fn different_work_is_raced_where_that_is_asked_for_or_a_figure_is_reported() {
    let metric = ["--metric", "steps=worked ([0-9]+)"];
    for options in [&["--allow-different-work"][..], &metric] {
        let (site, sound) = (Site::new(), allocator(""));
        let (outcome, result) = site.race(&[&sound], options, &["sh", "-c", &build()]);
        outcome.ends_with(0);
        let remarks = result["remarks"].to_string();
        assert!(remarks.contains("different amounts of work"), "{remarks}");
        let kept = site.journal_text();
        assert!(kept.contains("\"line\":\"remark\""), "{kept}");
    }
}
