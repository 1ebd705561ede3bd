//! Tests that an allocator has the same colour in every drawing of a result, and that the looks of
//! a sweep's curves differ.

mod races;
#[path = "races/workload.rs"]
mod workload;

use std::collections::{HashMap, HashSet};

use heapdrome_report::plots;
use heapdrome_schema::Saved;

/// Returns the names in a drawing with their colours. Names of curves also have shapes and dashes;
/// for others, both are empty.
fn looks(svg: &str) -> Vec<(String, [String; 3])> {
    let drawing = roxmltree::Document::parse(svg).expect("XML");
    let is_of = |node: &roxmltree::Node<'_, '_>, class: &str| {
        let own = node.attribute("class").unwrap_or_default();
        own.starts_with(class)
    };
    let groups = drawing.descendants();
    let groups = groups.filter(|node| ["curve", "row", "point"].iter().any(|one| is_of(node, one)));
    let of = |group: roxmltree::Node<'_, '_>| {
        let first = |name: &str| group.children().find(|node| node.has_tag_name(name));
        let name = group.attribute("data-name").map(str::to_owned);
        let name = name.or_else(|| Some(first("text")?.text()?.to_owned()));
        let dashes = first("path").and_then(|path| path.attribute("stroke-dasharray"));
        let filled = group
            .children()
            .filter(|node| node.attribute("fill") == Some("currentColor"));
        let shape = filled.filter_map(|node| node.attribute("d")).next_back();
        let shape = shape.filter(|_| is_of(&group, "curve")).map(steps);
        let dashes = dashes.filter(|_| is_of(&group, "curve")).map(str::to_owned);
        Some((
            name?,
            [Some(group.attribute("color")?.to_owned()), shape, dashes]
                .map(Option::unwrap_or_default),
        ))
    };
    groups.filter_map(of).collect()
}

/// Returns the corners of an outline relative to the first corner, rounded to steps of two units;
/// `disc` for an outline with arcs.
fn steps(outline: &str) -> String {
    let numbers = outline.split(|c: char| !"0123456789.-".contains(c));
    let numbers: Vec<f64> = numbers.filter_map(|number| number.parse().ok()).collect();
    let from = [numbers[0], numbers[1]];
    let corners = numbers.chunks_exact(2);
    let corners: Vec<String> = corners
        .map(|at| {
            format!(
                "{:.0} {:.0}",
                (at[0] - from[0]) / 2.0,
                (at[1] - from[1]) / 2.0
            )
        })
        .collect();
    match outline.contains('a') {
        true => "disc".to_owned(),
        false => corners.join(" "),
    }
}

#[test]
fn an_allocator_looks_the_same_in_every_drawing_of_a_result() {
    let mut sweep = workload::sweep();
    // In the second race one entrant is missing, and the order of the others differs.
    sweep.races[1].result.entrants.remove(2);
    sweep.races[1].result.entrants[2..].reverse();
    let mut colours: HashMap<String, HashSet<String>> = HashMap::new();
    let mut drawn = 0;
    for plot in plots(&Saved::Collection(Box::new(sweep))) {
        let looks = looks(&String::from_utf8(plot.svg()).expect("UTF-8"));
        drawn += usize::from(!looks.is_empty());
        for (name, [colour, ..]) in &looks {
            colours
                .entry(name.clone())
                .or_default()
                .insert(colour.clone());
        }
        if plot.name.starts_with("sweep-") {
            for part in 0..3 {
                let differ: HashSet<_> = looks.iter().map(|(_, look)| &look[part]).collect();
                assert_eq!(differ.len(), looks.len(), "{}: {looks:?}", plot.name);
            }
        }
    }
    assert!(drawn > 20 && colours.len() == 5, "{colours:?}");
    let mut all = HashSet::new();
    for (name, colours) in colours {
        assert_eq!(colours.len(), 1, "{name}: {colours:?}");
        all.extend(colours);
    }
    assert_eq!(all.len(), 5, "{all:?}");
}
