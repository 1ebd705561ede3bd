//! Races of workloads and sweeps, as their reader sees them.

#[path = "races/golden.rs"]
mod golden;
mod races;
#[path = "races/workload.rs"]
mod workload;

use heapdrome_report::{
    Csv, Exporter, Markdown, Terminal, collection_csv, collection_markdown, collection_text,
};
use unicode_width::UnicodeWidthStr;

fn plain(width: usize) -> Terminal {
    Terminal {
        width,
        colour: false,
    }
}

fn text(exporter: &dyn Exporter) -> String {
    let bytes = exporter.export(&workload::race()).expect("it exports");
    String::from_utf8(bytes).expect("UTF-8")
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
    let told = collection_text(&workload::sweep(), plain(100));
    golden::matches("sweep.txt", &told);
}

#[test]
fn a_sweep_in_markdown_and_csv_has_every_race() {
    let collection = workload::sweep();
    let markdown = collection_markdown(&collection);
    let csv = collection_csv(&collection).expect("it exports");
    let csv = String::from_utf8(csv).expect("UTF-8");
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
fn no_line_is_too_wide() {
    for width in 40..=140 {
        let bytes = plain(width).export(&workload::race()).expect("it exports");
        let race = String::from_utf8(bytes).expect("UTF-8");
        for told in [race, collection_text(&workload::sweep(), plain(width))] {
            let (tables, _) = told
                .split_once("\nAgain\n")
                .expect("the command at the end");
            for line in tables.lines() {
                assert!(line.width() <= width, "{width}: {line}");
            }
        }
    }
}
