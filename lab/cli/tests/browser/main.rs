//! Tests of the pages of results and profiles in a real browser: drawing, clicks, keys, names for
//! screen readers, printing, saved data, and the absence of network requests. Without a browser
//! these tests print a line and are skipped, unless `HEAPDROME_REQUIRE_BROWSER` is set, as in the
//! checks before a merge.

mod chromium;
mod collections;
mod printed;
mod profiles;
mod site;

use chromium::{Chromium, Key};
use serde_json::{Value, json};
use site::{Site, kept, words};

/// Screen sizes of a desktop and of a small telephone.
const SCREENS: [[u32; 2]; 2] = [[1280, 900], [360, 800]];

/// CSS selector of the only race in a page.
const ALONE: &str = "section[data-race]";

/// Returns an expression for all elements that `selector` finds in the race at `race`.
fn all(race: &str, selector: &str) -> String {
    format!(
        "[...document.querySelector({}).querySelectorAll({})]",
        json!(race),
        json!(selector)
    )
}

/// Returns an expression for the visible names in each table of entrants of a race, from the top.
fn in_tables(race: &str) -> String {
    format!(
        "[...new Set({}.map(r => r.closest('table')))].map(t => [...t.tBodies[0].rows]\
         .filter(r => !r.hidden).map(r => r.cells[0].textContent))",
        all(race, "tr[data-entrant]")
    )
}

/// Returns a JavaScript expression for the names of the visible rows, top to bottom, in the first
/// visible drawing that matches the selector `drawing`.
fn drawn(drawing: &str) -> String {
    format!(
        "[...[...document.querySelectorAll({})].find(d => d.getClientRects().length > 0).querySelectorAll('g.row')]\
         .filter(r => r.getClientRects().length > 0)\
         .map(r => [r.getBoundingClientRect().y, r.querySelector('text').textContent])\
         .sort((a, b) => a[0] - b[0]).map(r => r[1])",
        json!(drawing)
    )
}

/// Returns an expression for the metrics whose drawings are shown in a race, separated by spaces.
fn shown(race: &str) -> String {
    format!(
        "[...new Set({}.filter(p => p.getClientRects().length > 0).map(p => p.dataset.metric))].join(' ')",
        all(race, ".panel")
    )
}

/// Returns the race's message about the last change.
fn said(browser: &mut Chromium, race: &str) -> Value {
    browser.evaluate(&format!("{}[0].textContent", all(race, ".said")))
}

/// Returns the names in a race's tables of entrants. Checks that all these tables have equal names
/// in equal order.
#[track_caller]
fn tables(browser: &mut Chromium, race: &str) -> Vec<String> {
    let tables = browser.evaluate(&in_tables(race));
    let tables = tables.as_array().expect("tables");
    let first = tables.first().expect("a table");
    assert!(tables.iter().all(|table| table == first), "{tables:?}");
    words(first)
}

/// Returns the names of a result's entrants in the page's ranking by a figure, the best first.
fn ranked(result: &Value, figure: &str) -> Vec<String> {
    let rows = result["entrants"].as_array().expect("rows");
    let mut ranked: Vec<(f64, String)> = Vec::new();
    for row in rows
        .iter()
        .filter(|row| row["role"] != "twin" && row["status"] == "ok")
    {
        let ratio = &row["versus_baseline"][figure]["ratio"];
        let name = row["allocator"].as_str().expect("a name").to_owned();
        ranked.push((ratio.as_f64().unwrap_or(1.0), name));
    }
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    ranked.into_iter().map(|(_, name)| name).collect()
}

#[test]
fn a_page_is_drawn_on_every_screen_and_answers_to_clicks_and_keys() {
    let Some(mut browser) = site::browser() else {
        return;
    };
    let site = Site::new();
    let page = site.page(&["race.json"]);
    let result = kept("race.json");
    for screen in SCREENS {
        for dark in [false, true] {
            browser.screen(screen, dark);
            browser.open(&page);
            site::quiet(&mut browser, &page);
            fits(&mut browser, dark);
            assert_eq!(browser.evaluate(RANKING_FITS), true, "{screen:?}");
            let name = format!("{}-{}", screen[0], if dark { "dark" } else { "light" });
            site::keep_picture(&name, &browser.picture());
            sorts(&mut browser, ALONE, &result);
            hides(&mut browser, ALONE, &result);
            switches(&mut browser, ALONE, &result);
            site::quiet(&mut browser, &page);
        }
    }
}

/// Expression that is true if the drawing of the ranking is shown once, and needs no scrolling.
const RANKING_FITS: &str = "(b => b.scrollWidth <= b.clientWidth && \
    [...b.children].filter(d => d.getClientRects().length > 0).length === 1)\
    (document.querySelector('.panel.chosen .scroll'))";

/// Checks that the page fits the screen: nothing is wider, drawings have room, boxes scroll to the
/// end of their content, and names are not broken into letters. Also checks that the colours follow
/// the reader's preference.
fn fits(browser: &mut Chromium, dark: bool) {
    let wider = "document.documentElement.scrollWidth > document.documentElement.clientWidth";
    assert_eq!(
        browser.evaluate(wider),
        false,
        "the page is wider than the screen"
    );
    let paper = browser.evaluate("getComputedStyle(document.body).backgroundColor");
    let expected = if dark {
        "rgb(22, 25, 29)"
    } else {
        "rgb(255, 255, 255)"
    };
    assert_eq!(paper, expected);
    let empty = "[...document.querySelectorAll('figure svg')].filter(s => { \
                 const r = s.getBoundingClientRect(); \
                 return s.getClientRects().length > 0 && (r.width < 100 || r.height < 20); }).length";
    assert_eq!(browser.evaluate(empty), 0, "a drawing has no room");
    // Content that is wider than its box can be reached by scrolling the box.
    let cut = "[...document.querySelectorAll('.scroll')].filter(b => b.getClientRects().length > 0)\
               .filter(b => { b.scrollLeft = 9999; const end = b.getBoundingClientRect().right; \
               const over = [...b.children].some(c => c.getBoundingClientRect().right > end + 1); \
               b.scrollLeft = 0; return over; }).length";
    assert_eq!(browser.evaluate(cut), 0, "a box hides its end");
    let broken = "[...document.querySelectorAll('tr[data-entrant] th')].filter(h => { \
                  const r = document.createRange(); r.selectNodeContents(h); \
                  return new Set([...r.getClientRects()].map(line => line.y)).size > 3; }).length";
    assert_eq!(browser.evaluate(broken), 0, "a name is broken into letters");
}

/// Checks that another sort order moves the rows of tables and drawings into that order.
fn sorts(browser: &mut Chromium, race: &str, result: &Value) {
    let before = ranked(result, "wall_s");
    assert_eq!(tables(browser, race), before);
    // The list begins with wall time, processor time and peak RSS, so peak RSS is two steps down.
    let list = format!("{}[0]", all(race, "[data-control=sort]"));
    browser.evaluate(&format!("{list}.focus()"));
    for _ in 0..2 {
        browser.press(Key::Down);
    }
    browser.until(&format!("{list}.value === 'memory'"));
    let expected = ranked(result, "peak_rss_bytes");
    assert_ne!(
        before, expected,
        "the two orders must differ to prove anything"
    );
    assert_eq!(tables(browser, race), expected);
    for drawing in DRAWINGS {
        let rows = drawn(&format!("{race} {drawing}"));
        assert_eq!(words(&browser.evaluate(&rows)), expected, "{drawing}");
    }
    assert_eq!(said(browser, race), "Sorted by peak RSS, the best first.");
}

/// CSS selectors of the drawings with a row for each entrant.
const DRAWINGS: [&str; 2] = [
    ".panel.chosen svg",
    "svg[aria-labelledby*='memory-timeline']",
];

/// Checks that an unticked box hides its entrant everywhere, and a ticked one shows it again.
fn hides(browser: &mut Chromium, race: &str, result: &Value) {
    let names = ranked(result, "peak_rss_bytes");
    let label = format!("{race} label[for]");
    let name = browser.evaluate(&format!(
        "document.querySelector(\"{label}\").textContent.trim()"
    ));
    let name = name.as_str().expect("a name").to_owned();
    let left: Vec<_> = names
        .iter()
        .filter(|other| **other != name)
        .cloned()
        .collect();
    let visible = "filter(p => p.getClientRects().length > 0).length";
    let points = format!("{}.{visible}", all(race, "g.point"));
    let first = format!("{}[0]", all(race, "[data-control=show]"));
    for (ticked, expected) in [(false, &left), (true, &names)] {
        browser.click(&label);
        browser.until(&format!("{first}.checked === {ticked}"));
        assert_eq!(tables(browser, race), *expected);
        for drawing in DRAWINGS {
            let rows = drawn(&format!("{race} {drawing}"));
            assert_eq!(words(&browser.evaluate(&rows)), *expected, "{drawing}");
        }
        assert_eq!(browser.evaluate(&points), expected.len());
        let told = format!("{} of {} shown.", expected.len(), names.len());
        assert_eq!(said(browser, race), told);
    }
}

/// Checks that another metric shows its own drawings, hides those of the other metrics, and changes
/// the order.
fn switches(browser: &mut Chromium, race: &str, result: &Value) {
    assert_eq!(browser.evaluate(&shown(race)), "wall");
    let list = format!("{}[0]", all(race, "[data-control=metric]"));
    browser.evaluate(&format!("{list}.focus()"));
    browser.press(Key::Down);
    browser.until(&format!("{list}.value === 'cpu'"));
    assert_eq!(browser.evaluate(&shown(race)), "cpu");
    assert_eq!(
        said(browser, race),
        "Shown: processor time, the best first."
    );
    let sort = format!("{}[0].value", all(race, "[data-control=sort]"));
    assert_eq!(browser.evaluate(&sort), "cpu");
    let expected = ranked(result, "cpu_s");
    assert_eq!(tables(browser, race), expected);
    for drawing in DRAWINGS {
        let rows = drawn(&format!("{race} {drawing}"));
        assert_eq!(words(&browser.evaluate(&rows)), expected, "{drawing}");
    }
}

#[test]
fn a_page_that_asks_for_something_or_fails_is_noticed() {
    let Some(mut browser) = site::browser() else {
        return;
    };
    let site = Site::new();
    let faults = [
        (
            "<img src='https://example.invalid/x.png'>",
            "asked for https://example.invalid/x.png",
        ),
        ("<script>nowhere()</script>", "nowhere is not defined"),
        ("<script>console.error('a fault')</script>", "a fault"),
        (
            "<meta http-equiv='Content-Security-Policy' content=\"script-src 'none'\"><script>1</script>",
            "Content Security Policy",
        ),
    ];
    for (markup, complaint) in faults {
        let page = site.file(
            "faulty.html",
            &format!("<!DOCTYPE html><title>x</title>{markup}"),
        );
        browser.open(&page);
        let complaints = site::complaints(&mut browser, &page);
        let told = complaints.iter().any(|told| told.contains(complaint));
        assert!(told, "{complaint} is not among {complaints:?}");
    }
}

#[test]
fn everything_is_reached_by_keys_and_has_a_name_for_a_screen_reader() {
    let Some(mut browser) = site::browser() else {
        return;
    };
    let site = Site::new();
    let page = site.page(&["race.json"]);
    browser.screen(SCREENS[1], false);
    browser.open(&page);
    let controls = browser.evaluate("document.querySelectorAll('select, input, button').length");
    let controls = controls.as_u64().expect("a number");
    let focused = "(e => e === document.body ? '' : e.dataset.control ?? e.dataset.download ?? \
                   e.getAttribute('role') ?? e.tagName)(document.activeElement)";
    let mut reached = Vec::new();
    for _ in 0..200 {
        browser.press(Key::Tab);
        let at = browser
            .evaluate(focused)
            .as_str()
            .unwrap_or_default()
            .to_owned();
        if at.is_empty() {
            break;
        }
        let outlined = "getComputedStyle(document.activeElement).outlineStyle";
        assert_eq!(
            browser.evaluate(outlined),
            "solid",
            "{at} does not show that it has the focus"
        );
        reached.push(at);
    }
    assert_eq!(reached[..3], ["metric", "sort", "show"]);
    let is_control = |at: &&String| ["metric", "sort", "show"].contains(&at.as_str());
    let found = reached
        .iter()
        .filter(|at| is_control(at) || at.starts_with("data-"))
        .count();
    assert_eq!(found as u64, controls, "{reached:?}");
    browser.evaluate("document.getElementById('r0-show-1').focus()");
    browser.press(Key::Space);
    browser.until("document.querySelector('tr[data-entrant][hidden]') !== null");

    names_for_screen_readers(&mut browser);
    site::quiet(&mut browser, &page);
}

/// Checks that every image, table, heading, region and control has a name for screen readers.
fn names_for_screen_readers(browser: &mut Chromium) {
    let tree = browser.call("Accessibility.getFullAXTree", json!({}));
    let nodes = tree["nodes"].as_array().expect("a tree");
    let named = [
        "image", "table", "combobox", "checkbox", "button", "region", "heading",
    ];
    let mut counted = 0;
    for node in nodes.iter().filter(|node| node["ignored"] == false) {
        let role = node["role"]["value"].as_str().unwrap_or_default();
        if named.contains(&role) {
            let name = node["name"]["value"].as_str().unwrap_or_default();
            assert!(!name.trim().is_empty(), "a {role} without a name: {node}");
            counted += 1;
        }
    }
    assert!(counted > 20, "the tree of the page is read: {counted}");
}

#[test]
fn on_paper_and_without_scripts_everything_is_shown() {
    let Some(mut browser) = site::browser() else {
        return;
    };
    let site = Site::new();
    let page = site.page(&["race.json"]);
    let hidden = "[...document.querySelectorAll('figure')].filter(f => f.getClientRects().length === 0).length";
    let controls = "[...document.querySelectorAll('.controls')].filter(c => c.getClientRects().length > 0).length";
    browser.screen(SCREENS[0], false);
    browser.open(&page);
    assert_ne!(browser.evaluate(hidden), 0);
    assert_ne!(browser.evaluate(controls), 0);
    browser.media("print", true);
    assert_eq!(browser.evaluate(hidden), 0);
    assert_eq!(browser.evaluate(controls), 0);
    let paper = browser.evaluate("getComputedStyle(document.body).backgroundColor");
    assert_eq!(
        paper, "rgb(255, 255, 255)",
        "paper is white even for those who read on dark"
    );
    browser.media("", false);
    browser.call(
        "Emulation.setScriptExecutionDisabled",
        json!({"value": true}),
    );
    browser.open(&page);
    assert_eq!(browser.evaluate(hidden), 0);
    assert_eq!(browser.evaluate(controls), 0);
    // Without scripts, the drawings of a sweep's single races stay packed. Placeholders state this,
    // and the tables are still visible.
    let other = Site::new();
    browser.open(&other.page(&["sweep.json"]));
    let silent = "[...document.querySelectorAll('[data-drawing]')]\
                  .filter(b => getComputedStyle(b, '::before').content === 'none').length";
    assert_eq!(browser.evaluate(silent), 0);
    let tables = browser.evaluate("document.querySelectorAll('details[data-race] table').length");
    assert_ne!(tables, 0);
}

#[test]
fn the_raw_data_are_saved_as_they_were() {
    let Some(mut browser) = site::browser() else {
        return;
    };
    let site = Site::new();
    // Use the result as this heapdrome writes it, because it may have fields that the stored file
    // lacks.
    let result = site.written("race.json");
    let page = site.page_of(std::slice::from_ref(&result));
    browser.screen(SCREENS[0], false);
    browser.open(&page);
    let folder = site.folder("saved");
    browser.allow_downloads(&folder);
    browser.click("button[data-download]");
    browser.event("Browser.downloadProgress", |event| {
        event["state"] == "completed"
    });
    let saved = site::read(&folder.join("race.json"));
    // `assert_eq!` would print both results, which are too long.
    assert!(saved == site::read(&result), "all of it is as it was");
    assert_ne!(saved["entrants"][0]["wall_s"]["samples"][0], Value::Null);
    site::quiet(&mut browser, &page);
}
