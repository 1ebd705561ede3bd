//! Tests the decided entrants of a running race, the verdicts and means of races in which entrants
//! ran different numbers of rounds, and the maximum number of rounds in a form.

mod made_up;

use heapdrome_schema::{ClaimResult, Holds, Member, Scale};
use heapdrome_suites::{Decided, Selection, Suite, evaluate, list};
use made_up::{Row, collection, member, suite};

/// Targets: in each race, the ratio of `quick` to every other entrant of the document must be below
/// 1.02 in time, and the ratio of `quick` to `slow` must be below 1.15 in memory.
const TARGETS: &str = r#"
[[target]]
claim = "It is fast."
source = "Speed"
test = { ratio = { figure = "wall_s", of = ["quick"], to = ["*"], in = { cells = ["one"], family = "race" }, range = { high = 1.02 } } }
[[target]]
claim = "It is small."
source = "Memory"
test = { ratio = { figure = "peak_rss_bytes", of = ["quick"], to = ["slow"], in = { cells = ["one"], family = "race" }, range = { high = 1.15 } } }
"#;

/// Returns `rounds` samples within the relative `noise` of `value`. `rhythm` shifts their pattern.
fn around(value: f64, noise: f64, rhythm: usize, rounds: usize) -> Vec<f64> {
    let mut sway = [0.3, -0.8, 0.5, -0.1, 0.9, -0.6, 0.2, -0.9, 0.7, -0.2];
    sway.rotate_left(rhythm);
    let rounds = sway.iter().cycle().take(rounds);
    rounds.map(|it| value * (1.0 + noise * it)).collect()
}

/// Returns a row with this time and this memory, after this number of rounds.
fn row(allocator: &str, time: f64, memory: f64, rounds: usize) -> Row {
    let rhythm = usize::from(allocator.as_bytes()[0]) % 10;
    let rss = vec![memory; rounds];
    Row::new(allocator, around(time, 0.02, rhythm, rounds)).rss(rss)
}

const MIB: f64 = 1048576.0;

/// Returns a race of the entrants `libc`, `quick`, `slow` and `modern`, whose allocators are
/// `system`, `a`, `b` and `c`. No target compares `modern`.
fn race(system: Row, slow: Row) -> Member {
    let rows = [system, row("a", 1.0, MIB, 10), slow, row("c", 1.0, MIB, 10)];
    member("t/one", None, &rows)
}

fn names(decided: &Decided) -> Vec<&str> {
    let entrants = decided.entrants.iter();
    entrants.map(|(name, _)| name.as_str()).collect()
}

#[test]
fn who_lies_wholly_on_one_side_of_every_limit_is_decided() {
    let suite = suite(TARGETS);
    // The target on time is reached against `libc`, which is far slower than `quick`. It is open
    // against `slow`, which takes as long as `quick`.
    let open = race(row("system", 2.0, MIB, 10), row("b", 1.0, 2.0 * MIB, 10));
    let decided = suite.decided(&open);
    assert!(!decided.all);
    assert_eq!(names(&decided), ["system", "system (again)", "c"]);
    let because = &decided.entrants[0].1;
    assert!(
        because.starts_with("wall_s of quick over libc in one 0.50"),
        "{because}"
    );
    assert_eq!(decided.entrants[2].1, "no target compares it");
    // Against `slow`, the target on time is missed and the target on memory is reached, so `quick`
    // and `slow` are decided, too.
    let settled = race(row("system", 2.0, MIB, 10), row("b", 0.5, 2.0 * MIB, 10));
    let decided = suite.decided(&settled);
    assert!(decided.all, "{decided:?}");
    assert_eq!(decided.entrants.len(), 5);
    // Only the target on memory keeps `quick` and `slow` in the race. Their ratio equals the limit,
    // and its interval extends beyond the limit because memory is measured in pages.
    let memory = race(row("system", 2.0, MIB, 10), row("b", 0.5, MIB / 1.15, 10));
    assert_eq!(
        names(&suite.decided(&memory)),
        ["system", "system (again)", "c"]
    );
}

/// A target on most comparisons needs all races together, so no single race continues for it.
#[test]
fn nobody_waits_for_what_is_said_of_most_races() {
    let of_most = |text: &str| text.replace("family", "holds_for = \"most\", family");
    let open = race(row("system", 1.0, MIB, 10), row("b", 1.0, MIB, 10));
    assert!(!suite(TARGETS).decided(&open).all);
    assert!(suite(&of_most(TARGETS)).decided(&open).all);
}

#[test]
fn nobody_waits_for_who_has_failed() {
    let suite = suite(TARGETS);
    let lost = row("b", 1.0, MIB, 3).failed();
    let decided = suite.decided(&race(row("system", 2.0, MIB, 10), lost));
    assert!(decided.all, "{decided:?}");
}

#[test]
fn with_no_target_in_single_races_all_is_decided() {
    let of_all = TARGETS.replace(", family = \"race\"", "");
    let open = race(row("system", 1.0, MIB, 10), row("b", 1.0, MIB, 10));
    assert!(suite(&of_all).decided(&open).all);
    assert!(!suite(TARGETS).decided(&open).all);
}

fn verdicts(suite: &Suite, race: Member) -> Vec<ClaimResult> {
    evaluate(std::slice::from_ref(suite), &collection(vec![race])).claims
}

/// A decided entrant stays decided, regardless of the other entrants' later rounds.
#[test]
fn the_verdict_on_who_left_is_that_with_which_it_left() {
    let suite = suite(TARGETS);
    let early = race(row("system", 2.0, MIB, 8), row("b", 0.5, 2.0 * MIB, 8));
    assert!(suite.decided(&early).all);
    let before = verdicts(&suite, early.clone());
    // Give `quick` alone twenty more rounds with far worse values.
    let mut later = early;
    let quick = &mut later.result.entrants[2];
    assert_eq!(quick.allocator, "a");
    for series in [&mut quick.wall_s, &mut quick.peak_rss_bytes] {
        let series = series.as_mut().expect("it ran");
        series.samples.truncate(8);
        series.samples.extend([100.0 * MIB; 20]);
    }
    let after = verdicts(&suite, later.clone());
    assert_eq!(before[0].holds, Holds::NotHeld);
    assert_eq!(before[1].holds, Holds::Held);
    assert_eq!(
        before.iter().map(|one| one.holds).collect::<Vec<_>>(),
        after.iter().map(|one| one.holds).collect::<Vec<_>>()
    );
    assert!(suite.decided(&later).all);
}

#[test]
fn a_mean_rests_on_the_rounds_that_everyone_ran() {
    let mean = r#"
[[target]]
claim = "It is fast on the whole."
source = "Speed"
test = { mean = { figure = "wall_s", of = ["quick"], to = ["slow"], in = { cells = ["one"] }, range = { high = 1.0 } } }
[[table]]
title = "means"
makes = { means = { of = "quick", to = ["slow"], cells = ["one"], figure = "wall_s" } }
"#;
    let suite = suite(mean);
    let mut unequal = race(row("system", 2.0, MIB, 10), row("b", 2.0, MIB, 10));
    let all = evaluate(
        std::slice::from_ref(&suite),
        &collection(vec![unequal.clone()]),
    );
    for place in [2, 3] {
        let series = unequal.result.entrants[place].wall_s.as_mut();
        series.expect("it ran").samples[8..].fill(50.0);
    }
    let found = |race: &Member| {
        evaluate(
            std::slice::from_ref(&suite),
            &collection(vec![race.clone()]),
        )
    };
    assert_ne!(found(&unequal).tables, all.tables);
    unequal.result.least_rounds = Some(8);
    let first = found(&unequal);
    for place in [2, 3] {
        let series = unequal.result.entrants[place].wall_s.as_mut();
        series.expect("it ran").samples.truncate(8);
    }
    assert_eq!(found(&unequal), first);
    assert_eq!(first.claims[0].holds, Holds::Held);
}

/// Returns the error for a suite whose first cell has this form.
fn refused(form: &str, targets: &str) -> String {
    let text = made_up::text(targets);
    let text = text.replacen(
        "quick = { rounds = 5 }",
        &format!("quick = {{ {form} }}"),
        1,
    );
    Suite::read(&text).expect_err("refused").to_string()
}

#[test]
fn most_rounds_must_be_able_to_decide_something() {
    for (form, targets, why) in [
        (
            "rounds = 5, most_rounds = 5",
            TARGETS,
            "not more than its rounds",
        ),
        (
            "rounds = 4, most_rounds = 9",
            TARGETS,
            "fewer than 5 rounds decide nothing",
        ),
        ("rounds = 5, most_rounds = 9", "", "no target with family"),
    ] {
        let told = refused(form, targets);
        assert!(
            told.contains("the cell one has most_rounds") && told.contains(why),
            "{told}"
        );
    }
    let text = made_up::text(TARGETS);
    let form = "quick = { rounds = 5, most_rounds = 9 }";
    let text = text.replacen("quick = { rounds = 5 }", form, 1);
    let races = Suite::read(&text).expect("a suite").races(&Selection {
        scale: Scale::Quick,
        processors: 2,
        only: &[],
        allocators: &[],
    });
    assert_eq!((races[0].rounds, races[0].most_rounds), (5, Some(9)));
    assert_eq!((races[1].rounds, races[1].most_rounds), (5, None));
}

/// A faster rival contradicts the target only if it is also no larger. The name of a group stands
/// for its members.
#[test]
fn a_faster_rival_counts_only_if_it_is_as_small() {
    let suite = suite(
        r#"
[groups]
races = ["one", "swept"]
[[target]]
claim = "No rival is faster and small."
source = "Speed"
test = { ratio = { figure = "wall_s", of = ["quick"], to = ["*"], in = { cells = ["races"], family = "race", holds_for = "uncontradicted" }, range = { high = 1.02 }, unless = { figure = "peak_rss_bytes", range = { high = 0.952 } } } }
"#,
    );
    let beside = |time: f64, memory: f64| {
        let slow = row("b", time, memory, 10);
        verdicts(&suite, race(row("system", 2.0, MIB, 10), slow)).remove(0)
    };
    assert_eq!(
        beside(0.5, 1.2 * MIB).holds,
        Holds::Undecided,
        "swept was not run"
    );
    let found = beside(0.5, 1.01 * MIB);
    assert_eq!(found.holds, Holds::NotHeld);
    let told = "quick over slow in one 2.0";
    assert!(found.because.contains(told), "{}", found.because);
    assert!(
        found.because.contains("), peak_rss_bytes 0.99"),
        "{}",
        found.because
    );
}

/// Without `holds_for = "uncontradicted"`, two ratios would need a family of their own.
#[test]
fn a_second_ratio_needs_a_claim_that_is_only_contradicted() {
    let text = made_up::text(TARGETS).replacen(
        "range = { high = 1.02 }",
        "range = { high = 1.02 }, unless = { figure = \"cpu_s\", range = { high = 1.0 } }",
        1,
    );
    let told = Suite::read(&text).expect_err("a contradiction").to_string();
    assert!(told.contains("It is fast.\" has unless"), "{told}");
}

#[test]
fn an_allowance_needs_an_upper_limit() {
    let text = made_up::text(&TARGETS.replacen(
        "range = { high = 1.15 }",
        "range = { low = 0.5 }, allowance = 4096.0",
        1,
    ));
    let told = Suite::read(&text).expect_err("a contradiction").to_string();
    assert!(told.contains("It is small.\" has allowance"), "{told}");
}

#[test]
fn a_group_has_no_name_of_a_cell_or_an_entrant() {
    for name in ["one", "slow"] {
        let text = made_up::text(&format!("[groups]\n{name} = [\"two\"]\n"));
        let told = Suite::read(&text).expect_err("a contradiction").to_string();
        let expected = format!("the group {name} has the name of a cell or an entrant");
        assert!(told.contains(&expected), "{told}");
    }
}

#[test]
fn an_allowance_raises_the_limit_beside_a_small_rival() {
    let with = |allowance: &str| {
        let range = format!("range = {{ high = 1.15 }}, allowance = {allowance}");
        let suite = suite(&TARGETS.replacen("range = { high = 1.15 }", &range, 1));
        let slow = row("b", 1.0, 0.5 * MIB, 10);
        verdicts(&suite, race(row("system", 2.0, MIB, 10), slow))[1].holds
    };
    assert_eq!(with("1024.0"), Holds::NotHeld);
    assert_eq!(with("1048576.0"), Holds::Held);
}

/// At the usual scale, only the synthetic races of heapdrome's own allocators continue for
/// undecided entrants. At the quick scale, every race has a fixed number of rounds.
#[test]
fn the_own_allocators_give_more_rounds_to_who_is_open() {
    let suite = list()
        .iter()
        .find(|one| one.name == "own-allocators")
        .expect("the suite");
    let most = |scale| {
        let races = suite.races(&Selection {
            scale,
            processors: 2,
            only: &[],
            allocators: &[],
        });
        let with = races.iter().filter(|race| race.most_rounds.is_some());
        with.map(|race| race.workload.clone()).collect::<Vec<_>>()
    };
    let synthetic = [
        "threadtest",
        "shbench",
        "rptest",
        "prodcons",
        "malloctest",
        "large-blocks",
        "churn",
        "vectors",
        "short-threads",
        "fork-server",
        "short-process",
    ];
    let usual = most(Scale::Usual);
    assert_eq!(usual.len(), 58);
    assert!(
        usual.iter().all(|name| synthetic.contains(&name.as_str())),
        "{usual:?}"
    );
    assert!(most(Scale::Quick).is_empty());
}
