//! Tests of the brief output of a race, of the commands that print the rest, and of the short help.

use crate::support::{Site, allocator, program};

const ROUNDS: [&str; 4] = ["--rounds", "8", "--memory-runs", "0"];

/// Races a slow baseline beside a sound allocator, with the command line `command`.
fn race(site: &Site, options: &[&str], command: &[&str]) -> crate::support::Outcome {
    let (sound, slow) = (allocator(""), allocator("slow"));
    let [sound, slow] = [&sound, &slow].map(|path| path.to_str().expect("plain"));
    let own = ["race", "-a", sound, "--baseline", slow];
    site.run(&[&own[..], &ROUNDS, options, command].concat())
}

/// Returns the words of a text, independent of its line breaks.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_latest_race_is_kept_without_a_file() {
    let site = Site::new();
    site.run(&["show", "latest"]).complains(2, &["no race"]);
    site.run(&["show", "nothing"]).complains(
        2,
        &["no such file or stored race", "nothing", "show latest"],
    );
    let raced = race(&site, &[], &[&program()]);
    assert!(
        raced.ends_with(0).stdout.lines().count() <= 30,
        "{}",
        raced.stdout
    );
    raced.tells("heapdrome show latest --full");
    let shown = site.run(&["show", "latest"]);
    assert_eq!(shown.ends_with(0).stdout, raced.stdout);
    let full = site.run(&["show", "latest", "--full"]);
    for told in ["Proof", "Machine:", "Run it again", "Comparisons in full"] {
        full.ends_with(0).tells(told);
        assert!(!raced.stdout.contains(&format!("\n{told}\n")), "{told}");
    }
    let deployed = site.run(&["show", "latest", "--deploy"]);
    for told in ["LD_PRELOAD=", "[Service]", "ENV LD_PRELOAD"] {
        deployed.ends_with(0).tells(told);
    }
    assert_eq!(site.visible_files(), [""; 0], "nothing lies about");
    let races = std::fs::read_dir(site.path(".local/state/heapdrome/races"));
    let name = races
        .expect("a race is kept")
        .flatten()
        .next()
        .expect("one");
    let by_name = site.run(&["show", &name.file_name().to_string_lossy(), "--full"]);
    assert_eq!(by_name.ends_with(0).stdout, full.stdout);
    // A file takes precedence over a race of the same name.
    site.file("latest", "no result");
    site.run(&["show", "latest"]).complains(2, &["latest"]);
}

#[test]
fn a_result_in_a_file_is_named_by_it() {
    let site = Site::new();
    let raced = race(&site, &["--json", "r.json"], &[&program()]);
    raced.ends_with(0).tells("heapdrome show r.json --full");
    raced.tells("heapdrome show r.json --deploy");
}

#[test]
fn a_command_needs_no_dashes_and_may_be_one_word() {
    let program = program();
    let line = format!("{program} work '10'");
    let mut recorded = Vec::new();
    for command in [
        &["--", &program, "work", "10"][..],
        &[&program, "work", "10"],
        &[&line],
    ] {
        let site = Site::new();
        race(&site, &["--json", "r.json"], command).ends_with(0);
        let text = std::fs::read_to_string(site.path("r.json")).expect("written");
        let result: serde_json::Value = serde_json::from_str(&text).expect("a result");
        assert_eq!(
            result["command"],
            serde_json::json!([program, "work", "10"])
        );
        recorded.push(result["asked"].clone());
    }
    assert_eq!(recorded[0], recorded[1]);
    assert_eq!(recorded[0], recorded[2]);
}

#[test]
fn a_failure_prints_its_line_and_nothing_else() {
    let site = Site::new();
    let failing = race(&site, &[], &["sh", "-c", "exit 3"]);
    failing.complains(3, &["exit status 3"]);
    assert_eq!(failing.stdout, "");
    // The baseline fails in a later round, after complete rounds. The rival never fails: otherwise
    // the order of the round would determine which of them fails first.
    let line = "echo x >> runs; case $LD_PRELOAD in *slow*) test $(wc -l < runs) -lt 12;; esac";
    let later = race(&site, &[], &["sh", "-c", line]);
    assert_eq!(later.ends_with(3).stdout, "");
}

#[test]
fn nothing_is_deployed_where_nothing_is_recommended() {
    let (site, sound) = (Site::new(), allocator(""));
    let (outcome, _) = site.race(&[&sound], &["--memory-runs", "0"], &[&program()]);
    outcome.ends_with(0);
    let told = site.run(&["show", "result.json", "--deploy"]);
    let told = words(&told.ends_with(0).stdout);
    assert!(
        told.starts_with("Nothing to deploy. No answer yet: keep system."),
        "{told}"
    );
}

#[test]
fn the_short_help_is_short_and_the_long_one_is_whole() {
    let site = Site::new();
    let [short, long] = ["-h", "--help"].map(|help| site.run(&["race", help]));
    let [short, long] = [&short, &long].map(|help| &help.ends_with(0).stdout);
    assert!((24..=40).contains(&short.lines().count()), "{short}");
    assert!(!short.contains("--min-rounds") && long.contains("--min-rounds"));
    for heading in ["What races:", "When to stop:", "Where the result goes:"] {
        assert!(
            short.contains(heading) && long.contains(heading),
            "{heading}"
        );
    }
}
