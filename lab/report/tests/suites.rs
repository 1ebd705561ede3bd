//! Tests of the output for suites, and for experiments and searches without races.

#[path = "races/golden.rs"]
mod golden;
mod races;

use heapdrome_report::{Exporter, Markdown, Source, Terminal, page, plots};
use heapdrome_schema::{
    Absent, Ccdf, CcdfPoint, ClaimResult, Collection, Ending, Holds, Member, MisuseOutcome,
    MisuseRun, Nanoseconds, Purpose, SCHEMA, Saved, Scale, Status, Survival, Table, Trial,
};
use races::usual;
use unicode_width::UnicodeWidthStr;

fn words(all: &[&str]) -> Vec<String> {
    all.iter().map(|word| (*word).to_owned()).collect()
}

fn claim(holds: Holds, text: &str, because: &str) -> ClaimResult {
    ClaimResult {
        claim: text.to_owned(),
        source: "rpmalloc: Result analysis".to_owned(),
        holds,
        because: because.to_owned(),
        target: false,
    }
}

fn tables() -> Vec<Table> {
    vec![
        Table {
            title: "rpmalloc: millions of operations per CPU second".to_owned(),
            published: None,
            heads: words(&["allocator", "threads = 1", "threads = 2"]),
            rows: vec![
                words(&["crt (system)", "51.20", "48.10"]),
                words(&["rpmalloc", "66.60", "-"]),
            ],
            notes: words(&["rpmalloc failed in 16-1000, 2"]),
        },
        Table {
            title: "rpmalloc: millions of operations per CPU second".to_owned(),
            published: Some("a document, on a machine".to_owned()),
            heads: words(&["allocator", "threads = 1"]),
            rows: vec![words(&["crt", "75.320"])],
            notes: Vec::new(),
        },
    ]
}

fn suite() -> Collection {
    let mut result = usual();
    result.entrants[3].status = Status::Timeout;
    Collection {
        schema: SCHEMA,
        heapdrome: "0.1.0".to_owned(),
        started: "2026-11-21T08:00:00Z".to_owned(),
        asked: words(&["suite", "rpmalloc", "--quick"]),
        name: "rpmalloc".to_owned(),
        purpose: Purpose::suite(Scale::Quick),
        machine: result.machine.clone(),
        races: vec![Member {
            cell: "rpmalloc/16-1000".to_owned(),
            workload: "rptest".to_owned(),
            parameters: words(&["loops=40", "threads=2"]),
            swept: Some(2),
            processors: vec![0, 1],
            factor: Some(500.0),
            result,
        }],
        tables: tables(),
        claims: vec![
            claim(
                Holds::CannotBeTested,
                "lockfree-malloc suffers from massive memory overhead.",
                "not available here: lockfree-malloc",
            ),
            claim(
                Holds::NotHeld,
                "rpmalloc is faster than all of a|b.",
                "1 of 2 contradict: rpmalloc over crt in 16-1000 at 2 0.900 (0.880 to 0.920)",
            ),
            claim(
                Holds::Held,
                "The memory overhead is 10% to 15%.",
                "2 of 2 agree: rpmalloc in 16-1000 at 2 1.120 (1.110 to 1.130)",
            ),
            claim(Holds::Undecided, "jemalloc trails by about 15%.", "not run"),
        ],
        absent: vec![Absent {
            name: "lockfree-malloc".to_owned(),
            reason: "in no package registry".to_owned(),
        }],
        remarks: words(&["rpmalloc: what a reader should know"]),
    }
}

fn text(collection: &Collection, width: usize) -> String {
    let terminal = Terminal {
        width,
        colour: false,
    };
    exported(&terminal, collection)
}

fn exported(exporter: &dyn Exporter<Collection>, collection: &Collection) -> String {
    let bytes = exporter.export(collection).expect("it exports");
    String::from_utf8(bytes).expect("UTF-8")
}

/// Returns the times of two cells, and a cell without times.
fn exceeded() -> Vec<Ccdf> {
    let points = |scale: u64| {
        let point = |(time, above): (u64, f64)| CcdfPoint {
            time: Nanoseconds(time * scale),
            above,
        };
        [(100, 0.5), (80_000, 0.001), (1_000_000, 0.0)]
            .map(point)
            .to_vec()
    };
    let ccdf = |cell: &str, points: Vec<CcdfPoint>| Ccdf {
        kind: "read".to_owned(),
        cell: cell.to_owned(),
        count: 1000,
        points,
    };
    vec![
        ccdf("512 MiB x 1", points(1)),
        ccdf("256 MiB x 1", points(3)),
        ccdf("nothing <b>", Vec::new()),
    ]
}

#[test]
fn times_that_were_exceeded_are_drawn_without_a_race() {
    let mut experiment = suite();
    experiment.races.clear();
    experiment.purpose = Purpose::Paging {
        scale: Scale::Quick,
        cells: Vec::new(),
        time: None,
        ccdfs: exceeded(),
    };
    let saved = Saved::Collection(Box::new(experiment));
    let drawn = plots(&saved);
    assert_eq!(drawn.len(), 1);
    assert_eq!(drawn[0].name, "ccdf-read");
    let svg = String::from_utf8(drawn[0].svg()).expect("UTF-8");
    assert!(
        svg.contains("50% over 100 ns, 0.1% over 80.0 µs, 0% over 1.00 ms"),
        "{svg}"
    );
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    let source = Source {
        name: "paging.json".to_owned(),
        saved,
    };
    let page = String::from_utf8(page(&[source]).expect("a page")).expect("UTF-8");
    assert!(page.contains("How often a time was exceeded") && !page.contains("Each race"));
}

#[test]
fn a_drawing_is_called_by_its_title_wherever_its_table_stands() {
    let rates = |title: &str| Table {
        title: title.to_owned(),
        heads: words(&["RAM", "ops/s"]),
        rows: vec![words(&["512M", "10"]), words(&["256M", "5"])],
        ..Table::default()
    };
    let names = |tables: Vec<Table>| -> Vec<String> {
        let mut experiment = suite();
        experiment.races.clear();
        experiment.tables = tables;
        let drawn = plots(&Saved::Collection(Box::new(experiment))).into_iter();
        let names = drawn.map(|plot| plot.name);
        names.filter(|name| name.starts_with("table-")).collect()
    };
    let [reads, writes] = ["Random reads", "Random writes"].map(rates);
    assert_eq!(names(vec![reads.clone()]), ["table-Random-reads"]);
    let both = ["table-Random-writes", "table-Random-reads"];
    assert_eq!(names(vec![writes, reads]), both);
}

#[test]
fn a_page_draws_searches_for_the_least_memory() {
    let mut found = suite();
    found.races.clear();
    found.claims.clear();
    let searches = vec![Survival {
        allocator: "mine <b>".to_owned(),
        smallest_bytes: Some(10 << 20),
        unlimited_s: vec![1.0],
        trials: vec![Trial {
            limit_bytes: 10 << 20,
            wall_s: vec![1.0],
            failure: None,
            limit_hits: 0,
            oom_kills: 0,
        }],
        ..Survival::default()
    }];
    found.purpose = Purpose::Survival {
        scale: Scale::Usual,
        searches,
    };
    let source = Source {
        name: "survive.json".to_owned(),
        saved: Saved::Collection(Box::new(found)),
    };
    let page = String::from_utf8(page(&[source]).expect("a page")).expect("UTF-8");
    for told in [
        ">Limits<",
        "survive-limits-title",
        "without swap: 10.0 MiB, one run<",
    ] {
        assert!(page.contains(told), "'{told}' is missing");
    }
    assert!(!page.contains("mine <b>"));
}

#[test]
fn the_terminal_shows_tables_claims_and_what_is_missing() {
    golden::matches("suite.txt", &text(&suite(), 100));
}

#[test]
fn markdown_of_a_suite() {
    golden::matches("suite.md", &exported(&Markdown, &suite()));
}

#[test]
fn whoever_did_not_race_for_one_reason_is_told_in_one_line() {
    let mut suite = suite();
    let reasons = [("mesh", "no"), ("lost", "gone"), ("hoard", "no")];
    let absent = reasons.map(|(name, reason)| Absent {
        name: name.to_owned(),
        reason: reason.to_owned(),
    });
    suite.absent = absent.to_vec();
    let told = exported(&Markdown, &suite);
    let lines = "**Not raced**:\n\n- mesh, hoard: no\n- lost: gone\n";
    assert!(told.contains(lines), "{told}");
}

/// Misuse in a suite of races is a part of the suite, not the subject of its page.
#[test]
fn the_page_of_a_suite_with_misuse_begins_with_its_sentences() {
    let mut suite = suite();
    let misuse = vec![MisuseRun {
        allocator: "rpmalloc".to_owned(),
        kind: "twice".to_owned(),
        outcome: MisuseOutcome::Unharmed,
        stage: None,
        ending: Ending::Exited(0),
        said: None,
        harm: None,
    }];
    suite.purpose = Purpose::Suite {
        scale: Scale::Quick,
        misuse,
    };
    let source = Source {
        name: "suite.json".to_owned(),
        saved: Saved::Collection(Box::new(suite)),
    };
    let page = String::from_utf8(page(&[source]).expect("a page")).expect("UTF-8");
    let verdict = page.split_once("class=\"verdict\">").expect("a verdict").1;
    assert!(
        verdict.starts_with("Published claims, tested here: 4 in all"),
        "{}",
        &verdict[..80]
    );
}

/// Targets precede claims, keep their order, and have their own words for verdicts.
#[test]
fn targets_are_reached_or_missed() {
    let mut suite = suite();
    for claim in &mut suite.claims[..2] {
        claim.target = true;
    }
    let told = exported(&Markdown, &suite);
    let (targets, sentences) = told.split_once("## Claims").expect("both are there");
    assert!(
        targets.contains("## Targets\n\n2 in all: 1 missed, 1 not tested here."),
        "{told}"
    );
    assert!(
        targets.contains("| here | target | of | because |"),
        "{told}"
    );
    let [first, second] = ["| not tested here | lockfree", "| missed | rpmalloc is"];
    assert!(targets.find(first) < targets.find(second), "{told}");
    assert!(
        sentences.contains("2 in all: 1 held, 1 undecided."),
        "{told}"
    );
    let told = text(&suite, 100);
    assert!(
        told.contains("\nMissed here\n") && told.contains("\nNot tested here\n"),
        "{told}"
    );
    assert!(
        told.contains("\nHeld here\n") && told.contains("\nUndecided here\n"),
        "{told}"
    );
}

#[test]
fn no_line_of_a_suite_is_too_wide() {
    for width in 40..=120 {
        let told = text(&suite(), width);
        let (body, _) = told
            .split_once("\nRun it again\n")
            .expect("the command comes last");
        for line in body.lines() {
            assert!(line.width() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn published_figures_stand_in_tables_of_their_own() {
    let told = exported(&Markdown, &suite());
    let (_, after) = told
        .split_once("as published, not measured here (a document, on a machine)")
        .expect("it is marked");
    assert!(after.contains("75.320") && !after.contains("51.20"));
}
