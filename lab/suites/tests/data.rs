//! Tests the data files of the built-in suites, their fidelity to the documents, and the races that
//! they select.

use heapdrome_schema::Scale;
use heapdrome_suites::{HoldsFor, Makes, RatioTest, Selection, Shown, Suite, Test, find, list};

fn suite(name: &str) -> &'static Suite {
    let found = list().iter().find(|suite| suite.name == name);
    found.expect("a suite of this name")
}

fn published(name: &str, title: &str, row: &str) -> Vec<String> {
    let tables = &suite(name).published;
    let table = tables.iter().find(|table| table.title == title);
    let rows = &table.expect("a table of this title").rows;
    let found = rows.iter().find(|cells| cells[0] == row);
    found.expect("a row of this name")[1..].to_vec()
}

#[test]
fn every_file_is_a_suite() {
    let names: Vec<&str> = list().iter().map(|suite| suite.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "alloc-perf-test",
            "elfmalloc",
            "rpmalloc",
            "preload",
            "real",
            "traces",
            "own-allocators"
        ]
    );
    // `all` omits the suite of traces, and that of heapdrome's own allocators, which takes longer
    // than all others together.
    let all = find("all").expect("all");
    assert!(all.len() == 5 && all.iter().all(|suite| suite.name != "own-allocators"));
    assert_eq!(find("own-allocators").expect("one").len(), 1);
    let unknown = find("rpmaloc").expect_err("no such suite").to_string();
    assert!(unknown.contains("did you mean rpmalloc?"), "{unknown}");
}

/// Every allocator of the registry must be a rival in the suite `own-allocators`. Exceptions are
/// unavailable allocators, heapdrome's own, settings of another allocator, and those that do not
/// conform to the contract of malloc. A slow rival may race in only some of the cells, but in at
/// least ten.
#[test]
fn the_own_allocators_meet_every_working_allocator_of_the_registry() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../registry/allocators");
    let suite = suite("own-allocators");
    let mut missing = Vec::new();
    let mut met = 0;
    for file in std::fs::read_dir(folder).expect("the registry") {
        let path = file.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("a text");
        let entry: toml::Table = text.parse().expect("TOML");
        let conforming = entry.get("conforming") != Some(&false.into());
        let own = entry.contains_key("carried");
        let is_setting = entry.contains_key("base");
        if entry.contains_key("unavailable") || own || is_setting || !conforming {
            continue;
        }
        let name = entry["name"].as_str();
        let races = |one: &&heapdrome_suites::Entrant| one.allocator.as_deref() == name;
        match suite.entrants.iter().find(races) {
            Some(one) if !one.added && (one.cells.is_empty() || one.cells.len() >= 10) => met += 1,
            _ => missing.push(path),
        }
    }
    assert!(missing.is_empty() && met > 20, "{met}, not {missing:?}");
}

/// The targets refer to the thread counts in this test. A sweep that lacked some of them would make
/// the targets easier to reach.
#[test]
fn the_own_allocators_race_at_up_to_eight_threads() {
    let suite = suite("own-allocators");
    let threads = |cell: &str| -> Vec<Option<u64>> {
        let races = suite.races(&selection(Scale::Usual, 2));
        let full = format!("own-allocators/{cell}");
        let own = races.iter().filter(|race| race.cell == full);
        own.map(|race| race.swept).collect()
    };
    let to_eight = [1, 2, 4, 8].map(Some);
    for cell in [
        "threadtest-small",
        "threadtest-medium",
        "shbench-small",
        "shbench-medium",
        "rptest-16-1000",
        "rptest-16-8000",
        "rptest-16-16000",
        "rptest-128-64000",
        "rptest-512-160000",
        "malloctest",
    ] {
        assert_eq!(threads(cell), to_eight, "{cell}");
    }
    assert_eq!(threads("prodcons"), [2, 4, 8].map(Some));
    let selection = selection(Scale::Quick, 2);
    let quick = suite.races(&selection);
    assert!(
        quick
            .iter()
            .filter(|race| race.sweeps_threads)
            .all(|race| race.swept.is_some_and(|threads| threads <= 2))
    );
    assert!(quick.iter().all(|race| race.allocators.len() <= 12));
}

/// The cell `long-lived` needs a minute for its periods, so it races in the published form only.
#[test]
fn a_form_that_is_too_long_is_left_to_the_published_size() {
    let suite = suite("own-allocators");
    let cells = |scale| -> Vec<String> {
        let races = suite.races(&selection(scale, 2));
        races.into_iter().map(|race| race.cell).collect()
    };
    let long_lived = "own-allocators/long-lived".to_owned();
    assert!(!cells(Scale::Quick).contains(&long_lived));
    assert!(!cells(Scale::Usual).contains(&long_lived));
    assert!(cells(Scale::Published).contains(&long_lived));
}

#[test]
fn published_figures_are_the_documents() {
    let apt = |title, row| published("alloc-perf-test", title, row);
    assert_eq!(
        apt("n = 8", "Chimera (new default)"),
        ["4.326", "0.072", "18.813", "5.873", "4.209", "4.436", "10"]
    );
    assert_eq!(
        apt("n = 8", "Chimera (oldmalloc)"),
        [
            "89.478", "0.406", "214.957", "226.522", "88.767", "90.021", "10"
        ]
    );
    assert_eq!(
        apt("n = 4", "Arch (libsnmallocshim-checks)"),
        ["1.883", "0.050", "5.483", "1.062", "1.786", "1.945", "10"]
    );
    assert_eq!(
        apt("n = 4", "Chimera (old default / no release)"),
        ["5.626", "0.401", "12.570", "2.867", "4.923", "6.077", "10"]
    );
    let degradation = "degradation";
    assert_eq!(apt(degradation, "Chimera (oldmalloc)"), ["3.08846"]);
    assert_eq!(apt(degradation, "Arch (glibc)"), ["0.88617"]);
    let resident = "largest resident memory";
    assert_eq!(
        apt(resident, "Chimera (libsnmallocshim-checks)"),
        ["4.02", "8.03"]
    );
    assert_eq!(apt(resident, "Arch (glibc)"), ["3.09", "6.15"]);
    let preload = |title, row| published("preload", title, row);
    assert_eq!(
        preload("part A: wall and user time", "mimalloc"),
        ["69.548", "451.682"]
    );
    assert_eq!(
        preload("part B: wall time", "default"),
        ["230.172", "1.246"]
    );
    assert_eq!(
        preload("part B: memory", "bumpmalloc"),
        ["3909529.333", "21.333"]
    );
}

/// The published means must imply the published degradation, which shows that neither contains a
/// typing error.
#[test]
fn published_times_and_degradations_agree() {
    let figure = |title: &str, row: &str| -> f64 {
        published("alloc-perf-test", title, row)[0]
            .parse()
            .expect("a number")
    };
    for row in &suite("alloc-perf-test").published[0].rows {
        let name = &row[0];
        let computed = figure("n = 8", name) / figure("n = 4", name) / 1.98382;
        let printed = figure("degradation", name);
        assert!(
            (computed - printed).abs() < 6e-5,
            "{name}: {computed} {printed}"
        );
    }
}

#[test]
fn every_document_has_its_sentences() {
    for (name, least) in [
        ("alloc-perf-test", 15),
        ("elfmalloc", 20),
        ("rpmalloc", 9),
        ("preload", 14),
    ] {
        assert!(suite(name).claims.len() >= least, "{name}");
    }
    for suite in list() {
        let own = |claim: &heapdrome_suites::Claim| !matches!(claim.test, Test::Untestable { .. });
        let untestable = suite.claims.iter().filter(|claim| !own(claim)).count();
        assert!(untestable <= 1, "{}: {untestable}", suite.name);
        assert_eq!(suite.document.is_none(), suite.claims.is_empty());
    }
}

/// In the document of the suite `rpmalloc`, overhead refers to mapped memory. Every cell must have
/// a table of mapped memory, in addition to the table of resident memory.
#[test]
fn the_rpmalloc_suite_shows_overhead_as_mapped_and_as_resident() {
    let suite = suite("rpmalloc");
    let shows = |cell: &str, wanted: &str| {
        suite.tables.iter().any(|table| match &table.makes {
            Makes::Sweep {
                cell: own,
                figure,
                shown,
            } => own == cell && figure == wanted && *shown == Shown::PercentAboveOne,
            _ => false,
        })
    };
    for cell in &suite.cells {
        for figure in ["overhead_mapped", "overhead"] {
            assert!(shows(&cell.name, figure), "{} {figure}", cell.name);
        }
    }
}

/// The claim's text must state whether the claim is tested for most comparisons, for some
/// comparisons, or only for the absence of a contradiction.
#[test]
fn what_is_tested_for_most_or_some_says_so() {
    for suite in list() {
        for claim in suite.claims.iter().chain(&suite.targets) {
            let scope = match &claim.test {
                Test::Ratio(RatioTest { scope, .. })
                | Test::Mean { scope, .. }
                | Test::Figure { scope, .. }
                | Test::Share { scope, .. } => scope,
                _ => continue,
            };
            let words: &[&str] = match scope.holds_for {
                HoldsFor::All => continue,
                HoldsFor::Most => &["most", "more than half"],
                HoldsFor::Some => &["some", "few"],
                HoldsFor::Uncontradicted => &["no interval lies", "is a rival shown to"],
            };
            let said = words.iter().any(|word| claim.claim.contains(word));
            assert!(said, "{}: {}", suite.name, claim.claim);
        }
    }
}

fn selection(scale: Scale, processors: usize) -> Selection<'static> {
    Selection {
        scale,
        processors,
        only: &[],
        allocators: &[],
    }
}

#[test]
fn published_settings_are_the_documents() {
    let races = suite("rpmalloc").races(&selection(Scale::Published, 8));
    let race = races
        .iter()
        .find(|race| race.cell == "rpmalloc/512-160000" && race.swept == Some(8))
        .expect("the last setting");
    let mut words = race.words.clone();
    words.sort();
    let mut expected = [
        "threads=8",
        "mode=0",
        "distribution=2",
        "cross=2",
        "loops=20000",
        "blocks=20000",
        "ops=2000",
        "min=512",
        "max=160000",
    ];
    expected.sort_unstable();
    assert_eq!(words, expected);
    assert_eq!(race.factor, Some(1.0));
    let races = suite("preload").races(&selection(Scale::Published, 2));
    let malloctest = races.iter().find(|race| race.workload == "malloctest");
    let words = &malloctest.expect("part B").words;
    for word in [
        "threads=1",
        "repeats=500",
        "iterations=1000000",
        "lower=10",
        "upper=1000",
    ] {
        assert!(words.iter().any(|own| own == word), "{word}");
    }
}

#[test]
fn threads_that_the_machine_has_not_are_left_out_and_the_factor_is_told() {
    let values = |processors, scale| -> Vec<Option<u64>> {
        let races = suite("elfmalloc").races(&selection(scale, processors));
        let own = races
            .iter()
            .filter(|race| race.cell == "elfmalloc/threadtest-small");
        own.map(|race| race.swept).collect()
    };
    let some = |values: &[u64]| values.iter().copied().map(Some).collect::<Vec<_>>();
    assert_eq!(values(2, Scale::Usual), some(&[1, 2, 4, 8]));
    assert_eq!(values(24, Scale::Usual), some(&[1, 2, 4, 8, 16, 24]));
    assert_eq!(values(32, Scale::Quick), some(&[1, 2]));
    let races = suite("alloc-perf-test").races(&selection(Scale::Usual, 2));
    let factor = races[0].factor.expect("counts are known");
    assert!((factor - 25.0).abs() < 1e-9, "size 20 of 100, squared");
    assert_eq!((races.len(), races[0].rounds), (2, 10));
}

#[test]
fn cells_and_allocators_can_be_picked() {
    let only = ["16-1000=2".to_owned()];
    let allocators = ["system".to_owned(), "jemalloc".to_owned()];
    let picked = Selection {
        only: &only,
        allocators: &allocators,
        ..selection(Scale::Usual, 2)
    };
    let races = suite("rpmalloc").races(&picked);
    assert_eq!(races.len(), 1);
    assert_eq!((races[0].swept, races[0].allocators.len()), (Some(2), 1));
    let suites = find("rpmalloc").expect("a suite");
    assert!(Suite::check_only(&suites, &only).is_ok());
    let wrong = ["17-1000".to_owned()];
    let told = Suite::check_only(&suites, &wrong).expect_err("no such cell");
    assert!(told.to_string().contains("rpmalloc/16-1000"), "{told}");
}

#[test]
fn files_that_contradict_themselves_are_refused() {
    let right = include_str!("../suites/preload.toml");
    assert!(Suite::read(right).is_ok());
    for (old, new, expected) in [
        (
            "baseline = \"system\"",
            "base = \"system\"",
            "unknown field",
        ),
        (
            "cell = \"build\", figure",
            "cell = \"built\", figure",
            "no cell built",
        ),
        (
            "of = [\"rpmalloc\"]",
            "of = [\"rpmaloc\"]",
            "no entrant rpmaloc",
        ),
        ("rounds = 5", "rounds = 0", "without rounds"),
        ("name = \"mimalloc3\"", "name = \"jemalloc\"", "twice"),
        (
            "[\"default\", \"75.320\", \"-\"]",
            "[\"default\", \"75.320\"]",
            "3 heads",
        ),
    ] {
        let wrong = right.replacen(old, new, 1);
        assert_ne!(wrong, right, "{old}");
        let told = Suite::read(&wrong).expect_err(new).to_string();
        assert!(told.contains(expected), "{told}");
        assert!(!told.contains('\n'), "{told}");
    }
}
