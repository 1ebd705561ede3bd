//! The page of a result in a real browser: drawn, clicked, typed into, printed, and asking for
//! nothing. Without a browser these tests are skipped with a line that says so, unless
//! `HEAPDROME_REQUIRE_BROWSER` is set, as the checks before a change lands do.

mod chromium;
mod site;

use chromium::{Chromium, Key};
use serde_json::{Value, json};
use site::{Site, kept, words};

/// A desk's screen and a telephone's.
const SCREENS: [[u32; 2]; 2] = [[1280, 900], [390, 844]];

/// The names in each table of entrants, from the top, without the hidden ones.
const TABLES: &str = "[...new Set([...document.querySelectorAll('tr[data-entrant]')]\
                      .map(r => r.closest('table')))].map(t => [...t.tBodies[0].rows]\
                      .filter(r => !r.hidden).map(r => r.cells[0].textContent))";

/// The names in a drawing made of rows, from the top, without the hidden ones.
fn drawn(drawing: &str) -> String {
    format!(
        "[...document.querySelector({}).querySelectorAll('g.row')]\
         .filter(r => r.getClientRects().length > 0)\
         .map(r => [r.getBoundingClientRect().y, r.querySelector('text').textContent])\
         .sort((a, b) => a[0] - b[0]).map(r => r[1])",
        json!(drawing)
    )
}

/// The metric whose drawings are shown; with two, both.
const SHOWN: &str = "[...new Set([...document.querySelectorAll('.panel')]\
                     .filter(p => p.getClientRects().length > 0).map(p => p.dataset.metric))].join(' ')";

/// The names in the tables of entrants, which are the same in all of them.
#[track_caller]
fn tables(browser: &mut Chromium) -> Vec<String> {
    let tables = browser.evaluate(TABLES);
    let tables = tables.as_array().expect("tables");
    let first = tables.first().expect("a table");
    assert!(tables.iter().all(|table| table == first), "{tables:?}");
    words(first)
}

/// The entrants of a result in the order in which the page ranks them by a figure, the best first.
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
    let page = site.page(&["python.json"]);
    let result = kept("python.json");
    for screen in SCREENS {
        for dark in [false, true] {
            browser.screen(screen, dark);
            browser.open(&page);
            site::quiet(&mut browser, &page);
            fits(&mut browser, dark);
            let name = format!("{}-{}", screen[0], if dark { "dark" } else { "light" });
            site::keep_picture(&name, &browser.picture());
            sorts(&mut browser, &result);
            hides(&mut browser, &result);
            switches(&mut browser);
            site::quiet(&mut browser, &page);
        }
    }
}

/// Nothing is wider than the screen, and the colours are those that the reader asked for.
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
    let empty = "[...document.querySelectorAll('svg')].filter(s => { \
                 const r = s.getBoundingClientRect(); \
                 return s.getClientRects().length > 0 && (r.width < 100 || r.height < 20); }).length";
    assert_eq!(browser.evaluate(empty), 0, "a drawing has no room");
}

/// A list that is sorted otherwise puts rows of tables and drawings into another order.
fn sorts(browser: &mut Chromium, result: &Value) {
    let before = ranked(result, "wall_s");
    assert_eq!(tables(browser), before);
    // Wall time, CPU time, peak RSS: two steps down.
    browser.evaluate("document.querySelector('[data-control=sort]').focus()");
    for _ in 0..2 {
        browser.press(Key::Down);
    }
    browser.until("document.querySelector('[data-control=sort]').value === 'memory'");
    let expected = ranked(result, "peak_rss_bytes");
    assert_ne!(
        before, expected,
        "the two orders must differ to prove anything"
    );
    assert_eq!(tables(browser), expected);
    for drawing in [
        ".panel.chosen svg",
        "svg[aria-labelledby^='r0-memory-timeline']",
    ] {
        let rows = drawn(drawing);
        assert_eq!(words(&browser.evaluate(&rows)), expected, "{drawing}");
    }
    let said = browser.evaluate("document.querySelector('.said').textContent");
    assert_eq!(said, "Sorted by peak RSS, the best first.");
}

/// A box that is unticked hides its entrant everywhere; ticked again, it is back.
fn hides(browser: &mut Chromium, result: &Value) {
    let all = ranked(result, "peak_rss_bytes");
    let label = "label[for='r0-show-0']";
    let name = browser.evaluate(&format!(
        "document.querySelector(\"{label}\").textContent.trim()"
    ));
    let name = name.as_str().expect("a name").to_owned();
    let left: Vec<_> = all
        .iter()
        .filter(|other| **other != name)
        .cloned()
        .collect();
    let points = "[...document.querySelectorAll('g.point')]\
                  .filter(p => p.getClientRects().length > 0).length";
    let drawings = [
        ".panel.chosen svg",
        "svg[aria-labelledby^='r0-memory-timeline']",
    ];
    for (ticked, expected) in [(false, &left), (true, &all)] {
        browser.click(label);
        browser.until(&format!(
            "document.getElementById('r0-show-0').checked === {ticked}"
        ));
        assert_eq!(tables(browser), *expected);
        for drawing in drawings {
            assert_eq!(
                words(&browser.evaluate(&drawn(drawing))),
                *expected,
                "{drawing}"
            );
        }
        assert_eq!(browser.evaluate(points), expected.len());
        let said = browser.evaluate("document.querySelector('.said').textContent");
        assert_eq!(said, format!("{} of {} shown.", expected.len(), all.len()));
    }
}

/// Another metric shows its own drawings and hides the others'.
fn switches(browser: &mut Chromium) {
    assert_eq!(browser.evaluate(SHOWN), "wall");
    browser.evaluate("document.querySelector('[data-control=metric]').focus()");
    browser.press(Key::Down);
    browser.until("document.querySelector('[data-control=metric]').value === 'cpu'");
    assert_eq!(browser.evaluate(SHOWN), "cpu");
    let said = browser.evaluate("document.querySelector('.said').textContent");
    assert_eq!(said, "Shown: CPU time.");
}

#[test]
fn curves_are_hidden_by_their_names() {
    let Some(mut browser) = site::browser() else {
        return;
    };
    // A suite with races, experiments with times, and a sweep.
    for result in ["suite-elfmalloc", "suite-lgalloc", "sweep-python"] {
        for dark in [false, true] {
            curves_hide(&mut browser, result, dark);
        }
    }
}

/// A box of the page's first curves hides those of one name, and shows them again.
fn curves_hide(browser: &mut Chromium, result: &str, dark: bool) {
    let site = Site::new();
    let page = site.page(&[&format!("{result}.json")]);
    browser.screen(SCREENS[1], dark);
    browser.open(&page);
    site::quiet(browser, &page);
    fits(browser, dark);
    let drawn = "[...document.querySelector('[data-curves]').querySelectorAll('g.curve')]\
                 .filter(c => c.getClientRects().length > 0).map(c => c.dataset.name)";
    let all = words(&browser.evaluate(drawn));
    let left: Vec<_> = all
        .iter()
        .filter(|name| **name != all[0])
        .cloned()
        .collect();
    assert!(
        !left.is_empty() && left.len() < all.len(),
        "some are hidden and some are not: {all:?}"
    );
    for expected in [&left, &all] {
        browser.click("[data-curves] label");
        browser.until(&format!("{drawn}.length === {}", expected.len()));
        assert_eq!(words(&browser.evaluate(drawn)), *expected);
    }
    site::quiet(browser, &page);
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
    let page = site.page(&["python.json"]);
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
    site::quiet(&mut browser, &page);
}

#[test]
fn on_paper_and_without_scripts_everything_is_shown() {
    let Some(mut browser) = site::browser() else {
        return;
    };
    let site = Site::new();
    let page = site.page(&["python.json"]);
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
}

#[test]
fn the_raw_data_are_saved_as_they_were() {
    let Some(mut browser) = site::browser() else {
        return;
    };
    let site = Site::new();
    let page = site.page(&["python.json"]);
    browser.screen(SCREENS[0], false);
    browser.open(&page);
    let folder = site.folder("saved");
    browser.allow_downloads(&folder);
    browser.click("button[data-download]");
    browser.event("Browser.downloadProgress", |event| {
        event["state"] == "completed"
    });
    let saved = std::fs::read_to_string(folder.join("python.json")).expect("it is saved");
    let saved: Value = serde_json::from_str(&saved).expect("JSON");
    let kept = kept("python.json");
    for entrant in 0..kept["entrants"].as_array().expect("rows").len() {
        for part in ["wall_s", "memory_timeline", "versus_baseline"] {
            let of = |result: &Value| result["entrants"][entrant][part].clone();
            assert!(of(&saved) == of(&kept), "{part} of {entrant} is as it was");
        }
    }
    site::quiet(&mut browser, &page);
}
