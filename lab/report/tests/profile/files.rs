//! Tests of the page, the counters for Perfetto, and the CSV of a profile.

use std::collections::HashSet;

use heapdrome_profile::Profile;
use heapdrome_report::{Csv, Exporter, Perfetto, profile_page};
use scraper::{Html, Selector};
use serde_json::Value;

use crate::traces::{HOSTILE, exchange, leaking, odd, several};

fn page(profile: &Profile) -> String {
    String::from_utf8(profile_page(profile).expect("a page")).expect("UTF-8")
}

fn count(document: &Html, selector: &str) -> usize {
    let selector = Selector::parse(selector).expect("a selector");
    document.select(&selector).count()
}

#[test]
fn every_page_is_well_formed_and_asks_for_nothing() {
    let mut profiles = odd();
    profiles.extend([
        exchange().profile(),
        several("cc").profile(),
        several(HOSTILE).profile(),
        leaking(HOSTILE, HOSTILE, 0).profile(),
    ]);
    for profile in &profiles {
        let text = page(profile);
        let document = Html::parse_document(&text);
        assert!(document.errors.is_empty(), "{:?}", document.errors);
        assert!(text.contains("default-src 'none'"));
        let scripts = usize::from(profile.has_stacks());
        assert_eq!(text.contains("script-src 'none'"), scripts == 0);
        assert_eq!(count(&document, "script"), scripts);
        assert_eq!(count(&document, "script[src], img, link, iframe"), 0);
        assert!(!text.contains('\u{1b}') && !text.contains("NaN"));
        let ids = Selector::parse("[id]").expect("a selector");
        let mut names = HashSet::new();
        for element in document.select(&ids) {
            assert!(names.insert(element.attr("id")), "{:?}", element.attr("id"));
        }
    }
}

#[test]
fn a_page_has_pictures_and_tables() {
    let document = Html::parse_document(&page(&exchange().profile()));
    assert_eq!(count(&document, "figure svg"), 6);
    assert!(count(&document, "svg title") > 6);
    assert_eq!(count(&document, "table"), 5);
    let document = Html::parse_document(&page(&several("cc").profile()));
    assert_eq!(count(&document, "figure svg"), 9);
    assert_eq!(count(&document, "table"), 6);
}

#[test]
fn a_page_of_stacks_has_a_flame_graph() {
    let document = Html::parse_document(&page(&leaking("./app", "/nowhere/app", 0).profile()));
    // The graph has four parts: all blocks, their common caller, and the two stacks with live
    // blocks at the peak. The stack of temporary blocks has none.
    assert_eq!(count(&document, "svg g.call"), 4);
    let titles = Selector::parse("svg g.call title").expect("a selector");
    let titles: Vec<String> = document
        .select(&titles)
        .map(|one| one.text().collect())
        .collect();
    assert!(
        titles.contains(&"app+0x1234: 977 KiB, 91%".to_owned()),
        "{titles:?}"
    );
    assert!(
        titles.contains(&"app+0x99: 1.05 MiB, 100%".to_owned()),
        "{titles:?}"
    );
    let none = Html::parse_document(&page(&exchange().profile()));
    assert_eq!(count(&none, "svg g.call"), 0);
}

#[test]
fn stacks_are_lines_of_the_csv() {
    let text = Csv
        .export(&leaking("./app", "/nowhere/app", 0).profile())
        .expect("CSV");
    let text = String::from_utf8(text).expect("UTF-8");
    for line in [
        "all,,stack,,app+0x99;app+0x1234,peak_bytes,1000000",
        "all,,stack,,app+0x99;app+0x2345,temporary_blocks,2000",
        "all,,stack,,app+0x99;app+0x3456,left_bytes,96000",
        "0,/bin/app,growth,,app+0x99;app+0x3456,bytes_per_second,48000",
    ] {
        let line = line.replace(",,app", ",app");
        assert!(text.lines().any(|one| one == line), "{line}");
    }
}

#[test]
fn counters_hold_the_peaks_of_each_process() {
    let profile = several(HOSTILE).profile();
    let text = Perfetto.export(&profile).expect("JSON");
    let whole: Value = serde_json::from_slice(&text).expect("it is JSON");
    let events = whole["traceEvents"].as_array().expect("events");
    for process in &profile.processes {
        let own = |event: &&Value| event["pid"] == process.number + 1;
        let most = |name: &str, unit: &str| {
            let named = events
                .iter()
                .filter(own)
                .filter(|event| event["name"] == name);
            named.filter_map(|event| event["args"][unit].as_u64()).max()
        };
        assert_eq!(most("live", "bytes"), Some(process.peak.live.bytes));
        assert_eq!(most("live blocks", "blocks"), Some(process.most_blocks));
        assert_eq!(most("resident", "bytes"), process.most_resident);
        let names = events.iter().filter(own).filter(|event| event["ph"] == "M");
        assert_eq!(names.count(), 1);
    }
    let mut times = events.iter().filter(|event| event["ph"] == "C");
    assert!(times.all(|event| event["ts"].as_f64().is_some_and(|time| time >= 0.0)));
}

#[test]
fn one_process_has_no_sum_beside_it() {
    let text = Perfetto.export(&exchange().profile()).expect("JSON");
    let whole: Value = serde_json::from_slice(&text).expect("it is JSON");
    let events = whole["traceEvents"].as_array().expect("events");
    assert!(events.iter().all(|event| event["pid"] == 1));
}

#[test]
fn every_figure_is_a_line_of_the_csv() {
    let profile = several("cc").profile();
    let text = Csv.export(&profile).expect("CSV");
    let mut reader = csv::Reader::from_reader(&text[..]);
    let rows: Vec<Vec<String>> = reader
        .records()
        .map(|row| row.expect("a row").iter().map(str::to_owned).collect())
        .collect();
    let value = |key: [&str; 4]| {
        let [process, table, at, name] = key;
        let found = rows
            .iter()
            .find(|row| [&row[0], &row[2], &row[3], &row[4]] == [process, table, at, name]);
        found.map(|row| row[5].clone())
    };
    let expect = |key, expected: &str| assert_eq!(value(key).as_deref(), Some(expected), "{key:?}");
    expect(["all", "summary", "", "made_blocks"], "6");
    expect(["2", "summary", "", "peak_live_bytes"], "4024");
    expect(["1", "summary", "", "is_whole"], "0");
    expect(["0", "size", "1024", "blocks"], "1");
    expect(["all", "function", "free", "calls"], "3");
    expect(["all", "size_classes", "jemalloc", "made_bytes"], "7264");
    let live = rows
        .iter()
        .filter(|row| row[0] == "2" && row[4] == "live_bytes_most");
    let most = live.filter_map(|row| row[5].parse::<u64>().ok()).max();
    assert_eq!(most, Some(4024));
}
