//! Tests of one allocator against its rivals: tables and targets on invented races, the races that
//! a selection contains, and the smallest form of a race.

mod made_up;

use heapdrome_schema::{Collection, Holds, Member, Scale, Table};
use heapdrome_suites::{Selection, Suite, evaluate, probe};
use made_up::{Row, collection, member};

const SUITE: &str = r#"
name = "t"
title = "T"
summary = "made up"
baseline = "system"
[[entrant]]
name = "ours"
allocator = "ours"
added = true
[[entrant]]
name = "system"
allocator = "system"
[[entrant]]
name = "quick"
allocator = "a"
[[entrant]]
name = "slow"
allocator = "b"
not_in_quick = true
[[entrant]]
name = "arena"
allocator = "c"
added = true
cells = ["one"]
[[cell]]
name = "one"
title = "one"
workload = "w"
counts = { loops = 1 }
quick = { words = ["loops=10"], rounds = 5 }
usual = { words = ["loops=30"], rounds = 5 }
[[cell]]
name = "swept"
title = "swept"
workload = "w"
sweep = { parameter = "threads", values = [1, 2] }
quick = { rounds = 5 }
"#;

fn suite(more: &str) -> Suite {
    Suite::read(&format!("{SUITE}\n{more}")).expect("a suite")
}

/// Returns ten samples within the relative `noise` of `value`. `rhythm` shifts their pattern.
fn around(value: f64, noise: f64, rhythm: usize) -> Vec<f64> {
    let mut sway = [0.3, -0.8, 0.5, -0.1, 0.9, -0.6, 0.2, -0.9, 0.7, -0.2];
    sway.rotate_left(rhythm);
    sway.iter().map(|it| value * (1.0 + noise * it)).collect()
}

/// Returns a race of the entrants `ours`, `system`, `quick` and `slow`, with their times in this
/// order.
fn race(cell: &str, swept: Option<u64>, times: [f64; 4], noise: f64) -> Member {
    let [ours, system, quick, slow] = times;
    let row = |name, value, rhythm| Row::new(name, around(value, noise, rhythm));
    let rows = [
        row("system", system, 0),
        row("ours", ours, 3),
        row("a", quick, 5),
        row("b", slow, 7),
    ];
    member(cell, swept, &rows)
}

/// Returns two races. With one thread, `ours` is faster than all others. With two threads, it is
/// slower than `quick` and indistinguishable from `system`.
fn two_races() -> Collection {
    let mut second = race("t/swept", Some(2), [1.0, 1.0, 0.5, 2.0], 0.001);
    let system = &mut second.result.entrants[0];
    let noisy = Row::new("system", around(1.0, 0.3, 0));
    noisy.times_to(system);
    collection(vec![
        race("t/swept", Some(1), [0.5, 1.0, 0.8, 2.0], 0.001),
        second,
    ])
}

fn table(makes: &str, races: &Collection) -> Table {
    let plan = format!("[[table]]\ntitle = \"x\"\nmakes = {makes}");
    let mut tables = evaluate(&[suite(&plan)], races).tables;
    assert_eq!(tables.len(), 1, "{tables:?}");
    tables.remove(0)
}

/// Returns the verdict on one target for these races, with the reason.
fn verdict(test: &str, races: &Collection) -> (Holds, String) {
    let text = format!("[[target]]\nclaim = \"It is so.\"\nsource = \"1\"\ntest = {test}");
    let evaluation = evaluate(&[suite(&text)], races);
    let [one] = evaluation.claims.as_slice() else {
        panic!("one target: {:?}", evaluation.claims)
    };
    assert!(one.target);
    (one.holds, one.because.clone())
}

#[test]
fn ratios_to_each_rival_carry_a_mark() {
    let plan =
        r#"{ against = { of = "ours", cells = ["swept"], figure = "wall_s", below = 1.02 } }"#;
    let found = table(plan, &two_races());
    assert_eq!(found.heads, ["ours over", "swept, 1", "swept, 2"]);
    let names: Vec<&String> = found.rows.iter().map(|row| &row[0]).collect();
    assert_eq!(names, ["system", "quick (a)", "slow (b)"]);
    let marks: Vec<Vec<&str>> = found
        .rows
        .iter()
        .map(|row| {
            let last = row[1..]
                .iter()
                .map(|cell| cell.rsplit(' ').next().expect("a word"));
            last.collect()
        })
        .collect();
    assert_eq!(
        marks,
        [
            ["reached", "undecided"],
            ["reached", "missed"],
            ["reached", "reached"]
        ]
    );
    assert!(found.rows[0][1].starts_with("0.500 (0.49"), "{found:?}");
    let plan = plan.replace(", below = 1.02", "");
    let without = table(&plan, &two_races());
    assert!(without.rows[0][1].ends_with(')'), "no target, no mark");
}

#[test]
fn standing_tells_the_worst_and_counts_the_marks() {
    let plan =
        r#"{ standing = { of = "ours", cells = ["swept"], figure = "wall_s", below = 1.02 } }"#;
    let found = table(plan, &two_races());
    let [first, second] = found.rows.as_slice() else {
        panic!("two races: {found:?}")
    };
    assert_eq!(first[..2], ["swept, 1", "quick (a)"]);
    assert_eq!(first[3..], ["3 of 3", "0", "reached"]);
    assert!(second[2].starts_with("2.000 ("), "{found:?}");
    assert_eq!(second[3..], ["1 of 3", "1", "missed"]);
    let of_one = plan.replace("cells", "to = [\"system\"], cells");
    let found = table(&of_one, &two_races());
    assert_eq!(found.rows[1][3..], ["0 of 1", "0", "undecided"]);
}

#[test]
fn a_rival_that_fails_is_told_and_does_not_leave_the_target_open() {
    let mut races = two_races();
    for race in &mut races.races {
        let quick = &mut race.result.entrants[3];
        assert_eq!(quick.allocator, "a");
        quick.status = heapdrome_schema::Status::Failed;
    }
    let plan = r#"{ against = { of = "ours", cells = ["swept"], figure = "wall_s" } }"#;
    let found = table(plan, &races);
    assert_eq!(found.rows.len(), 2);
    assert!(
        found.notes[0].starts_with("quick (a) failed in"),
        "{found:?}"
    );
    let at_one = r#"{ ratio = { figure = "wall_s", of = ["ours"], to = ["*"], in = { cells = ["swept"], at = [1] }, range = { high = 1.02 } } }"#;
    let (holds, because) = verdict(at_one, &races);
    assert_eq!(holds, Holds::Held, "{because}");
    let (holds, _) = verdict(&at_one.replace("\"*\"", "\"quick\", \"system\""), &races);
    assert_eq!(holds, Holds::Undecided, "one that is named leaves it open");
}

#[test]
fn means_put_races_together_and_the_least_is_chosen_in_each() {
    let races = collection(vec![
        race("t/swept", Some(1), [1.0, 2.0, 0.5, 4.0], 0.001),
        race("t/swept", Some(2), [1.0, 8.0, 4.0, 0.25], 0.001),
    ]);
    let plan = r#"{ means = { of = "ours", cells = ["swept"], figure = "wall_s", below = 0.9 } }"#;
    let found = table(plan, &races);
    // The geometric means of the two ratios are 1/4 to `system` (1/2 and 1/8), 0.7071 to `quick` (2
    // and 1/4), and 1 to `slow` (1/4 and 4).
    let starts = ["0.250 (0.2", "0.707 (0.70", "1.000 ("];
    let marks = ["reached", "reached", "missed"];
    for (row, (start, mark)) in found.rows.iter().zip(starts.iter().zip(marks)) {
        assert!(row[1].starts_with(start), "{found:?}");
        assert_eq!(row[2..], ["2", mark]);
    }
    let least = plan.replace("below = 0.9", "below = 0.9, least = true");
    let found = table(&least, &races);
    let last = found.rows.last().expect("rows");
    // The smallest figure is that of `quick` in the first race, and that of `slow` in the second.
    // The geometric mean of the ratios 2 and 4 is 2.828.
    assert_eq!(last[0], "the least of these in each race");
    assert!(last[1].starts_with("2.828 ("), "{found:?}");
    assert_eq!(last[2..], ["2", "missed"]);
    assert_eq!(found.rows[0][3], "-", "the target is about the least");
}

const MEAN: &str = r#"{ mean = { figure = "wall_s", of = ["ours"], to = ["*"], in = { cells = ["one", "swept"] }, range = { high = 0.9 } } }"#;

#[test]
fn a_target_on_means_is_reached_missed_or_undecided() {
    let races = |first: [f64; 4], noise| {
        collection(vec![
            race("t/one", None, first, noise),
            race("t/swept", Some(1), [1.0, 1.0, 1.0, 1.0], noise),
        ])
    };
    let (holds, because) = verdict(MEAN, &races([0.5, 1.0, 1.0, 2.0], 0.001));
    assert_eq!(holds, Holds::Held, "{because}");
    assert!(
        because.contains("ours over quick in 2 of 2 races 0.707 ("),
        "{because}"
    );
    let (holds, because) = verdict(MEAN, &races([0.5, 1.0, 0.4, 2.0], 0.001));
    assert_eq!(holds, Holds::NotHeld, "{because}");
    assert!(
        because.starts_with("1 of 3 contradict, 2 agree: ours over quick"),
        "{because}"
    );
    let (holds, _) = verdict(MEAN, &races([0.8, 1.0, 1.0, 2.0], 0.4));
    assert_eq!(holds, Holds::Undecided);
    let mut failed = races([0.5, 1.0, 1.0, 2.0], 0.001);
    failed.races[0].result.entrants[2].status = heapdrome_schema::Status::Failed;
    let (holds, because) = verdict(MEAN, &failed);
    assert_eq!(holds, Holds::Undecided);
    assert!(because.contains("ours failed in one"), "{because}");
    let least = MEAN.replace("to = [\"*\"]", "to = [\"quick\", \"slow\"], least = true");
    let (holds, because) = verdict(&least, &races([0.5, 1.0, 1.0, 0.25], 0.001));
    // The ratio to the faster of `quick` and `slow` is 2 in the first race and 1 in the second.
    // Their geometric mean is 1.414.
    assert_eq!(holds, Holds::NotHeld);
    assert!(
        because.contains("the least of quick, slow in 2 of 2 races 1.414"),
        "{because}"
    );
}

#[test]
fn intervals_of_a_race_hold_together_where_the_target_says_so() {
    let at = |threads| race("t/swept", Some(threads), [0.5, 1.0, 1.0, 1.0], 0.1);
    let races = collection(vec![at(1), at(2)]);
    let test = |scope: &str| {
        format!(
            r#"{{ ratio = {{ figure = "wall_s", of = ["ours"], to = ["system"], in = {{ cells = ["swept"], {scope} }}, range = {{ high = 0.1 }} }} }}"#
        )
    };
    let (_, alone) = verdict(&test("at = [1]"), &races);
    let part = alone.split_once(": ").expect("a figure").1;
    let (_, by_race) = verdict(&test(r#"family = "race""#), &races);
    assert!(by_race.contains(part), "{by_race} has not {part}");
    let (_, together) = verdict(&test(r#"family = "claim""#), &races);
    assert!(!together.contains(part), "{together}");
}

#[test]
fn what_is_not_shown_otherwise_holds_where_that_is_the_target() {
    let test = r#"{ ratio = { figure = "wall_s", of = ["ours"], to = ["system"], in = { cells = ["one"], holds_for = "uncontradicted" }, range = { high = 1.01 } } }"#;
    let one = |ours, noise| collection(vec![race("t/one", None, [ours, 1.0, 1.0, 1.0], noise)]);
    let (holds, because) = verdict(test, &one(1.0, 0.3));
    assert_eq!(holds, Holds::Held);
    assert!(
        because.starts_with("none of 1 contradicts: ours over system in one"),
        "{because}"
    );
    assert_eq!(verdict(test, &one(1.2, 0.001)).0, Holds::NotHeld);
    let mut few = one(1.0, 0.001);
    for row in &mut few.races[0].result.entrants {
        row.wall_s.as_mut().expect("times").samples.truncate(4);
    }
    assert_eq!(verdict(test, &few).0, Holds::Undecided);
}

#[test]
fn what_contradicts_most_is_told_first() {
    let races = two_races();
    let test = r#"{ ratio = { figure = "wall_s", of = ["slow"], to = ["ours", "quick"], in = { cells = ["swept"], at = [1] }, range = { high = 1.0 } } }"#;
    let (_, because) = verdict(test, &races);
    assert!(
        because.starts_with("2 of 2 contradict: slow over ours"),
        "{because}"
    );
}

#[test]
fn figures_of_one_race_stand_side_by_side() {
    let mib = |value: f64| vec![value * 1_048_576.0; 5];
    let rows = [
        Row::new("system", vec![1.0; 5])
            .rss(mib(1.0))
            .metric("left_bytes", mib(3.0)),
        Row::new("ours", vec![1.0; 5])
            .rss(mib(2.0))
            .system(vec![1.0; 5]),
        Row::new("a", Vec::new()).failed(),
    ];
    let races = collection(vec![member("t/one", None, &rows)]);
    let plan = r#"{ figures = { cell = "one", figures = ["peak_rss_bytes", "left_bytes"], shown = "mib" } }"#;
    let found = table(plan, &races);
    assert_eq!(found.heads, ["allocator", "peak rss", "left"]);
    assert_eq!(found.rows[0], ["system", "1.000", "3.000"]);
    assert_eq!(found.rows[1], ["ours", "2.000", "-"]);
    assert_eq!(found.notes, ["quick (a) failed in one"]);
    let plain = table(&plan.replace("mib", "plain"), &races);
    assert_eq!(plain.rows[0][1], "1048576");
}

#[test]
fn entrants_keep_to_their_cells_and_scales() {
    let of = |scale, allocators: &[&str]| -> Vec<Vec<String>> {
        let allocators: Vec<String> = allocators.iter().map(|name| (*name).to_owned()).collect();
        let selection = Selection {
            scale,
            processors: 2,
            only: &[],
            allocators: &allocators,
        };
        let races = suite("").races(&selection);
        races.into_iter().map(|race| race.allocators).collect()
    };
    let quick = of(Scale::Quick, &[]);
    assert_eq!(quick[0], ["ours", "a", "c"]);
    assert_eq!(quick[1], ["ours", "a"]);
    assert_eq!(of(Scale::Usual, &[]), [["ours", "a", "b", "c"]]);
    // An entrant that is requested by name races at every scale, but only in its own cells.
    let named = of(Scale::Quick, &["system", "b", "c", "stranger"]);
    assert_eq!(named[0], ["b", "c", "stranger"]);
    assert_eq!(named[1], ["b", "stranger"]);
}

#[test]
fn a_cell_for_some_entrants_is_for_no_other() {
    let cell = "[[cell]]\nname = \"pair\"\ntitle = \"pair\"\nworkload = \"w\"\n\
                entrants = [\"system\", \"quick\"]\nquick = { rounds = 5 }";
    let of = |allocators: &[&str]| -> Vec<(String, Vec<String>)> {
        let allocators: Vec<String> = allocators.iter().map(|name| (*name).to_owned()).collect();
        let selection = Selection {
            scale: Scale::Quick,
            processors: 2,
            only: &["pair".to_owned()],
            allocators: &allocators,
        };
        let races = suite(cell).races(&selection);
        let pair = |race: heapdrome_suites::Race| (race.cell, race.allocators);
        races.into_iter().map(pair).collect()
    };
    let both = [("t/pair".to_owned(), vec!["a".to_owned()])];
    assert_eq!(of(&[]), both);
    assert_eq!(of(&["system", "a", "b", "stranger"]), both);
    // Without `quick`, the cell has no rival, so there is no race.
    assert!(of(&["system", "b", "stranger"]).is_empty());
    let unknown = Suite::read(&format!("{SUITE}\n{}", cell.replace("quick\"]", "fast\"]")));
    let told = unknown.expect_err("no such entrant").to_string();
    assert!(told.contains("no entrant fast"), "{told}");
}

#[test]
fn a_form_is_estimated_from_the_smallest_also_where_nothing_was_published() {
    let suites = [suite("")];
    let selection = Selection {
        scale: Scale::Usual,
        processors: 2,
        only: &[],
        allocators: &[],
    };
    let races = suites[0].races(&selection);
    let found = probe(&suites, &races[0]).expect("the counts are known");
    assert_eq!(
        (found.race.words, found.times),
        (vec!["loops=10".to_owned()], 3.0)
    );
}
