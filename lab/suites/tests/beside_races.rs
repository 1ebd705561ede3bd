//! Tests the parts of a suite's report other than the figures of races: instruction counts, misuse,
//! listed tables, references to reasons, absent entrants, and remarks.

mod made_up;

use heapdrome_libraries::GOLDENS;
use heapdrome_schema::{Collection, Ending, Holds, MisuseOutcome, MisuseRun, Table};
use heapdrome_suites::{Suite, Test, evaluate, list};
use made_up::{Row, collection, member, suite};
use sha2::{Digest as _, Sha256};

/// Returns one race of the entrants `libc` and `quick`, and those of `more`.
fn races(more: Vec<Row>) -> Collection {
    let mut rows = vec![
        Row::new("system", vec![1.0; 5]),
        Row::new("a", vec![1.0; 5]),
    ];
    rows.extend(more);
    collection(vec![member("t/one", None, &rows)])
}

const OWN: &str = "[[entrant]]\nname = \"elfmalloc\"\nallocator = \"elfmalloc\"\nadded = true\n";

/// Returns the verdict on one target for these races, with the reason.
fn verdict(test: &str, races: &Collection) -> (Holds, String) {
    let text = format!(
        "{OWN}[[target]]\nclaim = \"It is so.\"\nsource = \"1\"\nsee = [\"x.md#y\", \"z.md\"]\ntest = {test}"
    );
    let evaluation = evaluate(&[suite(&text)], races);
    let [one] = evaluation.claims.as_slice() else {
        panic!("one target: {:?}", evaluation.claims)
    };
    (one.holds, one.because.clone())
}

fn tables(makes: &str, races: &Collection) -> Vec<Table> {
    let plan = format!("[[table]]\ntitle = \"x\"\nmakes = {makes}");
    evaluate(&[suite(&plan)], races).tables
}

const REASON: &str = "; see x.md#y, z.md";

#[test]
fn the_reason_is_told_where_a_target_is_missed_or_open_and_not_where_it_is_reached() {
    let races = races(Vec::new());
    let figure = |high: f64| {
        format!(
            r#"{{ figure = {{ figure = "wall_s", of = ["quick"], in = {{ cells = ["one"] }}, range = {{ high = {high:?} }} }} }}"#
        )
    };
    for (high, expected) in [
        (2.0, Holds::Held),
        (1.0, Holds::Undecided),
        (0.5, Holds::NotHeld),
    ] {
        let (holds, because) = verdict(&figure(high), &races);
        assert_eq!(holds, expected, "{because}");
        let told = because.ends_with(REASON);
        assert_eq!(told, expected != Holds::Held, "{because}");
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn goldens_are_counted_in_the_carried_library_and_it_is_told_whether_that_raced() {
    let test = r#"{ fast-path = { of = ["elfmalloc"] } }"#;
    let golden = GOLDENS.iter().find(|one| one.allocator == "elfmalloc");
    let golden = golden.expect("a golden");
    let count = golden.instructions().expect("a count");
    let digest = Sha256::digest(golden.bytes().expect("a library"));
    let own = Row::new("elfmalloc", vec![1.0; 5]);
    let (holds, because) = verdict(test, &races(vec![own.sha256(&format!("{digest:x}"))]));
    assert_eq!(holds, Holds::Held, "{because}");
    let told = format!(
        "{} of elfmalloc takes {count} of at most {}, ",
        golden.function, golden.at_most
    );
    assert!(because.starts_with(&told), "{because}");
    assert!(because.ends_with("in the library that raced"), "{because}");
    let other = Row::new("elfmalloc", vec![1.0; 5]).sha256("another");
    for races in [races(vec![other]), races(Vec::new())] {
        let (_, because) = verdict(test, &races);
        assert!(because.contains("not the one that raced"), "{because}");
    }
    let found = tables("\"fast-path\"", &races(Vec::new()));
    assert_eq!(found[0].rows.len(), GOLDENS.len());
    assert_eq!(found[0].rows[0][2], count.to_string());
}

/// Returns one run of an allocator for each outcome.
fn runs(allocator: &str, outcomes: [MisuseOutcome; 2]) -> Vec<MisuseRun> {
    let run = |(place, outcome): (usize, MisuseOutcome)| MisuseRun {
        allocator: allocator.to_owned(),
        kind: format!("kind-{place}"),
        outcome,
        stage: None,
        ending: Ending::Exited(0),
        said: None,
        harm: None,
    };
    outcomes.into_iter().enumerate().map(run).collect()
}

fn add(all: &mut Collection, runs: Vec<MisuseRun>) {
    all.misuse_mut().expect("a suite").extend(runs);
}

#[test]
fn whoever_catches_more_kinds_of_misuse_is_ahead_once_all_were_tried() {
    use MisuseOutcome::{Detected, Killed, Unharmed};
    let test = r#"{ misuse = { of = ["quick"], to = ["libc", "slow"] } }"#;
    let mut all = races(Vec::new());
    let (holds, because) = verdict(test, &all);
    assert_eq!(holds, Holds::Undecided);
    assert!(
        because.starts_with("quick was not tried; libc"),
        "{because}"
    );
    assert!(tables("\"misuse\"", &all).is_empty());
    add(&mut all, runs("a", [Detected, Killed]));
    add(&mut all, runs("b", [Killed, Unharmed]));
    assert_eq!(verdict(test, &all).0, Holds::Undecided, "libc is open");
    add(&mut all, runs("system", [Unharmed, Unharmed]));
    let (holds, because) = verdict(test, &all);
    assert_eq!(holds, Holds::Held);
    assert_eq!(
        because,
        "quick 2 of 2 kinds, 1 with a message; libc 0 of 2 kinds, 0 with a message; \
         slow 1 of 2 kinds, 0 with a message"
    );
    let with_lost = test.replace("\"slow\"", "\"slow\", \"lost\"");
    let (holds, because) = verdict(&with_lost, &all);
    assert_eq!(holds, Holds::CannotBeTested);
    assert!(because.contains("not available here: lost"), "{because}");
    let found = tables("\"misuse\"", &all);
    assert_eq!(found[0].rows[0].join(" "), "a 1 1 0 0 0 0 2");
    let known = all.misuse_mut().expect("a suite");
    known.retain(|run| run.allocator != "b");
    add(&mut all, runs("b", [Killed, Killed]));
    for test in [test, &with_lost] {
        let (holds, because) = verdict(test, &all);
        assert_eq!(holds, Holds::NotHeld, "as many are not more");
        assert!(because.ends_with(REASON), "{because}");
    }
}

#[test]
fn a_list_is_told_as_it_stands_where_the_suite_ran_and_its_rows_must_fit() {
    let makes = r#"{ listed = { heads = ["what", "command"], rows = [["this", "so"]] } }"#;
    let found = tables(makes, &races(Vec::new()));
    assert_eq!(found[0].rows, [["this", "so"]]);
    assert!(tables(makes, &collection(Vec::new())).is_empty());
    let whole = include_str!("../suites/own-allocators.toml");
    let wrong = whole.replacen("[\"conformance suite\", ", "[", 1);
    assert_ne!(wrong, whole);
    let told = Suite::read(&wrong)
        .expect_err("a row too short")
        .to_string();
    assert!(told.contains("3 heads, and a row of 2 cells"), "{told}");
}

#[test]
fn whoever_could_have_raced_and_did_not_is_named() {
    let absent = |races: &Collection| -> Vec<(String, String)> {
        let found = evaluate(
            &[suite(
                "[[entrant]]\nname = \"shy\"\nallocator = \"d\"\nnot_in_quick = true",
            )],
            races,
        );
        let pair = |one: heapdrome_schema::Absent| (one.name, one.reason);
        found.absent.into_iter().map(pair).collect()
    };
    let found = absent(&races(vec![Row::new("c", vec![1.0; 5])]));
    let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["lost", "slow", "shy"]);
    assert!(
        found[1].1.contains("not selected for this run"),
        "{found:?}"
    );
    assert!(found[2].1.contains("quick form"), "{found:?}");
    let names: Vec<String> = absent(&collection(Vec::new()))
        .into_iter()
        .map(|it| it.0)
        .collect();
    assert_eq!(
        names,
        ["lost"],
        "nothing was run, so no entrant was left out"
    );
}

#[test]
fn a_new_evaluation_takes_the_place_of_the_old_one() {
    let suites = [suite(
        "[[entrant]]\nname = \"noted\"\nallocator = \"d\"\nnote = \"as it is\"",
    )];
    let mut all = races(Vec::new());
    let kept = "t/two was not run: no such program";
    all.remarks = ["t: an earlier remark", kept].map(str::to_owned).to_vec();
    for _ in 0..2 {
        evaluate(&suites, &all).fill(&suites, &mut all);
        assert_eq!(all.remarks, [kept, "t: noted (d): as it is"]);
    }
}

#[test]
fn every_target_of_the_own_allocators_has_a_reason_to_tell_and_names_its_goldens() {
    let suite = list().iter().find(|one| one.name == "own-allocators");
    let suite = suite.expect("the suite");
    let mut named = 0;
    for target in &suite.targets {
        assert!(!target.see.is_empty(), "{}", target.claim);
        let Test::FastPath { of } = &target.test else {
            continue;
        };
        let own = |allocator: &str| of.iter().any(|name| name == allocator);
        for golden in GOLDENS.iter().filter(|one| own(one.allocator)) {
            let limit = golden.at_most.to_string();
            assert!(target.claim.contains(&limit), "{}", target.claim);
            named += 1;
        }
    }
    assert_eq!(named, 2, "malloc and free");
}
