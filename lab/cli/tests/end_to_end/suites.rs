//! Tests of suites in the user's own files, of estimates, and of former names of built-in suites.

use serde_json::Value;

use crate::support::{Outcome, Site, allocator};

/// Suite with one load in two races; one of its allocators and one of its workloads do not exist.
/// `$SOUND` is the path of a library.
const SUITE: &str = r#"
name = "mine"
title = "Mine"
summary = "A test."
baseline = "system"

[[entrant]]
name = "libc"
allocator = "system"

[[entrant]]
name = "sound"
allocator = "$SOUND"

[[entrant]]
name = "lost"
allocator = "no-such-allocator"
absent = "lost in a fire"

[[cell]]
name = "tiny"
title = "a tiny load"
workload = "rptest"
words = ["blocks=200", "ops=20"]
counts = { loops = 1 }
sweep = { parameter = "threads", values = [1, 2] }
quick = { words = ["loops=2"], rounds = 5 }
published = { words = ["loops=20"], rounds = 5 }

[[cell]]
name = "nowhere"
title = "a load that there is not"
workload = "no-such-workload"
quick = { rounds = 5 }

[[table]]
title = "operations"
makes = { sweep = { cell = "tiny", figure = "operations_per_cpu_s", shown = "millions" } }

[[published]]
title = "operations"
source = "a document, on a machine"
after = "operations"
heads = ["allocator", "threads = 1"]
rows = [["libc", "75.320"]]

[[claim]]
claim = "Every allocator takes less than a gigabyte."
source = "page 1"
test = { figure = { figure = "peak_rss_bytes", of = ["libc", "sound"], in = { cells = ["tiny"] }, range = { high = 1.0e9 } } }

[[claim]]
claim = "Every allocator takes more than a gigabyte."
source = "page 2"
test = { figure = { figure = "peak_rss_bytes", of = ["libc", "sound"], in = { cells = ["tiny"] }, range = { low = 1.0e9 } } }

[[claim]]
claim = "The lost one is the fastest."
source = "page 3"
test = { ratio = { figure = "wall_s", of = ["lost"], to = ["libc"], in = { cells = ["tiny"] }, range = { high = 1.0 } } }
"#;

/// Creates a suite with two races of a few milliseconds and one that cannot run.
fn suite(site: &Site) -> String {
    let text = SUITE.replace("$SOUND", &allocator("").display().to_string());
    site.file("mine.toml", text);
    "./mine.toml".to_owned()
}

/// Runs the quick form of a suite.
pub fn quick(site: &Site, suite: &str, options: &[&str]) -> Outcome {
    let mut all = vec!["suite", suite, "--quick"];
    all.extend(options);
    site.run(&all)
}

fn run(site: &Site, options: &[&str]) -> Outcome {
    quick(site, &suite(site), options)
}

/// Returns the contents of a file of results.
pub fn collection(site: &Site, name: &str) -> Value {
    let text = std::fs::read(site.path(name)).expect("written");
    serde_json::from_slice(&text).expect("JSON")
}

#[test]
fn a_suite_of_ones_own_is_raced_and_its_claims_are_tested() {
    let site = Site::new();
    let outcome = run(&site, &["--json", "r.json", "--markdown", "r.md"]);
    // Everything is reported; the status shows that one race could not run.
    outcome.ends_with(2);
    let collection = collection(&site, "r.json");
    let races = collection["races"].as_array().expect("races");
    assert_eq!(races.len(), 2);
    assert_eq!(races[1]["cell"], "mine/tiny");
    assert_eq!(
        (&races[1]["swept"], &races[1]["factor"]),
        (&2.into(), &10.0.into())
    );
    let verdicts: Vec<&Value> = collection["claims"]
        .as_array()
        .expect("claims")
        .iter()
        .map(|claim| &claim["holds"])
        .collect();
    assert_eq!(verdicts, ["held", "not-held", "cannot-be-tested"]);
    assert_eq!(collection["absent"][0]["reason"], "lost in a fire");
    let remarks = collection["remarks"].to_string();
    assert!(remarks.contains("mine/nowhere was not run"), "{remarks}");
    assert_eq!(collection["tables"][0]["published"], Value::Null);
    assert_eq!(
        collection["tables"][1]["published"],
        "a document, on a machine"
    );
    outcome.tells("3 in all: 1 held, 1 not held, 1 cannot be tested here");
    let markdown = std::fs::read_to_string(site.path("r.md")).expect("written");
    assert!(
        markdown.contains("as published, not measured here"),
        "{markdown}"
    );
    let shown = site.run(&["show", "r.json"]);
    assert_eq!(shown.ends_with(0).stdout, outcome.stdout);
}

#[test]
fn what_was_done_is_not_done_again() {
    let site = Site::new();
    run(&site, &["--json", "r.json", "--only", "tiny=1"]).ends_with(0);
    let first = collection(&site, "r.json");
    assert_eq!(first["races"].as_array().map(Vec::len), Some(1));
    let outcome = run(&site, &["--resume", "r.json", "--only", "tiny"]);
    outcome.ends_with(0);
    assert!(
        outcome.stderr.contains("1 races, 1 done before"),
        "{}",
        outcome.stderr
    );
    let second = collection(&site, "r.json");
    assert_eq!(second["races"].as_array().map(Vec::len), Some(2));
    assert_eq!(second["races"][0], first["races"][0]);
}

/// A suite that continues recomputes its tables and verdicts even if no race is left, so a target
/// can be added after the races.
#[test]
fn misuse_that_a_target_is_about_is_committed_once_and_after_the_races() {
    let site = Site::new();
    suite(&site);
    let text = std::fs::read_to_string(site.path("mine.toml")).expect("the suite");
    let text = text.replace("values = [1, 2]", "values = [1]");
    site.file("mine.toml", &text);
    let words = ["suite", "./mine.toml", "--quick"];
    site.run(&[&words[..], &["--json", "r.json"]].concat())
        .ends_with(2);
    let races = collection(&site, "r.json")["races"].clone();
    let target = r#"
[[target]]
claim = "The C library catches more misuse than itself."
source = "my wish"
see = ["why.md"]
test = { misuse = { of = ["libc"], to = ["libc"] } }
"#;
    site.file("mine.toml", format!("{text}{target}"));
    let again = || {
        let outcome = site.run(&[&words[..], &["--resume", "r.json"]].concat());
        outcome.ends_with(2);
        (
            outcome.stderr.matches("misusing ").count(),
            collection(&site, "r.json"),
        )
    };
    let (tried, found) = again();
    assert_eq!((tried, &found["races"]), (1, &races));
    let claim = &found["claims"][0];
    assert_eq!(claim["holds"], "not-held", "{claim}");
    let because = claim["because"].to_string();
    assert!(because.contains("with a message; libc"), "{because}");
    assert!(because.contains("; see why.md"), "{because}");
    assert_eq!(again(), (0, found));
}

#[test]
fn what_was_done_elsewhere_or_with_others_is_not_gone_on_with() {
    let site = Site::new();
    run(&site, &["--json", "r.json", "--only", "tiny=1"]).ends_with(0);
    let again = ["--resume", "r.json", "--only", "tiny"];
    let mut other = collection(&site, "r.json");
    other["machine"]["processors"] = 4096.into();
    site.file("other.json", other.to_string());
    run(&site, &["--resume", "other.json", "--only", "tiny"]).complains(
        2,
        &["--resume other.json", "another machine", "4096 processors"],
    );
    let text = std::fs::read_to_string(site.path("mine.toml")).expect("the suite");
    let sound = allocator("").to_string_lossy().into_owned();
    let copy = site.path("second.so");
    std::fs::copy(&sound, &copy).expect("a copy");
    site.file("mine.toml", text.replace(&sound, &copy.to_string_lossy()));
    site.run(&[&["suite", "./mine.toml", "--quick"][..], &again].concat())
        .says(2, &["--resume r.json", "did not race in mine/tiny at 1"]);
}

#[test]
fn an_estimate_runs_little_and_measures_nothing() {
    let site = Site::new();
    let name = suite(&site);
    let outcome = site.run(&["suite", &name, "--published", "--estimate"]);
    outcome.ends_with(0);
    outcome.tells("mine/tiny at 2");
    outcome.tells("all together");
    assert!(!outcome.stdout.contains("Claims"));
}

#[test]
fn an_estimate_builds_no_allocator() {
    let site = Site::new();
    let name = suite(&site);
    let words = [
        "suite",
        &name,
        "--quick",
        "--estimate",
        "-a",
        "system,mimalloc2",
    ];
    let outcome = site.run(&words);
    outcome.says(0, &["not built", "mimalloc2"]);
    outcome.tells("mine/tiny at 2");
    let built = site.path(".cache/heapdrome/allocators");
    let built = std::fs::read_dir(built).map_or(0, |entries| entries.count());
    assert_eq!(built, 0);
}

#[test]
fn allocators_can_be_named_instead_of_the_suites_own() {
    let site = Site::new();
    let outcome = run(&site, &["-a", "system", "--only", "tiny=1"]);
    outcome.complains(2, &["nothing to run"]);
}

#[test]
fn mistakes_are_told_in_one_line() {
    let site = Site::new();
    site.run(&["suite", "rpmaloc"])
        .complains(2, &["did you mean rpmalloc?"]);
    site.run(&["suite", "./none.toml"])
        .complains(2, &["cannot read ./none.toml"]);
    site.file("bad.toml", "name = \"x\"\ntitle = 3\n");
    site.run(&["suite", "./bad.toml"])
        .complains(2, &["not a suite", "line 2"]);
    run(&site, &["--only", "huge"]).complains(2, &["--only huge", "mine/tiny"]);
    site.file("r.json", "{}");
    run(&site, &["--resume", "r.json"]).complains(2, &["not a heapdrome result"]);
}

#[test]
fn the_former_name_of_a_suite_is_taken_for_the_present_one_and_said() {
    let site = Site::new();
    let outcome = site.run(&["suite", "stable", "--only", "nothing"]);
    outcome.says(2, &["stable is now called own-allocators"]);
    outcome.says(2, &["no such cell", "own-allocators/burst"]);
    let outcome = site.run(&["suite", "own-allocators", "--only", "nothing"]);
    outcome.complains(2, &["no such cell", "own-allocators/burst"]);
}
