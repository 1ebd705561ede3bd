//! Tests that the page and the plots are well-formed, escaped and complete, and that the page sends
//! no requests. Other tests check the names, labels and rendering of plots.

#[path = "races/golden.rs"]
mod golden;
mod races;
#[path = "races/watched.rs"]
mod watched;
#[path = "races/workload.rs"]
mod workload;

use std::collections::HashSet;

use base64::Engine as _;
use heapdrome_report::{Exporter, Markdown, Plot, Source, page, plots};
use heapdrome_schema::{RaceResult, Role, Saved, Status};
use scraper::{Html, Selector};
use sha2::{Digest as _, Sha256};

/// Text that a page must not interpret.
const HOSTILE: &str = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&--><!--";

fn source(saved: Saved) -> Source {
    Source {
        name: "a \"result\".json".to_owned(),
        saved,
    }
}

fn race(result: RaceResult) -> Source {
    source(Saved::Race(Box::new(result)))
}

fn text(sources: &[Source]) -> String {
    String::from_utf8(page(sources).expect("it becomes a page")).expect("UTF-8")
}

fn all<'a>(document: &'a Html, selector: &str) -> Vec<scraper::ElementRef<'a>> {
    let selector = Selector::parse(selector).expect("a selector");
    document.select(&selector).collect()
}

/// Returns a race with measurements of memory over time and in parts.
fn timed() -> RaceResult {
    let mut result = races::usual();
    for entrant in &mut result.entrants {
        watched::watch_closely(entrant, 40);
    }
    result
}

/// Returns a race with hostile texts in many fields.
fn hostile() -> RaceResult {
    let mut result = timed();
    let all = || HOSTILE.to_owned();
    result.command = vec![all(), all()];
    result.asked = vec!["race".to_owned(), all()];
    result.options.workload = Some(all());
    result.ended = all();
    result.started = all();
    result.heapdrome = all();
    result.remarks = vec![all()];
    result.machine.processor = all();
    result.machine.remarks = vec![all()];
    for (place, entrant) in result.entrants.iter_mut().enumerate() {
        if entrant.role != Role::Baseline {
            entrant.allocator = format!("{place}{HOSTILE}");
        }
        entrant.version = all();
        entrant.sha256 = Some(all());
        entrant.settings.insert(all(), all());
        entrant.known_faults = vec![all()];
        entrant.library = Some(HOSTILE.into());
        entrant.detached = vec![all()];
        entrant.memory_parts_method = Some(all());
        if let Some(failure) = &mut entrant.failure {
            failure.stderr_tail = all();
        }
    }
    result
}

/// Returns results of many kinds, including unusual ones.
fn sources() -> Vec<Source> {
    let mut alone = races::usual();
    alone.entrants.truncate(1);
    let mut without_baseline = races::usual();
    without_baseline.entrants.remove(0);
    let mut without_figures = races::usual();
    without_figures.entrants = vec![
        races::bare("system", Role::Baseline),
        races::bare("x", Role::Rival),
    ];
    let mut all_out = races::usual();
    for entrant in &mut all_out.entrants {
        entrant.status = Status::NotServed;
    }
    let mut undefined = races::usual();
    for entrant in &mut undefined.entrants {
        for compared in entrant.versus_baseline.values_mut() {
            (compared.low, compared.high) = (0.0, f64::INFINITY);
        }
        if let Some(wall) = &mut entrant.wall_s {
            wall.samples = vec![f64::NAN, 0.0, wall.median * 1000.0];
        }
    }
    let mut sources: Vec<Source> = [
        races::usual(),
        races::empty(),
        timed(),
        hostile(),
        alone,
        without_baseline,
        without_figures,
        all_out,
        undefined,
        workload::race(),
    ]
    .into_iter()
    .map(race)
    .collect();
    sources.push(source(Saved::Collection(Box::new(workload::sweep()))));
    sources
}

#[test]
fn every_page_is_well_formed_and_its_references_lead_somewhere() {
    let sources = sources();
    let singles = sources.iter().map(std::slice::from_ref);
    for of in singles.chain([sources.as_slice()]) {
        let text = text(of);
        let document = Html::parse_document(&text);
        assert!(document.errors.is_empty(), "{:?}", document.errors);
        let mut names = HashSet::new();
        for element in all(&document, "[id]") {
            let id = element.attr("id").expect("it has one");
            assert!(names.insert(id.to_owned()), "{id} twice");
        }
        for (selector, attribute) in [
            ("[aria-labelledby]", "aria-labelledby"),
            ("label[for]", "for"),
            ("a[href]", "href"),
            ("[data-download]", "data-download"),
        ] {
            for element in all(&document, selector) {
                let targets = element.attr(attribute).expect("it has one");
                for target in targets.split(' ') {
                    let target = target.trim_start_matches('#');
                    assert!(names.contains(target), "{target} is nowhere");
                }
            }
        }
        assert_eq!(all(&document, "h1").len(), 1, "one heading above all");
        assert!(all(&document, "svg:not([role=img])").is_empty());
        assert!(all(&document, "th:not([scope])").is_empty());
    }
}

#[test]
fn nothing_is_fetched_and_nothing_foreign_runs() {
    for source in sources() {
        let text = text(std::slice::from_ref(&source));
        let document = Html::parse_document(&text);
        for selector in [
            "[src]",
            "link",
            "img",
            "iframe",
            "object",
            "use",
            "image",
            "style ~ style",
        ] {
            assert!(all(&document, selector).is_empty(), "{selector}");
        }
        for element in all(&document, "*") {
            for (name, value) in element.value().attrs() {
                assert!(!name.starts_with("on"), "{name}={value}");
                assert_ne!(name, "style", "the page's policy forbids it");
            }
        }
        for link in all(&document, "[href]") {
            assert!(link.attr("href").is_some_and(|to| to.starts_with('#')));
        }
        let scripts = all(&document, "script:not([type])");
        assert_eq!(scripts.len(), 1);
        let policy = all(&document, "meta[http-equiv]")[0]
            .attr("content")
            .expect("a policy");
        assert!(policy.starts_with("default-src 'none';"), "{policy}");
        for element in [scripts[0], all(&document, "style")[0]] {
            let digest = Sha256::digest(element.text().collect::<String>().as_bytes());
            let hash = base64::engine::general_purpose::STANDARD.encode(digest);
            assert!(policy.contains(&format!("'sha256-{hash}'")), "{policy}");
        }
    }
}

#[test]
fn the_raw_data_are_the_result_whatever_is_in_it() {
    let result = hostile();
    let text = text(&[race(result.clone())]);
    let document = Html::parse_document(&text);
    let data = inflated(&document, "#data-0");
    let read: RaceResult = serde_json::from_str(&data).expect("a result");
    assert_eq!(read, result);
}

/// Returns the unpacked data of an element of a page.
fn inflated(document: &Html, selector: &str) -> String {
    let data: String = all(document, selector)[0].text().collect();
    let data = base64::engine::general_purpose::STANDARD.decode(data);
    let data = data.expect("base64");
    let mut text = String::new();
    let mut inflated = flate2::read::GzDecoder::new(data.as_slice());
    std::io::Read::read_to_string(&mut inflated, &mut text).expect("UTF-8");
    text
}

#[test]
fn the_drawings_of_folded_races_are_packed_and_each_has_its_place() {
    let sweep = || source(Saved::Collection(Box::new(workload::sweep())));
    let document = Html::parse_document(&text(&[sweep(), race(timed()), sweep()]));
    let drawings = inflated(&document, "#drawings");
    let places = all(&document, "details [data-drawing]");
    let places: Vec<_> = places
        .iter()
        .filter_map(|place| place.attr("data-drawing"))
        .collect();
    let lines: Vec<String> = (0..drawings.lines().count())
        .map(|n| n.to_string())
        .collect();
    assert!(places.len() > 20 && places == lines, "{places:?}");
    assert!(all(&document, "details svg").is_empty());
    assert!(!all(&document, "svg").is_empty());
    let mut names = HashSet::new();
    for drawing in drawings.lines() {
        // A ranking has a second drawing, for narrow screens.
        let drawing = format!("<div>{drawing}</div>");
        let drawing = roxmltree::Document::parse(&drawing).expect("XML");
        let drawn = drawing.root_element().children();
        let drawn: Vec<_> = drawn.map(|node| node.tag_name().name()).collect();
        assert!(
            ["svg", "svg svg"].contains(&drawn.join(" ").as_str()),
            "{drawn:?}"
        );
        for node in drawing
            .descendants()
            .filter(|node| node.has_attribute("id"))
        {
            let id = node.attribute("id").expect("it has one");
            assert!(names.insert(id.to_owned()), "{id} twice");
            assert!(all(&document, &format!("[id='{id}']")).is_empty(), "{id}");
        }
    }
}

#[test]
fn the_page_says_what_markdown_says() {
    let text = text(&[race(races::usual())]);
    let document = Html::parse_document(&text);
    let verdict: String = all(&document, ".verdict")[0].text().collect();
    let markdown = Markdown.export(&races::usual()).expect("it exports");
    let markdown = String::from_utf8(markdown)
        .expect("UTF-8")
        .replace('\\', "");
    assert!(verdict.contains("Take mimalloc3"), "{verdict}");
    assert!(markdown.contains(&verdict), "{verdict}");
    let cells: HashSet<String> = all(&document, "td")
        .iter()
        .map(|cell| cell.text().collect())
        .collect();
    let rows = markdown
        .lines()
        .filter(|line| line.starts_with("| mimalloc3"));
    for cell in rows.flat_map(|row| row.split('|').skip(2)) {
        let cell = cell.trim();
        assert!(
            cell.is_empty() || cells.contains(cell),
            "{cell} is not in the page"
        );
    }
    let shown = document.root_element().text().collect::<String>();
    for part in [
        "heapdrome race",
        "AMD EPYC",
        "swap: 1.00 GiB",
        "grew 0.4% slower",
        "killed by SIGSEGV",
    ] {
        assert!(shown.contains(part), "{part}");
    }
}

fn names(plots: &[Plot]) -> Vec<&str> {
    plots.iter().map(|plot| plot.name.as_str()).collect()
}

#[test]
fn a_race_has_its_views() {
    let plots = plots(&Saved::Race(Box::new(timed())));
    let expected = [
        "ranking-wall",
        "ranking-cpu",
        "ranking-memory",
        "ranking-tree",
        "samples-wall",
        "samples-cpu",
        "samples-memory",
        "samples-tree",
        "memory-parts",
        "memory-timeline",
        "time-memory",
    ];
    assert_eq!(names(&plots), expected);
}

#[test]
fn a_sweep_has_its_curves() {
    let plots = plots(&Saved::Collection(Box::new(workload::sweep())));
    let curves = names(&plots)
        .into_iter()
        .filter(|name| name.starts_with("sweep-"));
    let curves: Vec<_> = curves.collect();
    assert!(
        curves.iter().any(|name| name.ends_with("-wall")),
        "{curves:?}"
    );
    assert!(
        curves.iter().any(|name| name.ends_with("-degradation")),
        "{curves:?}"
    );
}

#[test]
fn a_curve_is_labelled_with_what_was_swept() {
    let mut collection = workload::sweep();
    for race in &mut collection.races {
        // In one of the races this parameter equals the swept value by chance.
        race.parameters.insert(0, "distribution=1".to_owned());
    }
    let plots = plots(&Saved::Collection(Box::new(collection)));
    let curve = plots.iter().find(|plot| plot.name.starts_with("sweep-"));
    let svg = String::from_utf8(curve.expect("curves").svg()).expect("UTF-8");
    assert!(svg.contains(">threads<") && !svg.contains("distribution"));
}

#[test]
fn every_drawing_is_xml_without_what_is_no_number() {
    for source in sources() {
        for plot in plots(&source.saved) {
            let svg = String::from_utf8(plot.svg()).expect("UTF-8");
            let document = roxmltree::Document::parse(&svg).expect("XML");
            assert_eq!(document.root_element().tag_name().name(), "svg");
            for node in document.descendants() {
                assert_ne!(node.tag_name().name(), "script");
                for attribute in node.attributes() {
                    let value = attribute.value();
                    let drawn = !["id", "aria-labelledby", "class", "data-name"]
                        .contains(&attribute.name());
                    let odd = drawn && (value.contains("NaN") || value.contains("inf"));
                    assert!(!odd, "{}: {}={value}", plot.name, attribute.name());
                }
            }
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            assert!(plot.name.chars().all(plain), "{}", plot.name);
        }
    }
}

#[test]
fn an_image_shows_the_drawing_with_its_text() {
    let plots = plots(&Saved::Race(Box::new(timed())));
    let png = plots[0].png().expect("an image");
    let image = resvg::tiny_skia::Pixmap::decode_png(&png).expect("PNG");
    assert_eq!(image.width(), 1280);
    let dark = |pixel: &&resvg::tiny_skia::PremultipliedColorU8| {
        u32::from(pixel.red()) + u32::from(pixel.green()) + u32::from(pixel.blue()) < 200
    };
    // This part of the image contains the names of the rows, which are drawn in the embedded font.
    let width = image.width() as usize;
    let names = image
        .pixels()
        .chunks(width)
        .skip(100)
        .flat_map(|line| &line[20..270]);
    assert!(names.filter(dark).count() > 500, "the names are drawn");
}

#[test]
fn the_ranking_is_drawn_as_it_was() {
    let plots = plots(&Saved::Race(Box::new(races::usual())));
    let svg = String::from_utf8(plots[0].svg()).expect("UTF-8");
    golden::matches("ranking-wall.svg", &svg);
}
