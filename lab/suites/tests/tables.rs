//! Tests the tables of invented races, and the position of published tables.

mod made_up;

use heapdrome_schema::{Collection, Table};
use heapdrome_suites::evaluate;
use made_up::{Row, collection, member, suite};

fn table(makes: &str, races: &Collection) -> Table {
    let plan = format!("[[table]]\ntitle = \"x\"\nmakes = {makes}");
    let mut tables = evaluate(&[suite(&plan)], races).tables;
    assert_eq!(tables.len(), 1, "{tables:?}");
    tables.remove(0)
}

#[test]
fn tables_of_one_race_hold_what_was_measured() {
    let rows = [
        Row::new("system", vec![1.0, 2.0, 3.0, 4.0, 5.0]).rss(vec![4096.0 * 1024.0; 5]),
        Row::new("a", vec![0.5, 1.0, 1.5, 2.0, 2.5]).rss(vec![2048.0 * 1024.0; 5]),
    ];
    let races = collection(vec![member("t/one", None, &rows)]);
    let runs = table(r#"{ runs = { cell = "one" } }"#, &races);
    assert_eq!(
        runs.rows[0],
        [
            "libc (system)",
            "3.000",
            "1.581",
            "-",
            "-",
            "1.000",
            "5.000",
            "5"
        ]
    );
    let variance = table(
        r#"{ variance = { cell = "one", figure = "wall_s", unit = "s" } }"#,
        &races,
    );
    assert_eq!(variance.rows[0], ["libc (system)", "3.000", "2.500", "5"]);
    let kib = table(
        r#"{ variance = { cell = "one", figure = "peak_rss_bytes", unit = "KiB" } }"#,
        &races,
    );
    assert_eq!(kib.rows[1], ["quick (a)", "2048", "0.000", "5"]);
    assert_eq!(kib.heads[1], "mean [KiB]");
    let saved = table(
        r#"{ savings = { cell = "one", figures = ["wall_s"] } }"#,
        &races,
    );
    assert_eq!(saved.rows, [["quick (a)", "50.00 (50.00 to 50.00)"]]);
}

#[test]
fn the_largest_is_that_of_the_first_runs() {
    let gib = |values: &[f64]| values.iter().map(|it| it * 1_073_741_824.0).collect();
    let rows = [
        Row::new("system", vec![1.0; 4]).rss(gib(&[1.0, 3.0, 2.0, 9.0])),
        Row::new("a", vec![1.0; 4]).rss(gib(&[1.5, 1.25, 1.0, 7.0])),
    ];
    let races = collection(vec![member("t/one", None, &rows)]);
    let largest = table(
        r#"{ largest = { cells = ["one"], figure = "peak_rss_bytes", of = 3, unit = "GiB" } }"#,
        &races,
    );
    assert_eq!(largest.rows[0], ["libc (system)", "3.00"]);
    assert_eq!(largest.rows[1], ["quick (a)", "1.50"]);
}

#[test]
fn a_sweep_has_a_column_for_each_value_and_a_note_on_who_failed() {
    let at = |value: u64, wall: f64| {
        let rows = [
            Row::new("system", vec![wall; 5]).metric("overhead", vec![1.25; 5]),
            Row::new("a", vec![wall / 2.0; 5]).metric("overhead", vec![1.5; 5]),
            Row::new("b", Vec::new()).failed(),
        ];
        member("t/swept", Some(value), &rows)
    };
    let races = collection(vec![at(2, 4.0), at(1, 2.0)]);
    let multiple = table(
        r#"{ sweep = { cell = "swept", figure = "wall_s", shown = "inverse" } }"#,
        &races,
    );
    assert_eq!(multiple.heads, ["allocator", "threads = 1", "threads = 2"]);
    assert_eq!(multiple.rows[0], ["libc (system)", "1", "1"]);
    assert!(multiple.rows[1][1].starts_with("2.000 ("), "{multiple:?}");
    assert_eq!(multiple.rows.len(), 2);
    assert!(
        multiple
            .notes
            .contains(&"slow (b) failed in swept, 1".to_owned())
    );
    let overhead = table(
        r#"{ sweep = { cell = "swept", figure = "overhead", shown = "percent-above-one" } }"#,
        &races,
    );
    assert_eq!(overhead.rows[1], ["quick (a)", "50.0", "50.0"]);
    let cells = table(
        r#"{ cells = { cells = ["swept"], figure = "wall_s", shown = "ratio" } }"#,
        &races,
    );
    assert_eq!(cells.heads, ["", "libc (system)", "quick (a)"]);
    assert_eq!(cells.rows[0][0], "swept, 1");
}

#[test]
fn published_tables_follow_theirs_and_are_marked() {
    let text = r#"
[[table]]
title = "x"
makes = { runs = { cell = "one" } }
[[published]]
title = "x"
source = "D, on M"
after = "x"
heads = ["allocator", "mean"]
rows = [["libc", "75.320"]]
"#;
    let rows = [
        Row::new("system", vec![1.0; 5]),
        Row::new("a", vec![1.0; 5]),
    ];
    let races = collection(vec![member("t/one", None, &rows)]);
    let found = evaluate(&[suite(text)], &races);
    let published: Vec<Option<&str>> = found
        .tables
        .iter()
        .map(|table| table.published.as_deref())
        .collect();
    assert_eq!(published, [None, Some("D, on M")]);
    assert_eq!(found.absent[0].name, "lost");
    // If nothing was run, no table is shown, not even a published one.
    assert!(
        evaluate(&[suite(text)], &collection(Vec::new()))
            .tables
            .is_empty()
    );
}
