//! Tests of the default output of a race: its size, its table, its proof, its remarks, the entrants
//! that it does not count, the command that uses the winner, its conclusion, and its colours.

#[path = "races/golden.rs"]
mod golden;
mod races;
#[path = "races/seven.rs"]
mod seven;

use heapdrome_report::{Brief, Conclusion, Exporter, Terminal};
use heapdrome_schema::{Ending, Finding, RaceResult, Role, Status};
use seven::{EVEN, SAME, race, with_noise};
use unicode_width::UnicodeWidthStr;

fn brief(result: &RaceResult, width: usize) -> String {
    let terminal = Terminal {
        width,
        colour: false,
    };
    let name = "latest";
    let bytes = Brief { terminal, name }.export(result).expect("it exports");
    String::from_utf8(bytes).expect("UTF-8")
}

const FAST: [(f64, f64); 3] = [(0.708, 0.024), (0.719, 0.011), (1.143, 0.008)];

fn winner() -> RaceResult {
    let some = [(0.93, 0.035), (0.925, 0.02), (1.31, 0.01)];
    race(&[("mimalloc2", FAST), ("jemalloc", some)], [EVEN; 3])
}

fn setting() -> RaceResult {
    let huge = [(0.72, 0.03), (0.73, 0.02), (1.02, 0.004)];
    race(&[("mimalloc2", FAST), ("system-huge", huge)], [EVEN; 3])
}

/// Returns a race in which one rival crashes, and two rivals are not served for the same reason. It
/// has many remarks.
fn failures() -> RaceResult {
    let mut result = winner();
    let mut rivals = result.entrants.iter_mut();
    let mut find = |name: &str| rivals.find(|row| row.allocator == name).expect("it races");
    let crashed = find("mimalloc3");
    crashed.status = Status::Failed;
    crashed.failure = Some(Finding {
        ending: Ending::Killed(11),
        during: "round 2".to_owned(),
        stderr_tail: "free(): invalid pointer\nAborted\n".to_owned(),
    });
    for name in ["snmalloc", "rpmalloc"] {
        find(name).status = Status::NotServed;
    }
    result.remarks = (1..=9)
        .map(|number| format!("remark {number}: {}", "something to know ".repeat(5)))
        .collect();
    result
}

/// Returns races of the default entrants with various outcomes.
fn situations() -> Vec<(&'static str, RaceResult)> {
    let slower = [(1.2, 0.05), (1.21, 0.05), (1.3, 0.02)];
    let small = [SAME, SAME, (0.8, 0.02)];
    let mut alone = winner();
    for row in &mut alone.entrants {
        if row.role == Role::Rival {
            row.status = Status::NotServed;
        }
    }
    vec![
        ("winner", winner()),
        (
            "none",
            with_noise(race(&[], [(1.0, 0.5), (1.0, 0.4), EVEN]), 0.46),
        ),
        ("stay", race(&[], [EVEN; 3])),
        ("near", race(&[], [SAME, SAME, (1.3, 0.02)])),
        ("failures", failures()),
        ("memory", race(&[("jemalloc", small)], [EVEN; 3])),
        ("setting", setting()),
        ("baseline beats", race(&[], slower)),
        ("alone", alone),
        (
            "absurd",
            with_noise(
                race(&[], [(40.0, 30.0), (2345.0, 1.0), (0.001, 0.0001)]),
                1e9,
            ),
        ),
    ]
}

#[test]
fn every_situation_fits_a_screen_and_ends_with_the_conclusion() {
    for (name, result) in situations() {
        let told = brief(&result, 80);
        assert!(told.lines().count() <= 32, "{name}:\n{told}");
        for line in told.lines() {
            assert!(line.width() <= 80, "{name}: {line}");
        }
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let conclusion = words(&Conclusion::of(&result).to_string());
        assert!(
            words(&told).ends_with(&format!("Conclusion: {conclusion}")),
            "{name}:\n{told}"
        );
    }
}

#[test]
fn a_race_without_proof_says_so() {
    let mut result = winner();
    result.options.unproven = true;
    for row in &mut result.entrants {
        row.proof = None;
    }
    let told = brief(&result, 80);
    assert!(
        told.contains("\nProof: each allocator has no proof."),
        "{told}"
    );
}

#[test]
fn a_narrow_table_has_the_medians_of_the_baseline_alone() {
    let told = brief(&winner(), 50);
    let row = |name: &str| {
        let found = told.lines().find(|line| line.starts_with(name));
        found.unwrap_or_else(|| panic!("no {name}: {told}"))
    };
    assert!(row("system ").contains(" 119 ms "), "{told}");
    assert!(!row("mimalloc2").contains(" ms"), "{told}");
    assert!(
        told.contains("ratio to system (below 1 is better)"),
        "{told}"
    );
}

#[test]
fn a_winner_is_shown_with_what_to_do() {
    golden::matches("brief.txt", &brief(&winner(), 80));
}

#[test]
fn failures_and_remarks_take_what_is_left_of_the_screen() {
    golden::matches("brief-failures.txt", &brief(&failures(), 80));
}

#[test]
fn a_setting_is_used_without_a_library() {
    let told = brief(&setting(), 80);
    let line = "Use it: GLIBC_TUNABLES=glibc.malloc.hugetlb=1 jq . items.json";
    assert!(told.lines().any(|own| own == line), "{told}");
    let mut long = setting();
    long.command.push("x".repeat(80));
    let told = brief(&long, 80);
    let line = "Use it: heapdrome exec -a system-huge -- COMMAND";
    assert!(told.lines().any(|own| own == line), "{told}");
}

/// Without a variable that the race set, an allocator may serve only a few of a program's blocks,
/// so the printed line sets every variable of the race.
#[test]
fn variables_of_the_race_are_set_where_the_winner_is_used() {
    let mut result = setting();
    let given = [
        ("GLIBC_TUNABLES", "glibc.malloc.perturb=1"),
        ("PYTHONMALLOC", "malloc"),
    ];
    let given = given.map(|(name, value)| (name.to_owned(), value.to_owned()));
    result.options.environment = given.into();
    let told = brief(&result, 80);
    // A line with all tunables would be too long, so the line calls `heapdrome exec`, which merges
    // the tunables itself.
    let line = "Use it: GLIBC_TUNABLES=glibc.malloc.perturb=1 PYTHONMALLOC=malloc heapdrome exec -a system-huge -- \
                COMMAND";
    assert!(told.lines().any(|own| own == line), "{told}");
    result.options.environment.remove("GLIBC_TUNABLES");
    result.command = vec!["p".to_owned()];
    let told = brief(&result, 80);
    let line = "Use it: GLIBC_TUNABLES=glibc.malloc.hugetlb=1 PYTHONMALLOC=malloc p";
    assert!(told.lines().any(|own| own == line), "{told}");
}

#[test]
fn whoever_stays_is_told_of_nothing_to_deploy() {
    let told = brief(&race(&[], [EVEN; 3]), 80);
    assert!(told.contains("heapdrome show latest --full"), "{told}");
    assert!(
        !told.contains("--deploy") && !told.contains("Use it"),
        "{told}"
    );
}

#[test]
fn every_width_is_kept_to_and_no_more_than_eighty_is_used() {
    for (name, result) in situations() {
        for width in 40..=120 {
            let told = brief(&result, width);
            for line in told.lines().filter(|line| !line.starts_with("Use it: ")) {
                assert!(line.width() <= width.min(80), "{name}, {width}: {line}");
            }
        }
    }
}

#[test]
fn rows_stand_in_the_order_of_the_ratios_that_they_show() {
    let told = brief(&winner(), 80);
    let rows = told
        .lines()
        .skip_while(|line| !line.starts_with('─'))
        .skip(1);
    let ratios: Vec<f64> = rows
        .take(7)
        .map(|row| {
            let words = row.split_whitespace();
            let mut words = words.filter(|word| *word != "*").skip(2);
            let ratio = words.next().expect("a ratio").trim_start_matches('~');
            ratio.parse().expect("a number")
        })
        .collect();
    assert_eq!(ratios.len(), 7);
    assert!(ratios.is_sorted(), "{told}");
}

#[test]
fn colours_change_nothing_but_colours() {
    for (name, result) in situations() {
        let terminal = Terminal {
            width: 80,
            colour: true,
        };
        let painted = Brief {
            terminal,
            name: "latest",
        };
        let painted = painted.export(&result).expect("it exports");
        let plain = golden::uncoloured(&String::from_utf8(painted).expect("UTF-8"));
        assert_eq!(plain, brief(&result, 80), "{name}");
    }
}
