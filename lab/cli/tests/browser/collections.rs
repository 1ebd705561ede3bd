//! Tests of the pages of collections: the reader can hide curves by name, and a folded race, once
//! opened, behaves like a race on its own page.

use serde_json::Value;

use crate::chromium::{Chromium, Key};
use crate::site::{self, Site, kept, words};
use crate::{SCREENS, all, fits, hides, names_for_screen_readers, ranked, sorts, switches};

#[test]
fn a_race_of_a_sweep_opens_by_keys_and_answers_as_a_race_alone_does() {
    let Some(mut browser) = site::browser() else {
        return;
    };
    let site = Site::new();
    let page = site.page(&["sweep.json"]);
    let sweep = kept("sweep.json");
    let races = sweep["races"].as_array().expect("races");
    let reorders = |race: &Value| {
        ranked(&race["result"], "wall_s") != ranked(&race["result"], "peak_rss_bytes")
    };
    let place = races.iter().position(reorders);
    let place = place.expect("a race whose two orders differ, to prove anything");
    let result = &races[place]["result"];
    let race = format!("details[data-race]:nth-of-type({})", place + 1);
    for screen in SCREENS {
        browser.screen(screen, false);
        browser.open(&page);
        opens(&mut browser, place, &race);
        fits(&mut browser, false);
        site::keep_picture(&format!("sweep-{}", screen[0]), &browser.picture());
        names_for_screen_readers(&mut browser);
        sorts(&mut browser, &race, result);
        hides(&mut browser, &race, result);
        switches(&mut browser, &race, result);
        site::quiet(&mut browser, &page);
    }
    // A printed page shows every race with its drawings, and the page is restored afterwards.
    let open = "[...document.querySelectorAll('details')].map(d => String(d.open))";
    let before = words(&browser.evaluate(open));
    browser.evaluate("dispatchEvent(new Event('beforeprint'))");
    let missing = "document.querySelectorAll('[data-drawing]:empty, details:not([open])').length";
    assert_eq!(browser.evaluate(missing), 0);
    browser.evaluate("dispatchEvent(new Event('afterprint'))");
    let after = words(&browser.evaluate(open));
    assert!(
        after == before && after.contains(&"false".to_owned()),
        "{after:?}"
    );
    site::quiet(&mut browser, &page);
}

/// Moves to the race at `place` and opens it by keys, which also shows its drawings.
fn opens(browser: &mut Chromium, place: usize, race: &str) {
    let at = "[...document.querySelectorAll('details[data-race] > summary')].indexOf(document.activeElement)";
    let mut presses = 0;
    while browser.evaluate(at) != place {
        assert!(presses < 300, "no key leads to {race}");
        browser.press(Key::Tab);
        presses += 1;
    }
    assert_eq!(browser.evaluate(&format!("{}.length", all(race, "svg"))), 0);
    // The key may be pressed before the drawings are unpacked; the race still opens.
    browser.press(Key::Space);
    browser.until(&format!("{}.length > 0", all(race, "svg")));
    browser.press(Key::Tab);
    let control = browser.evaluate("document.activeElement.dataset.control");
    assert_eq!(control, "metric", "its controls follow");
}

#[test]
fn curves_are_hidden_by_their_names() {
    let Some(mut browser) = site::browser() else {
        return;
    };
    // The pages are of a suite with races, an experiment with times, and a sweep.
    for result in ["suite", "experiment", "sweep"] {
        for dark in [false, true] {
            curves_hide(&mut browser, result, dark);
        }
    }
}

/// Checks that a box above the page's first curves hides the curves of one name, and shows them
/// again.
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
    let keys = "[...document.querySelector('[data-curves]').querySelectorAll('label')].every(l => \
                l.querySelector('path').getClientRects().length === 1 && l.querySelector('svg').clientWidth < 20)";
    browser.until(keys);
    for expected in [&left, &all] {
        browser.click("[data-curves] label");
        browser.until(&format!("{drawn}.length === {}", expected.len()));
        assert_eq!(words(&browser.evaluate(drawn)), *expected);
    }
    site::quiet(browser, &page);
}
