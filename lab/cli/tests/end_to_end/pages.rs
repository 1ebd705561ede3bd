//! Tests of the pages for all results in a folder, and of the folder into which the pages are
//! written.

use std::path::Path;

use crate::saved::{self, EXPERIMENT, RACE, SWEEP};
use crate::support::Site;

/// Creates a folder of two results, one of them compressed, and of other files.
fn site() -> Site {
    let site = Site::new();
    std::fs::create_dir_all(site.path("results/folder.json")).expect("a folder");
    site.file("results/b race.json", saved::text(RACE));
    site.file("sweep.json", saved::text(SWEEP));
    let ask = ["show", "sweep.json", "--json", "results/a.json.gz"];
    site.run(&ask).ends_with(0);
    site.file("results/README.md", "no result");
    site
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the names of the visible files in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = folder.read_dir().expect("a folder").flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<_> = names.filter(|name| !name.starts_with('.')).collect();
    names.sort();
    names
}

/// Returns the targets of a page's links.
fn links(page: &str) -> Vec<&str> {
    let rest = page.split("href=\"").skip(1);
    rest.filter_map(|rest| Some(rest.split_once('"')?.0))
        .collect()
}

const REPORT: [&str; 4] = ["report", "results", "-o", "site"];

#[test]
fn each_result_of_a_folder_has_its_page_and_the_index_links_to_it() {
    let site = site();
    site.run(&REPORT)
        .complains(0, &["wrote site/index.html; pages beside it: 2"]);
    let folder = site.path("site");
    assert_eq!(names(&folder), ["a.html", "b-race.html", "index.html"]);
    site.run(&["report", "results/b race.json", "-o", "alone.html"])
        .ends_with(0);
    let page = read(&folder.join("b-race.html"));
    assert_eq!(page, read(&site.path("alone.html")));
    let index = read(&folder.join("index.html"));
    assert_eq!(links(&index), ["a.html", "b-race.html"]);
    let race = saved::value(RACE);
    let started = race["started"].as_str().expect("a time");
    let processor = race["machine"]["processor"].as_str().expect("a name");
    let (_, verdict) = page.split_once("<p class=\"verdict\">").expect("a verdict");
    let (verdict, _) = verdict.split_once(". ").expect("its first sentence");
    for told in [
        started,
        processor,
        verdict,
        "Allocators raced: ",
        "2 results",
    ] {
        assert!(index.contains(told), "{told} is missing in {index}");
    }
    assert!(index.contains("script-src 'none'") && !index.contains("<script"));
}

#[test]
fn a_folder_is_filled_again_only_by_who_filled_it() {
    let site = site();
    site.run(&REPORT).ends_with(0);
    site.file("site/note.html", "mine");
    std::fs::remove_file(site.path("results/a.json.gz")).expect("removed");
    site.run(&REPORT).ends_with(0);
    let kept = ["b-race.html", "index.html", "note.html"];
    assert_eq!(names(&site.path("site")), kept, "only its own page is gone");
    site.file("results/note.json", saved::text(RACE));
    site.run(&REPORT)
        .complains(2, &["site/note.html exists", "--force"]);
    assert_eq!(read(&site.path("site/note.html")), "mine");
    site.run(&[&REPORT[..], &["--force"]].concat()).ends_with(0);
    assert!(read(&site.path("site/note.html")).contains("Allocators raced"));

    std::fs::create_dir(site.path("empty")).expect("a folder");
    site.run(&["report", "results", "-o", "empty"]).ends_with(0);
    for force in [&[][..], &["--force"]] {
        let ask = ["report", "results", "-o", "results"];
        site.run(&[&ask[..], force].concat())
            .complains(2, &["results holds files that heapdrome did not write"]);
    }
    assert!(!site.path("results/index.html").exists());
}

#[test]
fn what_cannot_be_a_folder_of_pages_is_refused() {
    let site = site();
    let refuse = |ask: &[&str], words: &str| site.run(ask).complains(2, &[words]);
    refuse(&["report", "results", "-o", "-"], "name a folder");
    refuse(
        &["report", "results", "-o", "sweep.json"],
        "sweep.json is a file",
    );
    let both = ["report", "sweep.json", "results", "-o", "site"];
    refuse(&both, "results is a folder and cannot be combined");
    std::fs::create_dir(site.path("empty")).expect("a folder");
    refuse(
        &["report", "empty", "-o", "site"],
        "there is no result in empty",
    );
    refuse(&["plot", "results", "-o", "site"], "cannot read results");
    assert!(!site.path("site").exists());
}

#[test]
fn json_that_is_no_result_is_left_out_and_a_damaged_result_is_not() {
    let site = site();
    site.file("results/other.json", "[1, 2]");
    site.run(&REPORT).says(
        0,
        &["left out: results/other.json is not a heapdrome result"],
    );
    assert_eq!(
        names(&site.path("site")),
        ["a.html", "b-race.html", "index.html"]
    );
    let whole = saved::text(EXPERIMENT);
    site.file("results/cut.json", &whole[..whole.len() / 2]);
    let ask = ["report", "results", "-o", "other"];
    site.run(&ask)
        .says(2, &["results/cut.json ends in the middle"]);
    assert!(!site.path("other").exists());
}

#[test]
fn a_list_that_names_other_files_removes_none_of_them() {
    let site = site();
    site.run(&REPORT).ends_with(0);
    site.file("kept.html", "mine");
    site.file("site/kept.txt", "mine");
    site.file(
        "site/.heapdrome-pages",
        "../kept.html\nkept.txt\nindex.html\na.html\nb-race.html\n",
    );
    site.run(&REPORT).ends_with(0);
    for name in ["kept.html", "site/kept.txt"] {
        assert_eq!(read(&site.path(name)), "mine", "{name}");
    }
}

/// Every published result must still produce a page after any change of the reports.
#[test]
fn every_published_result_has_a_page() {
    let site = Site::new();
    let published = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
    let results = published.to_str().expect("a plain path");
    // This call has no time limit, because an unoptimised build takes 20 seconds of processor time
    // for all pages.
    let mut report = site.command(&["report", results, "-o", "site"]);
    let output = report.output().expect("heapdrome starts");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let folder = site.path("site");
    let is_result = |name: &String| name.ends_with(".json") || name.ends_with(".json.gz");
    let stem = |name: String| name.split('.').next().map(str::to_owned);
    let results = names(&published).into_iter().filter(is_result);
    let results: Vec<String> = results.filter_map(stem).collect();
    assert!(results.len() >= 20, "results are published: {results:?}");
    let expected: Vec<String> = results.iter().map(|name| format!("{name}.html")).collect();
    let index = read(&folder.join("index.html"));
    assert_eq!(links(&index), expected);
    for name in &expected {
        let page = read(&folder.join(name));
        let head = page.split_once("<body>").expect("a body").0;
        assert!(head.contains("Content-Security-Policy"), "{name}");
        assert!(
            page.contains("id=\"data-0\"") && page.ends_with("</html>\n"),
            "{name}"
        );
        let (_, verdict) = page.split_once("<p class=\"verdict\">").expect("a verdict");
        assert!(!verdict.starts_with("</p>"), "{name} says nothing");
    }
}
