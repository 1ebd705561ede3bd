//! Tests of the notes and remarks of a race as full text, as Markdown and on the page, and of the
//! marks of outliers in a plot.

mod races;

use heapdrome_report::{Exporter, Markdown, Source, Terminal, page, plots};
use heapdrome_schema::{EntrantResult, RaceResult, Saved};
use scraper::{Html, Selector};

/// Returns the race as text, as Markdown, and as the list entries of its page. Lines are so wide
/// that no sentence is wrapped.
fn forms(result: &RaceResult) -> [String; 3] {
    let terminal = Terminal {
        width: 1000,
        colour: false,
    };
    let exported = |exporter: &dyn Exporter| {
        let bytes = exporter.export(result).expect("it exports");
        let text = String::from_utf8(bytes).expect("UTF-8");
        text.replace('\\', "").replace("&lt;", "<")
    };
    let source = Source {
        name: "race.json".to_owned(),
        saved: Saved::Race(Box::new(result.clone())),
    };
    let page = String::from_utf8(page(&[source]).expect("a page")).expect("UTF-8");
    let entries = Selector::parse("li").expect("a selector");
    let shown: Vec<String> = Html::parse_document(&page)
        .select(&entries)
        .map(|entry| entry.text().collect())
        .collect();
    [exported(&terminal), exported(&Markdown), shown.join("\n")]
}

fn entrant<'a>(result: &'a mut RaceResult, name: &str) -> &'a mut EntrantResult {
    let mut entrants = result.entrants.iter_mut();
    let found = entrants.find(|entrant| entrant.allocator == name);
    found.expect("it races")
}

#[test]
fn a_note_that_differs_by_its_figure_alone_is_one_line_in_every_form() {
    let mut result = races::usual();
    for (name, share) in [("system", 44), ("mimalloc3", 37), ("jemalloc", 44)] {
        let proof = entrant(&mut result, name).proof.as_mut();
        proof.expect("a proof").warnings = vec![format!(
            "CPython ({share}% of the processor time) serves itself"
        )];
    }
    let one =
        "CPython (mimalloc3 37%; jemalloc and system 44% of the processor time) serves itself";
    for text in forms(&result) {
        assert_eq!(text.matches(one).count(), 1, "{text}");
        assert_eq!(text.matches("serves itself").count(), 1, "{text}");
    }
}

#[test]
fn times_far_from_the_rest_are_marked_whether_of_the_wall_or_of_the_processor() {
    let mut result = races::usual();
    let jemalloc = entrant(&mut result, "jemalloc");
    jemalloc.user_s.as_mut().expect("a series").outliers = vec![2];
    let mimalloc = entrant(&mut result, "mimalloc3");
    // In the round of mimalloc3's outlier, the sum of user and system time lies within the range of
    // the other rounds, so the sum is no outlier.
    mimalloc.system_s.as_mut().expect("a series").outliers = vec![1];
    let wall = "outliers in wall time: 1 of 3, farthest 94.7 s (kept;";
    let cpu = "outliers in processor time: 1 of 3, farthest 127 s (kept;";
    for text in forms(&result) {
        assert_eq!(text.matches(wall).count(), 1, "{text}");
        assert_eq!(text.matches(cpu).count(), 1, "{text}");
        assert_eq!(text.matches("outliers in").count(), 2, "{text}");
    }
    let plots = plots(&Saved::Race(Box::new(result)));
    let samples = plots.iter().find(|plot| plot.name == "samples-cpu");
    let drawn = samples.expect("a plot of processor times").svg();
    let drawn = String::from_utf8(drawn).expect("UTF-8");
    let ring = "a3 3 0 1 0 6 0a3 3 0 1 0 -6 0Z";
    assert_eq!(drawn.matches(ring).count(), 1, "{drawn}");
}

#[test]
fn a_probability_is_never_told_as_none() {
    let mut result = races::usual();
    result.remarks =
        vec!["the baseline drifted by +1.00% per round (p = 0.000); and so on".to_owned()];
    for text in forms(&result) {
        assert_eq!(
            text.matches("per round (p < 0.001); and so on").count(),
            1,
            "{text}"
        );
        assert!(!text.contains("0.000)"), "{text}");
    }
}

#[test]
fn the_numbers_that_a_row_leaves_out_are_explained_in_the_terminal_and_in_markdown() {
    let mut result = races::usual();
    let fault = |number: usize| format!("fault {number}");
    entrant(&mut result, "mimalloc3").known_faults = (1..=7).map(fault).collect();
    let odd = (1..=7).step_by(2).map(fault).collect();
    entrant(&mut result, "jemalloc").known_faults = odd;
    for text in &forms(&result)[..2] {
        let explained = text.lines().filter(|line| line.contains("+ "));
        let explained: Vec<&str> = explained.filter(|line| line.contains(": notes ")).collect();
        assert_eq!(explained.len(), 1, "{text}");
        assert!(explained[0].contains(" and "), "{explained:?}");
    }
    // Consecutive numbers fit into the row.
    entrant(&mut result, "jemalloc").known_faults.clear();
    for text in &forms(&result)[..2] {
        assert!(!text.contains(": notes "), "{text}");
        assert!(text.contains("-7"), "{text}");
    }
}
