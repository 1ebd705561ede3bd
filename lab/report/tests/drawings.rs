//! Tests of drawings: unique names that state the group, the order of rows, and the colours of
//! curves.

mod races;
#[path = "races/workload.rs"]
mod workload;

use std::collections::HashSet;

use heapdrome_report::{Plot, Source, page, plots};
use heapdrome_schema::{
    Ccdf, CcdfPoint, Collection, Factor, Nanoseconds, Purpose, Saved, Scale, ScalingCurve,
    ScalingPoint, SweepResult, SweptParameter,
};
use scraper::{Html, Selector};

const VALUES: [&str; 2] = ["malloc", "pymalloc"];

/// Returns a sweep over threads and over a variable whose name has `letters` letters.
fn crossed(letters: usize) -> Collection {
    let mut sweep = workload::sweep();
    let variable = format!("env:{}", "A".repeat(letters));
    let races = std::mem::take(&mut sweep.races);
    let mut curves = Vec::new();
    for value in VALUES {
        let others = format!("{variable}={value}");
        let cells = races.iter().map(|race| format!("{}, {others}", race.cell));
        for (race, cell) in races.iter().zip(cells) {
            let mut race = race.clone();
            race.cell = cell;
            sweep.races.push(race);
        }
        curves.extend(["system", "jemalloc"].map(|allocator| curve(allocator, &others)));
    }
    let parameter = |name: &str, values: &[&str]| SweptParameter {
        name: name.to_owned(),
        values: values.iter().map(|value| (*value).to_owned()).collect(),
    };
    sweep.purpose = Purpose::Sweep(Some(SweepResult {
        parameters: vec![
            parameter("threads", &["1", "2", "8"]),
            parameter(&variable, &VALUES),
        ],
        along: "threads".to_owned(),
        work: "the same".to_owned(),
        share: 0.25,
        paired: false,
        curves,
    }));
    sweep
}

fn curve(allocator: &str, others: &str) -> ScalingCurve {
    let factor = Factor {
        ratio: 1.1,
        low: 1.0,
        high: 1.2,
    };
    let point = |value: &str| ScalingPoint {
        cell: format!("threads={value}, {others}"),
        value: value.to_owned(),
        work: 1.0,
        degradation: Some(factor),
        per_processor: Some(factor),
    };
    ScalingCurve {
        allocator: allocator.to_owned(),
        others: others.to_owned(),
        points: ["1", "2", "8"].map(point).to_vec(),
        knee: None,
    }
}

fn drawn(letters: usize) -> Vec<Plot> {
    plots(&Saved::Collection(Box::new(crossed(letters))))
}

#[test]
fn no_two_drawings_of_a_result_and_of_its_page_have_one_name() {
    for letters in [12, 55, 150] {
        let drawn = drawn(letters);
        let names: HashSet<&str> = drawn.iter().map(|plot| plot.name.as_str()).collect();
        assert_eq!(names.len(), drawn.len(), "{names:?}");
        let source = Source {
            name: "crossed.json".to_owned(),
            saved: Saved::Collection(Box::new(crossed(letters))),
        };
        let page = String::from_utf8(page(&[source]).expect("a page")).expect("UTF-8");
        let page = Html::parse_document(&page);
        let selector = Selector::parse("[id]").expect("a selector");
        let all: Vec<_> = page
            .select(&selector)
            .filter_map(|one| one.attr("id"))
            .collect();
        let once: HashSet<_> = all.iter().collect();
        assert_eq!(once.len(), all.len(), "{all:?}");
    }
}

#[test]
fn a_drawing_says_in_its_name_and_on_paper_which_group_it_shows() {
    let drawn = drawn(55);
    for value in VALUES {
        let (name, line) = (
            format!("-{value}--rptest-over-threads-wall"),
            format!("fill=\"#595959\">env:{}={value}, ", "A".repeat(55)),
        );
        let own: Vec<_> = drawn
            .iter()
            .filter(|plot| plot.name.ends_with(&name))
            .collect();
        let [own] = own.as_slice() else {
            panic!("{name} is the name of {own:?}");
        };
        let svg = String::from_utf8(own.svg()).expect("UTF-8");
        assert!(svg.contains(&line), "{svg}");
    }
}

/// Returns the names in a drawing with rows, from top to bottom.
fn rows(plots: &[Plot], name: &str) -> Vec<String> {
    let plot = plots.iter().find(|plot| plot.name == name);
    let svg = String::from_utf8(plot.expect("it is drawn").svg()).expect("UTF-8");
    let drawing = roxmltree::Document::parse(&svg).expect("XML");
    let texts = drawing
        .descendants()
        .filter(|node| node.has_attribute("data-entrant"));
    let texts = texts.filter_map(|row| row.children().find(|node| node.has_tag_name("text")));
    texts
        .filter_map(|text| text.text().map(str::to_owned))
        .collect()
}

#[test]
fn a_ranking_begins_with_the_best_by_its_own_figure() {
    let plots = plots(&Saved::Race(Box::new(races::usual())));
    let wall = [
        "mimalloc3",
        "jemalloc",
        "rpmalloc",
        "system",
        "hardened_malloc",
    ];
    assert_eq!(rows(&plots, "ranking-wall"), wall);
    let memory = [
        "mimalloc3",
        "rpmalloc",
        "system",
        "jemalloc",
        "hardened_malloc",
    ];
    for name in ["ranking-memory", "samples-memory"] {
        assert_eq!(rows(&plots, name), memory, "{name}");
    }
}

/// Returns the times of `count` ways to read, each with little memory and with enough memory.
fn ways(count: usize) -> Vec<Ccdf> {
    let cells = (0..count).flat_map(|way| [format!("way {way}"), format!("way {way}, all fits")]);
    let point = |(time, above): (u64, f64)| CcdfPoint {
        time: Nanoseconds(time),
        above,
    };
    let ccdf = |cell: String| Ccdf {
        kind: "strategies: read".to_owned(),
        cell,
        count: 3,
        points: [(100, 0.5), (100_000, 0.0)].map(point).to_vec(),
    };
    cells.map(ccdf).collect()
}

#[test]
fn many_curves_of_times_are_two_drawings_in_which_each_way_has_its_colour() {
    let mut experiment = workload::sweep();
    experiment.races.clear();
    let mut drawn = |count: usize| {
        experiment.purpose = Purpose::Paging {
            scale: Scale::Quick,
            cells: Vec::new(),
            time: None,
            ccdfs: ways(count),
        };
        plots(&Saved::Collection(Box::new(experiment.clone())))
    };
    assert_eq!(drawn(5).len(), 1);
    let drawn = drawn(6);
    let names: Vec<&str> = drawn.iter().map(|plot| plot.name.as_str()).collect();
    assert_eq!(
        names,
        ["ccdf-strategies--read", "ccdf-strategies--read--all-fits"]
    );
    let svgs = drawn
        .iter()
        .map(|plot| String::from_utf8(plot.svg()).expect("UTF-8"));
    let svgs: Vec<String> = svgs.collect();
    for (svg, kind) in svgs
        .iter()
        .zip(["strategies, read", "strategies, read, all fits"])
    {
        assert!(
            svg.contains(&format!(">{kind}: share of times that were longer")),
            "{svg}"
        );
    }
    let group = |svg: &String| {
        let (before, _) = svg.split_once(" data-name=\"way 3\"").expect("its curve");
        before.rsplit_once('<').map(|(_, group)| group.to_owned())
    };
    assert_eq!(group(&svgs[0]), group(&svgs[1]));
}
