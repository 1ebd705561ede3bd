//! Tests of the output of a race as full text, interim table, Markdown, CSV and JSON.

#[path = "races/golden.rs"]
mod golden;
mod races;
#[path = "races/watched.rs"]
mod watched;

use heapdrome_report::{Csv, Exporter, Json, Markdown, Terminal, interim};
use heapdrome_schema::{EntrantResult, RaceResult, Role, Status, Verdict};
use races::{bare, compared, empty, rival, usual};
use unicode_width::UnicodeWidthStr;

fn text(exporter: &dyn Exporter, result: &RaceResult) -> String {
    String::from_utf8(exporter.export(result).expect("it exports")).expect("UTF-8")
}

fn terminal(result: &RaceResult, width: usize) -> String {
    text(
        &Terminal {
            width,
            colour: false,
        },
        result,
    )
}

/// Returns a race with extreme names, paths, texts and figures.
fn odd() -> RaceResult {
    let mut result = usual();
    let names = [
        "日本語のアロケータ名前がとても長い",
        "a|b\nc`d",
        "\u{1b}[31mred\u{1b}[0m\u{202e}",
        "",
    ];
    for (place, name) in names.into_iter().enumerate() {
        result.entrants[place + 2].allocator = name.to_owned();
    }
    let long = format!("/very/long/{}/liballocator.so", "folder/".repeat(40));
    result.entrants.push(rival(
        &long,
        compared(Verdict::Slower, f64::NAN, 0.1),
        compared(Verdict::Less, f64::INFINITY, 0.1),
    ));
    let mut nothing = bare("\u{7}", Role::Rival);
    nothing.known_faults = vec!["x".repeat(300)];
    result.entrants.push(nothing);
    result.command = vec![
        "sh".to_owned(),
        "-c".to_owned(),
        "printf '\u{1b}[2J' | cat\n".repeat(9),
    ];
    result
}

/// Returns races of many kinds, to test properties that hold for all of them.
fn all() -> Vec<RaceResult> {
    let mut alone = usual();
    alone.entrants.truncate(1);
    let mut without_figures = usual();
    without_figures.entrants = vec![bare("system", Role::Baseline), bare("x", Role::Rival)];
    let mut without_baseline = usual();
    without_baseline.entrants.remove(0);
    let mut all_failed = usual();
    for entrant in &mut all_failed.entrants {
        entrant.status = Status::NotServed;
    }
    vec![
        usual(),
        empty(),
        odd(),
        alone,
        without_figures,
        without_baseline,
        all_failed,
        measured(),
        closely(),
    ]
}

/// Returns a race of a workload with measurements of the parts of its memory.
fn closely() -> RaceResult {
    let mut result = usual();
    let figures = [
        ("peak_requested_bytes", 80.0),
        ("peak_resident_bytes", 100.0),
    ];
    result.options.figures = figures.map(|(name, _)| name.to_owned()).to_vec();
    for (place, entrant) in result.entrants.iter_mut().enumerate() {
        watched::watch_closely(entrant, 100 - 10 * place as u64);
        for (name, mib) in figures {
            let series = races::series(mib * 1_048_576.0);
            entrant
                .metrics
                .extend(series.map(|series| (name.to_owned(), series)));
        }
    }
    result
}

/// Returns a race with a metric that the command prints.
fn measured() -> RaceResult {
    let mut result = usual();
    for (place, entrant) in result.entrants.iter_mut().enumerate() {
        entrant
            .metrics
            .extend(races::series(1e6 + place as f64).map(|s| ("ops".to_owned(), s)));
    }
    result
}

#[test]
fn the_terminal_shows_the_whole_race() {
    golden::matches("terminal.txt", &terminal(&usual(), 100));
}

#[test]
fn memory_is_told_over_time_and_in_parts() {
    let told = terminal(&closely(), 100);
    let (_, memory) = told.split_once("\nMemory of").expect("the section");
    let (memory, _) = memory.split_once("\nConclusion").expect("the next one");
    golden::matches("memory.txt", &format!("Memory of{memory}"));
}

#[test]
fn parts_that_were_read_far_below_the_peak_are_left_out() {
    let mut result = closely();
    let mut entrants = result.entrants.iter_mut();
    let short = entrants.find(|entrant| entrant.allocator == "jemalloc");
    let short = short.expect("a rival");
    short.peak_tree_bytes = races::series(400.0 * 1_048_576.0);
    let told = terminal(&result, 1000);
    let mut lines = told.lines();
    let remark = lines.find(|line| line.contains("parts of memory are not shown"));
    let remark = remark.unwrap_or_else(|| panic!("{told}"));
    assert!(remark.contains("jemalloc: no reading"), "{remark}");
}

#[test]
fn the_interim_table_is_short() {
    let told = interim(
        &usual(),
        Terminal {
            width: 100,
            colour: false,
        },
    );
    golden::matches("interim.txt", &told);
}

#[test]
fn markdown_says_the_same_in_its_own_form() {
    golden::matches("markdown.md", &text(&Markdown, &usual()));
}

#[test]
fn no_line_of_the_terminal_is_too_wide() {
    for result in all() {
        for width in 40..=140 {
            let told = terminal(&result, width);
            let (table, command) = told
                .split_once("\nRun it again\n")
                .expect("it ends with the command");
            for line in table.lines() {
                assert!(line.width() <= width, "{width}: {line}");
            }
            for line in command.lines().filter(|line| line.width() > width) {
                assert!(
                    line.starts_with("    "),
                    "only a word alone may be wider: {line}"
                );
            }
        }
    }
}

#[test]
fn nothing_reaches_the_terminal_that_it_would_obey() {
    for result in all() {
        let told = terminal(&result, 100) + &text(&Markdown, &result);
        let obeyed = |c: &char| c.is_control() && *c != '\n' || *c == '\u{202e}';
        assert_eq!(told.chars().find(obeyed), None, "{told}");
    }
}

#[test]
fn colours_change_nothing_but_colours() {
    for result in all() {
        let painted = text(
            &Terminal {
                width: 100,
                colour: true,
            },
            &result,
        );
        assert_eq!(golden::uncoloured(&painted), terminal(&result, 100));
    }
    assert!(
        text(
            &Terminal {
                width: 100,
                colour: true
            },
            &usual()
        )
        .contains("\u{1b}[38;5;2m7.4% less")
    );
}

#[test]
fn every_row_of_a_markdown_table_has_the_same_cells() {
    for result in all() {
        let told = text(&Markdown, &result);
        let mut cells = None;
        for line in told.lines() {
            let found = line
                .starts_with('|')
                .then(|| line.replace("\\|", "").matches('|').count());
            assert!(
                cells.is_none() || found.is_none() || cells == found,
                "{line}"
            );
            cells = found;
        }
    }
}

#[test]
fn csv_has_every_sample_once() {
    for result in all() {
        let told = text(&Csv, &result);
        let mut reader = csv::Reader::from_reader(told.as_bytes());
        let rows: Vec<csv::StringRecord> = reader
            .records()
            .collect::<Result<_, _>>()
            .expect("well formed");
        let samples = |entrant: &EntrantResult| {
            let series = [&entrant.wall_s, &entrant.user_s, &entrant.system_s];
            let memory = [
                &entrant.peak_rss_bytes,
                &entrant.peak_tree_bytes,
                &entrant.average_tree_bytes,
            ];
            let fixed = series
                .into_iter()
                .chain(memory)
                .flatten()
                .chain(entrant.metrics.values());
            fixed
                .map(|series| series.samples.len())
                .sum::<usize>()
                .max(1)
        };
        assert_eq!(
            rows.len(),
            result.entrants.iter().map(samples).sum::<usize>()
        );
        assert!(!told.contains("NaN") && !told.contains("inf"), "{told}");
    }
    assert!(text(&Csv, &closely()).contains(",average_tree_bytes,"));
    let first = text(&Csv, &usual());
    let first: Vec<_> = first.lines().take(2).collect();
    assert_eq!(
        first,
        [
            "allocator,role,status,round,metric,value",
            "system,baseline,ok,1,wall_s,74.25"
        ]
    );
}

#[test]
fn json_reads_back_as_the_same_result() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("result.json");
    std::fs::write(&path, text(&Json, &usual())).expect("written");
    assert_eq!(
        heapdrome_schema::read_result(&path).expect("a result"),
        usual()
    );
}
