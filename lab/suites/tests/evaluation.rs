//! Tests the verdicts and the table of degradations on invented races, and the former names of
//! suites.

mod made_up;

use heapdrome_schema::{Collection, Holds};
use heapdrome_statistics::ratio_of_means;
use heapdrome_suites::{Suite, evaluate, present_name, rename};
use made_up::{Row, collection, member, suite};

fn claim(test: &str) -> Suite {
    suite(&format!(
        "[[claim]]\nclaim = \"It is so.\"\nsource = \"1\"\ntest = {test}"
    ))
}

/// Returns the verdict on one claim for these races, with the reason.
fn verdict(test: &str, races: &Collection) -> (Holds, String) {
    let evaluation = evaluate(&[claim(test)], races);
    let [one] = evaluation.claims.as_slice() else {
        panic!("one claim: {:?}", evaluation.claims)
    };
    assert_eq!(one.source, "t: 1");
    (one.holds, one.because.clone())
}

/// Returns ten samples within the relative `noise` of `value`.
fn around(value: f64, noise: f64) -> Vec<f64> {
    let sway = [0.3, -0.8, 0.5, -0.1, 0.9, -0.6, 0.2, -0.9, 0.7, -0.2];
    sway.iter().map(|it| value * (1.0 + noise * it)).collect()
}

/// Returns the samples of [`around`] in reverse order, so that the noise of the two series does not
/// cancel out in their ratio.
fn against(value: f64, noise: f64) -> Vec<f64> {
    around(value, noise).into_iter().rev().collect()
}

const FASTER: &str = r#"{ ratio = { figure = "wall_s", of = ["quick"], to = ["libc", "slow"], in = { cells = ["one"] }, range = { high = 1.0 } } }"#;

fn three(quick: Vec<f64>, slow: Vec<f64>) -> Collection {
    let rows = [
        Row::new("system", around(1.0, 0.01)),
        Row::new("a", quick),
        Row::new("b", slow),
    ];
    collection(vec![member("t/one", None, &rows)])
}

#[test]
fn a_ratio_is_held_not_held_or_undecided() {
    let (holds, because) = verdict(FASTER, &three(against(0.5, 0.01), against(2.0, 0.01)));
    assert_eq!(holds, Holds::Held, "{because}");
    assert!(
        because.contains("quick over libc in one 0.500"),
        "{because}"
    );
    let (holds, because) = verdict(FASTER, &three(against(1.5, 0.01), against(2.0, 0.01)));
    assert_eq!(holds, Holds::NotHeld, "{because}");
    assert!(because.starts_with("1 of 2 contradict"), "{because}");
    let (holds, because) = verdict(FASTER, &three(against(0.99, 0.2), against(2.0, 0.01)));
    assert_eq!(holds, Holds::Undecided, "{because}");
}

#[test]
fn few_rounds_and_failed_rows_decide_nothing() {
    let mut few = three(vec![0.5; 4], vec![2.0; 4]);
    let (holds, because) = verdict(FASTER, &few);
    assert_eq!(holds, Holds::Undecided);
    assert!(because.contains("fewer than 5 rounds"), "{because}");
    few = three(around(0.5, 0.01), around(2.0, 0.01));
    few.races[0].result.entrants[2].status = heapdrome_schema::Status::Failed;
    let (holds, because) = verdict(FASTER, &few);
    assert_eq!(holds, Holds::Undecided);
    assert!(because.contains("a failed"), "{because}");
}

#[test]
fn what_is_not_here_cannot_be_tested_and_what_was_not_run_is_open() {
    let races = three(around(0.5, 0.01), around(2.0, 0.01));
    let of_lost = FASTER.replace("of = [\"quick\"]", "of = [\"lost\"]");
    let (holds, because) = verdict(&of_lost, &races);
    assert_eq!(
        (holds, because.as_str()),
        (Holds::CannotBeTested, "not available here: lost")
    );
    let elsewhere = FASTER.replace("cells = [\"one\"]", "cells = [\"two\"]");
    let (holds, because) = verdict(&elsewhere, &races);
    assert_eq!(
        (holds, because.as_str()),
        (Holds::Undecided, "not run: two")
    );
    let at_32 = FASTER.replace("[\"one\"]", "[\"swept\"], at = [32]");
    let rows = [
        Row::new("system", vec![1.0; 5]),
        Row::new("a", vec![1.0; 5]),
    ];
    let swept = collection(vec![member("t/swept", Some(2), &rows)]);
    let (holds, because) = verdict(&at_32, &swept);
    assert_eq!(holds, Holds::CannotBeTested);
    assert!(because.contains("32 threads"), "{because}");
    let at_2_and_32 = FASTER
        .replace("[\"one\"]", "[\"swept\"], at = [2, 32]")
        .replace("[\"libc\", \"slow\"]", "[\"libc\"]");
    let rows = [
        Row::new("system", around(1.0, 0.01)),
        Row::new("a", against(0.5, 0.01)),
    ];
    let swept = collection(vec![member("t/swept", Some(2), &rows)]);
    let (holds, because) = verdict(&at_2_and_32, &swept);
    assert_eq!(holds, Holds::Held);
    assert!(because.ends_with("; not run here: 32 threads"), "{because}");
    let said = r#"{ untestable = { reason = "no one could" } }"#;
    assert_eq!(
        verdict(said, &races),
        (Holds::CannotBeTested, "no one could".to_owned())
    );
}

#[test]
fn a_part_of_what_a_claim_speaks_of_does_not_hold_for_the_whole() {
    let races = three(against(0.5, 0.01), against(2.0, 0.01));
    let two_cells = FASTER.replace("[\"one\"]", "[\"one\", \"two\"]");
    let (holds, because) = verdict(&two_cells, &races);
    assert_eq!(holds, Holds::Undecided, "{because}");
    assert!(because.ends_with("; not run: two"), "{because}");
    let slower = three(against(1.5, 0.01), against(2.0, 0.01));
    assert_eq!(verdict(&two_cells, &slower).0, Holds::NotHeld);
    let rows = [
        Row::new("system", around(1.0, 0.01)),
        Row::new("a", against(0.5, 0.01)),
    ];
    let without_slow = collection(vec![member("t/one", None, &rows)]);
    let (holds, because) = verdict(FASTER, &without_slow);
    assert_eq!(holds, Holds::Undecided, "{because}");
    assert!(because.ends_with("; not run: slow"), "{because}");
}

#[test]
fn everyone_is_the_documents_and_not_what_was_added() {
    let everyone = FASTER.replace("[\"libc\", \"slow\"]", "[\"*\"]");
    let rows = [
        Row::new("system", around(1.0, 0.01)),
        Row::new("a", against(0.5, 0.01)),
        Row::new("b", around(2.0, 0.01)),
        Row::new("c", around(0.1, 0.01)),
    ];
    let races = collection(vec![member("t/one", None, &rows)]);
    let (holds, because) = verdict(&everyone, &races);
    assert_eq!(holds, Holds::Held, "{because}");
    assert!(because.starts_with("2 of 2 agree"), "{because}");
}

#[test]
fn figures_and_shares_are_held_to_their_ranges() {
    let figure = |low: f64, high: f64| {
        format!(
            r#"{{ figure = {{ figure = "overhead", of = ["quick"], in = {{ cells = ["one"] }}, range = {{ low = {low:?}, high = {high:?} }} }} }}"#
        )
    };
    let share = |low: f64| {
        format!(
            r#"{{ share = {{ figure = "system_s", whole = "wall_s", of = ["quick"], in = {{ cells = ["one"] }}, range = {{ low = {low:?} }} }} }}"#
        )
    };
    let rows = [
        Row::new("system", around(1.0, 0.01)),
        Row::new("a", around(2.0, 0.01))
            .system(against(1.2, 0.01))
            .metric("overhead", around(1.12, 0.005)),
    ];
    let races = collection(vec![member("t/one", None, &rows)]);
    for (test, expected) in [
        (figure(1.10, 1.15), Holds::Held),
        (figure(1.12, 1.15), Holds::Undecided),
        (figure(1.20, 1.25), Holds::NotHeld),
        (share(0.5), Holds::Held),
        (share(0.6), Holds::Undecided),
        (share(0.7), Holds::NotHeld),
    ] {
        let (holds, because) = verdict(&test, &races);
        assert_eq!(holds, expected, "{test}: {because}");
    }
}

/// Returns races in two cells with these times. The large cell has twice as much data as the small
/// one.
fn sized(large: [Vec<f64>; 3], small: [Vec<f64>; 3]) -> Collection {
    let cell = |name: &str, walls: [Vec<f64>; 3], bytes: f64| {
        let names = ["system", "a", "b"];
        let row = |(name, wall): (&str, Vec<f64>)| {
            Row::new(name, wall).metric("data_bytes", vec![bytes; 10])
        };
        let rows: Vec<Row> = names.into_iter().zip(walls).map(row).collect();
        member(name, None, &rows)
    };
    collection(vec![
        cell("t/one", large, 2.0e9),
        cell("t/two", small, 1.0e9),
    ])
}

const BETWEEN: &str = r#"between = { large = "one", small = "two", size = "data_bytes" }"#;

#[test]
fn degradation_is_divided_by_the_sizes_measured() {
    let races = sized(
        [around(3.0, 0.01), around(2.0, 0.01), around(6.0, 0.01)],
        [around(1.0, 0.01), around(1.0, 0.01), around(1.0, 0.01)],
    );
    let test = |low: f64, high: f64| {
        format!(
            "{{ degradation = {{ of = [\"libc\"], {BETWEEN}, range = {{ low = {low:?}, high = {high:?} }} }} }}"
        )
    };
    assert_eq!(verdict(&test(1.4, 1.6), &races).0, Holds::Held);
    assert_eq!(verdict(&test(1.5, 1.6), &races).0, Holds::Undecided);
    assert_eq!(verdict(&test(2.5, 3.5), &races).0, Holds::NotHeld);
    let ratio = |low: f64| {
        format!("{{ data-ratio = {{ {BETWEEN}, range = {{ low = {low:?}, high = 3.0 }} }} }}")
    };
    assert_eq!(verdict(&ratio(1.9), &races).0, Holds::Held);
    assert_eq!(verdict(&ratio(2.1), &races).0, Holds::NotHeld);
    let table = format!(
        "[[table]]\ntitle = \"degradation\"\nmakes = {{ degradation = {} }}",
        BETWEEN.trim_start_matches("between = ")
    );
    let tables = evaluate(&[suite(&table)], &races).tables;
    assert_eq!(tables[0].rows[0][0], "libc (system)");
    assert!(tables[0].rows[0][1].starts_with("1.500 (1.4"), "{tables:?}");
    assert!(tables[0].notes[0].contains("2.000 times"), "{tables:?}");
}

#[test]
fn the_fastest_is_the_closest_or_not_or_it_cannot_be_told() {
    let test = format!("{{ fastest-is-closest = {{ {BETWEEN} }} }}");
    let small = || [around(1.0, 0.01), around(1.0, 0.01), around(1.0, 0.01)];
    // The degradations of `libc`, `quick` and `slow` are 1.5, 1.0 and 3.0. The entrant `quick` is
    // also the fastest.
    let held = sized(
        [around(3.0, 0.01), against(2.0, 0.01), around(6.0, 0.01)],
        small(),
    );
    assert_eq!(verdict(&test, &held).0, Holds::Held);
    // The degradations of `libc`, `quick` and `slow` are 1.0, 0.5 and 3.0. The entrant `quick` is
    // the fastest, but its degradation is further from 1 than that of `libc`.
    let not_held = sized(
        [around(2.0, 0.01), against(1.0, 0.01), around(6.0, 0.01)],
        small(),
    );
    let (holds, because) = verdict(&test, &not_held);
    assert_eq!(holds, Holds::NotHeld, "{because}");
    assert!(because.contains("closest to 1: libc 1.000"), "{because}");
    // The two fastest entrants, `libc` and `quick`, are indistinguishable.
    let open = sized(
        [around(2.0, 0.1), against(2.0, 0.1), around(6.0, 0.01)],
        small(),
    );
    assert_eq!(verdict(&test, &open).0, Holds::Undecided);
}

/// The claim has intervals for three degradations and for three comparisons of times. These share
/// an error probability of 5%.
#[test]
fn degradations_and_comparisons_share_the_error_probability() {
    let test = format!("{{ fastest-is-closest = {{ {BETWEEN} }} }}");
    let [large, small] = [2.0, 1.0].map(|value| around(value, 0.1));
    let races = sized(
        [large.clone(), against(6.0, 0.1), against(8.0, 0.1)],
        [small.clone(), around(1.0, 0.1), around(1.0, 0.1)],
    );
    let found = ratio_of_means(&large, &small, 1.0 - 0.025 / 3.0);
    let found = found.expect("an interval").scaled(0.5);
    let told = format!(
        "libc {:.3} ({:.3} to {:.3})",
        found.estimate, found.low, found.high
    );
    let (_, because) = verdict(&test, &races);
    assert!(because.contains(&told), "{told} in: {because}");
}

#[test]
fn a_renamed_suite_answers_to_its_former_name() {
    for (former, present) in [
        ("stable", "own-allocators"),
        ("stable=2", "own-allocators=2"),
        ("stable/burst=2", "own-allocators/burst=2"),
    ] {
        assert_eq!(present_name(former), present);
        assert_eq!(present_name(present), present);
    }
    for name in ["real", "stabler", "./stable", "burst"] {
        assert_eq!(present_name(name), name);
    }
}

/// A user's own suite file may use the former name of a built-in suite. Its results keep that name.
#[test]
fn what_was_kept_under_a_former_name_goes_on_under_the_present_one() {
    let kept = |name: &str| {
        let mut kept = collection(vec![member(
            "stable/one",
            None,
            &[Row::new("a", Vec::new())],
        )]);
        kept.name = name.to_owned();
        rename(&mut kept);
        (kept.name, kept.races.remove(0).cell)
    };
    let pair = |name: &str, cell: &str| (name.to_owned(), cell.to_owned());
    assert_eq!(kept("stable"), pair("own-allocators", "own-allocators/one"));
    assert_eq!(kept("./mine.toml"), pair("./mine.toml", "stable/one"));
}
