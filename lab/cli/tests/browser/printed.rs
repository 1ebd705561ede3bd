//! Tests of pages on paper.

use serde_json::json;

use crate::site::{self, Site};

/// Size of an A4 sheet in the page's pixels.
const SHEET: [u32; 2] = [794, 1123];

#[test]
fn no_table_and_no_drawing_passes_the_edge_of_the_paper() {
    let Some(mut browser) = site::browser() else {
        return;
    };
    let beyond = "(edge => [...document.querySelectorAll('.scroll > *')]\
                  .filter(e => e.getBoundingClientRect().right > edge + 1)\
                  .map(e => e.parentNode.getAttribute('aria-label')))\
                  (document.body.getBoundingClientRect().right)";
    for result in ["race.json", "suite.json", "experiment.json"] {
        let site = Site::new();
        browser.screen(SHEET, false);
        browser.media("print", false);
        browser.open(&site.page(&[result]));
        browser.evaluate("dispatchEvent(new Event('beforeprint'))");
        assert_eq!(browser.evaluate(beyond), json!([]), "{result}");
    }
}
