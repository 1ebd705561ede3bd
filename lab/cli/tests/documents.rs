//! The documents: every link leads somewhere, and every page is linked.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use heapdrome_suites::Makes;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// The folder of the repository.
fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the repository is there")
}

/// All documents.
fn documents() -> Vec<PathBuf> {
    let mut documents = vec![root().join("README.md"), root().join("ARCHITECTURE.md")];
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "md") {
                documents.push(path);
            }
        }
    }
    documents
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What a document links to and shows, as it is written.
fn targets(text: &str) -> Vec<String> {
    let events = Parser::new_ext(text, Options::ENABLE_TABLES);
    let target = |event| match event {
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => Some(dest_url),
        _ => None,
    };
    events
        .filter_map(target)
        .map(|url| url.into_string())
        .collect()
}

/// The names of a document's headings, as forges make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut heading: Option<String> = None;
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                anchors.extend(heading.take().map(|text| slug(&text)))
            }
            Event::Text(text) | Event::Code(text) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&text);
                }
            }
            _ => {}
        }
    }
    anchors
}

fn slug(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    let lower = heading.to_lowercase();
    lower
        .chars()
        .filter(kept)
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

#[test]
fn every_link_leads_somewhere_and_every_page_is_linked() {
    let mut linked = BTreeSet::from([root().join("README.md")]);
    let mut checked = 0;
    for document in documents() {
        let text = read(&document);
        let folder = document.parent().expect("it lies somewhere");
        for target in targets(&text)
            .iter()
            .filter(|target| !target.contains("://"))
        {
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let goal = if path.is_empty() {
                document.clone()
            } else {
                folder.join(path)
            };
            let told = format!("{}: {target}", document.display());
            let goal = goal
                .canonicalize()
                .unwrap_or_else(|error| panic!("{told}: {error}"));
            assert!(goal.starts_with(root()), "{told} leaves the repository");
            if !anchor.is_empty() {
                assert!(
                    anchors(&read(&goal)).contains(anchor),
                    "{told}: no such heading"
                );
            }
            linked.insert(goal);
            checked += 1;
        }
    }
    assert!(checked > 40, "links are found: {checked}");
    // A list of chapters is for mdBook alone.
    let chapters = root().join("docs/SUMMARY.md");
    let lost: Vec<_> = documents()
        .into_iter()
        .filter(|page| *page != chapters && !linked.contains(page))
        .collect();
    assert!(lost.is_empty(), "no page links to {lost:?}");
}

/// A report names them as plain text, since nobody knows where it will lie.
#[test]
fn what_the_report_of_a_suite_refers_to_is_there() {
    let mut referred = 0;
    for suite in heapdrome_suites::list() {
        let told = suite.targets.iter().chain(&suite.claims);
        let reasons = told.flat_map(|claim| &claim.see);
        let lists = suite.tables.iter().filter_map(|table| match &table.makes {
            Makes::Listed { rows, .. } => Some(rows),
            _ => None,
        });
        let listed = lists.flatten().filter_map(|row| row.last());
        for place in reasons.chain(listed) {
            let (path, anchor) = place.split_once('#').unwrap_or((place, ""));
            let found = anchors(&read(&root().join(path)));
            assert!(anchor.is_empty() || found.contains(anchor), "{place}");
            referred += 1;
        }
    }
    assert!(referred > 20, "places are found: {referred}");
}
