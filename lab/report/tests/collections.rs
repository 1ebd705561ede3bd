//! Tests of the output for races of workloads, and for sweeps.

#[path = "races/golden.rs"]
mod golden;
mod races;
#[path = "races/watched.rs"]
mod watched;
#[path = "races/workload.rs"]
mod workload;

use heapdrome_report::{Csv, Exporter, Markdown, Terminal};
use heapdrome_schema::{Collection, Purpose, SweepResult, SweptParameter, Verdict};
use unicode_width::UnicodeWidthStr;

fn plain(width: usize) -> Terminal {
    Terminal {
        width,
        colour: false,
    }
}

fn exported<R>(exporter: &dyn Exporter<R>, result: &R) -> String {
    let bytes = exporter.export(result).expect("it exports");
    String::from_utf8(bytes).expect("UTF-8")
}

fn text(exporter: &dyn Exporter) -> String {
    exported(exporter, &workload::race())
}

#[test]
fn a_workload_has_its_own_figures_in_the_table() {
    golden::matches("workload.txt", &text(&plain(100)));
    let markdown = text(&Markdown);
    assert!(
        markdown.contains("| ops per CPU s | versus system | over- head |"),
        "{markdown}"
    );
    assert!(markdown.contains("#### Figures of the workload (medians)"));
    assert!(text(&Csv).contains("operations_per_cpu_s"));
}

#[test]
fn a_sweep_ends_with_a_table_for_each_figure() {
    let told = exported(&plain(100), &workload::sweep());
    golden::matches("sweep.txt", &told);
}

#[test]
fn a_sweep_in_markdown_and_csv_has_every_race() {
    let collection = workload::sweep();
    let markdown = exported(&Markdown, &collection);
    let csv = exported(&Csv, &collection);
    for cell in ["threads=1", "threads=2", "threads=8"] {
        assert!(
            markdown.contains(&format!("### {cell}, over 3 rounds")),
            "{cell}"
        );
        assert!(csv.contains(&format!("\n{cell},")), "{cell}");
    }
    let columns = csv.lines().map(|line| line.matches(',').count());
    assert!(columns.into_iter().all(|commas| commas == 7), "{csv}");
}

#[test]
fn each_race_of_a_sweep_has_its_intervals_and_its_memory() {
    let mut sweep = workload::sweep();
    let watched = sweep.races[1].result.entrants.iter_mut();
    watched.for_each(|entrant| watched::watch_closely(entrant, 40));
    let told = exported(&plain(100), &sweep);
    let races: Vec<&str> = told.split(", after 3 rounds").skip(1).collect();
    assert_eq!(races.len(), 3, "{told}");
    for (place, race) in races.iter().enumerate() {
        let words: Vec<&str> = race.split_whitespace().collect();
        let words = words.join(" ");
        let has_bars = words.contains("Wall time relative to system (log scale)");
        assert!(has_bars && race.contains('●'), "{race}");
        for part in [
            "Memory of the process tree (untimed runs)",
            "resident memory is overstated: up to",
            "resident memory excludes swapped pages: up to",
        ] {
            assert_eq!(words.contains(part), place == 1, "{part}\n{race}");
        }
    }
}

/// The remark on missing processors depends on the swept parameters, not on the name of a cell.
#[test]
fn threads_beyond_the_processors_are_told() {
    let mut sweep = workload::sweep();
    let told = "threads=8: all; the machine has fewer processors than threads";
    for (name, is_told) in [("threads", true), ("jobs", false)] {
        sweep.purpose = Purpose::Sweep(Some(SweepResult {
            parameters: vec![SweptParameter {
                name: name.to_owned(),
                values: ["1", "2", "8"].map(str::to_owned).to_vec(),
            }],
            along: name.to_owned(),
            work: "the same".to_owned(),
            share: 0.25,
            paired: true,
            curves: Vec::new(),
        }));
        let markdown = exported(&Markdown, &sweep);
        assert_eq!(markdown.contains(told), is_told, "{markdown}");
        assert!(markdown.contains("- threads=8: all"), "{markdown}");
    }
}

/// Returns the sentences that a sweep prints on all its races.
fn over(collection: &Collection) -> String {
    let markdown = exported(&Markdown, collection);
    let mut lines = markdown.lines();
    let line = lines.find_map(|line| line.strip_prefix("**Over the sweep**: "));
    line.expect("a sentence over the sweep").to_owned()
}

/// Sets the wall time of `name` at the value with index `place`, as a ratio to the baseline's. The
/// interval extends by 0.02 in both directions.
fn at(collection: &mut Collection, place: usize, name: &str, ratio: f64) {
    let verdict = match ratio {
        less if less < 0.98 => Verdict::Faster,
        more if more > 1.02 => Verdict::Slower,
        _ => Verdict::Undecided,
    };
    let rows = collection.races[place].result.entrants.iter_mut();
    for row in rows.filter(|row| row.allocator == name) {
        let compared = races::compared(verdict, ratio, 0.02);
        row.versus_baseline.insert("wall_s".to_owned(), compared);
    }
}

#[test]
fn a_sweep_is_summed_up_by_who_leads_where() {
    let mut sweep = workload::sweep();
    at(&mut sweep, 0, "mimalloc3", 0.5);
    at(&mut sweep, 1, "mimalloc3", 0.8);
    at(&mut sweep, 2, "jemalloc", 0.7);
    let told = over(&sweep);
    for sentence in [
        "mimalloc3 is the fastest at 2 of 3 values of threads (1 and 2); jemalloc at 1 (8).",
        "Compared with system, the wall time of mimalloc3 is between 20% less (18 to 22) at 2 and 50% less (48 to 52) at 1.",
        "The lead passes from mimalloc3 to jemalloc between 2 and 8.",
        "broken and hoard do not count everywhere",
        "at most 5.0% risk",
    ] {
        assert!(told.contains(sentence), "{sentence}\n{told}");
    }
    at(&mut sweep, 2, "jemalloc", 0.935);
    at(&mut sweep, 2, "mimalloc3", 0.7);
    let told = over(&sweep);
    let all = "mimalloc3 is the fastest at all 3 values of threads (1, 2 and 8).";
    assert!(told.starts_with(all) && !told.contains("passes"), "{told}");
}

#[test]
fn a_sweep_says_what_its_intervals_leave_open() {
    let mut sweep = workload::sweep();
    let told = over(&sweep);
    let open = "At none of 3 values of threads was one allocator alone shown to be the fastest. At 1, 2 and \
                8 the fastest is undecided: jemalloc or mimalloc3.";
    assert!(told.starts_with(open), "{told}");
    for name in ["hardened_malloc", "rpmalloc", "jemalloc", "mimalloc3"] {
        at(&mut sweep, 0, name, 1.5);
        at(&mut sweep, 1, name, 1.0);
        let rows = sweep.races[2].result.entrants.iter_mut();
        rows.for_each(|row| row.versus_baseline.clear());
    }
    let told = over(&sweep);
    for sentence in [
        "system is the fastest at 1 of 3 values of threads (1).",
        "At 2 the fastest is undecided: ",
        "At 8 there is no verdict: no rival has an interval.",
    ] {
        assert!(told.contains(sentence), "{sentence}\n{told}");
    }
    assert!(!told.contains("Compared with system"), "{told}");
    sweep.races.clear();
    assert_eq!(over(&sweep), "No race is complete, so there is no verdict.");
}

#[test]
fn no_line_is_too_wide() {
    for width in 40..=140 {
        let bytes = plain(width).export(&workload::race()).expect("it exports");
        let race = String::from_utf8(bytes).expect("UTF-8");
        for told in [race, exported(&plain(width), &workload::sweep())] {
            let (tables, _) = told
                .split_once("\nRun it again\n")
                .expect("the command at the end");
            for line in tables.lines() {
                assert!(line.width() <= width, "{width}: {line}");
            }
        }
    }
}
