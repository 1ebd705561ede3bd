//! Tests of the page of a profile with stacks: its drawings on every screen, and zooming into its
//! flame graph.

use heapdrome_trace::{Frame, Operation, Record, Recording, Stack, Step, Time, Writer};

use crate::site::{self, Site};
use crate::{SCREENS, fits};

/// First address that occurs in only one stack. Lower addresses are shared by several stacks.
const OWN: u32 = 0x10000;

/// Returns a trace of 40 stacks, the first of which requests half of the bytes.
fn trace() -> Vec<u8> {
    let recording = Recording {
        functions: vec!["malloc".to_owned()],
        command: vec!["./app".to_owned()],
        stack_bytes: 1,
        ..Recording::default()
    };
    let mut writer = Writer::new(Vec::new(), &recording).expect("begun");
    for stack in 0..40_u32 {
        // Each stack has 3 to 22 functions. The outermost ones are shared with other stacks.
        let depth = 3 + stack % 20;
        let frame = |level: u32| Frame {
            module: None,
            address: u64::from(if level < depth / 2 {
                level
            } else {
                OWN + stack * 100 + level
            }),
        };
        let frames = (0..depth).rev().map(frame).collect();
        let stack = Stack { stack, frames };
        writer.record(Record::Stack(stack)).expect("recorded");
    }
    for block in 0..40 {
        let operation = Operation::Make {
            function: 0,
            size: if block == 0 { 39_000 } else { 1000 },
            alignment: 0,
        };
        let step = Step {
            thread: 0,
            time: Time(block * 160_000),
            operation,
            stack: Some(block as u32),
        };
        writer.operation(0, step).expect("written");
    }
    writer.finish().expect("finished")
}

/// Expression for the innermost function of the first stack, which is half as wide as the drawing.
const HALF: &str = "[...document.querySelectorAll('g.call')]\
    .find(c => c.querySelector('title').textContent.startsWith('0x10002: '))";

#[test]
fn a_profile_is_drawn_on_every_screen_and_its_flame_graph_zooms() {
    let Some(mut browser) = site::browser() else {
        return;
    };
    let site = Site::new();
    let page = site.profile(&trace());
    for screen in SCREENS {
        for dark in [false, true] {
            browser.screen(screen, dark);
            browser.open(&page);
            site::quiet(&mut browser, &page);
            fits(&mut browser, dark);
            let shade = if dark { "dark" } else { "light" };
            site::keep_picture(
                &format!("profile-{}-{shade}", screen[0]),
                &browser.picture(),
            );
            let wide = format!(
                "Number(Number({HALF}.querySelector('rect').getAttribute('width')).toFixed(1))"
            );
            let click = |of: &str| format!("{of}.dispatchEvent(new Event('click'))");
            assert_eq!(browser.evaluate(&wide), 319.5);
            browser.evaluate(&click(HALF));
            assert_eq!(browser.evaluate(&wide), 639.5);
            let hidden = "[...document.querySelectorAll('g.call')].filter(c => c.style.display === 'none').length";
            let count = browser.evaluate(hidden).as_u64().expect("a number");
            assert!(count > 40, "{count} functions make room");
            browser.evaluate(&click("document.querySelector('g.call')"));
            assert_eq!(browser.evaluate(&wide), 319.5);
            assert_eq!(browser.evaluate(hidden), 0);
            site::quiet(&mut browser, &page);
        }
    }
}
