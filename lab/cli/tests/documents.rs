//! Checks of the documents: every link works, every page is linked, the two lists of pages agree,
//! tables of suites and workloads are complete, and each concept has one name.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use heapdrome_suites::Makes;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the repository is there")
}

/// Returns the paths of all documents: the pages in the root folder and in `docs`.
fn documents() -> Vec<PathBuf> {
    let own = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"];
    let mut documents: Vec<_> = own.iter().map(|name| root().join(name)).collect();
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

/// Returns the links and pictures of a document, as written.
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

/// Returns the anchors of a document's headings, as code forges create them.
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
    // No page needs to link the list of chapters, because only mdBook reads it.
    let chapters = root().join("docs/SUMMARY.md");
    let lost: Vec<_> = documents()
        .into_iter()
        .filter(|page| *page != chapters && !linked.contains(page))
        .collect();
    assert!(lost.is_empty(), "no page links to {lost:?}");
}

/// Returns each heading of a document, and the pages that the text below it links, in the order of
/// their first links.
fn pages_by_heading(text: &str) -> Vec<(String, Vec<String>)> {
    let mut parts: Vec<(String, Vec<String>)> = Vec::new();
    let mut heading = false;
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Heading { .. }) => {
                heading = true;
                parts.push((String::new(), Vec::new()));
            }
            Event::End(TagEnd::Heading(_)) => heading = false,
            Event::Text(text) if heading => {
                let part = parts.last_mut().expect("it has begun");
                part.0.push_str(&text);
            }
            Event::Start(Tag::Link { dest_url, .. }) => {
                let page = dest_url.split('#').next().unwrap_or_default().to_owned();
                let part = parts.last_mut().expect("a heading comes first");
                if !part.1.contains(&page) {
                    part.1.push(page);
                }
            }
            _ => {}
        }
    }
    parts
}

#[test]
fn the_entrances_lead_to_the_chapters_in_their_order() {
    let entrances = pages_by_heading(&read(&root().join("docs/README.md")));
    let chapters = pages_by_heading(&read(&root().join("docs/SUMMARY.md")));
    assert_eq!(chapters.len(), 4, "the title and three parts");
    for (part, pages) in &chapters[1..] {
        let entrance = entrances.iter().find(|(heading, _)| heading == part);
        let (_, linked) = entrance.unwrap_or_else(|| panic!("no entrance: {part}"));
        // The page of results lists the others in that folder.
        let is_listed =
            |page: &&String| page.starts_with("results/") && !page.ends_with("README.md");
        let pages: Vec<_> = pages.iter().filter(|page| !is_listed(page)).collect();
        let linked: Vec<_> = linked.iter().filter(|page| pages.contains(page)).collect();
        assert_eq!(linked, pages, "{part}");
    }
}

#[test]
fn chapters_have_the_titles_of_their_pages() {
    let list = read(&root().join("docs/SUMMARY.md"));
    let chapter = |line: &str| {
        let link = line.trim_start().strip_prefix("- [")?.strip_suffix(')')?;
        let (title, page) = link.split_once("](")?;
        (!page.starts_with("results/")).then(|| (title.to_owned(), page.to_owned()))
    };
    let chapters: Vec<_> = list.lines().filter_map(chapter).collect();
    assert!(chapters.len() > 25, "chapters are found: {chapters:?}");
    for (title, page) in chapters {
        let text = read(&root().join("docs").join(&page));
        let heading = text.lines().next().unwrap_or_default();
        let rest = heading.strip_prefix("# ");
        let rest = rest.and_then(|heading| heading.strip_prefix(title.as_str()));
        // A heading may end with a version.
        let agrees = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(": "));
        assert!(agrees, "{page}: {heading}; the list says {title}");
    }
}

/// A report names documents as plain text instead of links, because the report's location is not
/// known. This test checks these names.
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

/// Returns the names in backquotes in the first column of a page's first table.
fn named_in_first_table(page: &str) -> BTreeSet<String> {
    let text = read(&root().join(page));
    let table = text.lines().skip_while(|line| !line.starts_with('|'));
    let rows = table.take_while(|line| line.starts_with('|'));
    let first = |row: &str| {
        let cell = row.split('|').nth(1)?.trim();
        Some(cell.strip_prefix('`')?.strip_suffix('`')?.to_owned())
    };
    rows.filter_map(first).collect()
}

#[test]
fn the_tables_of_suites_and_programs_name_each() {
    // The list of suites lacks these names: `all` stands for several suites, and no suite file
    // defines the others.
    let apart = ["all", "lgalloc", "misuse"].map(str::to_owned);
    let suites = heapdrome_suites::list().iter();
    let suites: BTreeSet<_> = suites
        .map(|suite| suite.name.clone())
        .chain(apart)
        .collect();
    assert_eq!(named_in_first_table("docs/suites.md"), suites);

    let programs = heapdrome_programs::list().iter();
    let programs: BTreeSet<_> = programs.map(|program| program.name.to_owned()).collect();
    assert_eq!(named_in_first_table("docs/workloads/programs.md"), programs);
}

#[test]
fn the_table_of_questions_names_each_synthetic_workload() {
    let text = read(&root().join("docs/workloads.md"));
    let (_, questions) = text
        .split_once("## Which workload answers which question")
        .expect("the section");
    for workload in heapdrome_workloads::list() {
        let row = format!("| `{}` |", workload.name);
        assert!(questions.contains(&row), "no row: {}", workload.name);
    }
}

/// Row of the glossary: a term, and the words that must not replace it.
struct Term {
    word: String,
    rejected: Vec<String>,
}

/// Heading of the glossary in ARCHITECTURE.md.
const GLOSSARY: &str = "Glossary";

/// Returns the glossary, which is the first table under its heading.
fn glossary() -> Vec<Term> {
    let text = read(&root().join("ARCHITECTURE.md"));
    let from = text.split(&format!("## {GLOSSARY}\n")).nth(1);
    let rows = from.unwrap_or_default().lines();
    let rows = rows.skip_while(|line| !line.starts_with('|'));
    let rows = rows.take_while(|line| line.starts_with('|')).skip(2);
    let term = |row: &str| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let rejected = cells[2].split(", ").filter(|word| !word.is_empty());
        Term {
            word: cells[0].to_owned(),
            rejected: rejected.map(str::to_owned).collect(),
        }
    };
    rows.map(term).collect()
}

/// Returns the words of a document in lower case, separated by spaces, without code and the
/// glossary.
fn prose(text: &str) -> String {
    let mut prose = String::new();
    let (mut heading, mut skipped, mut block) = (false, false, false);
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Heading { .. }) => (heading, skipped) = (true, false),
            Event::End(TagEnd::Heading(_)) => heading = false,
            Event::Start(Tag::CodeBlock(_)) => block = true,
            Event::End(TagEnd::CodeBlock) => block = false,
            Event::Text(text) if heading && &*text == GLOSSARY => skipped = true,
            Event::Text(text) if !skipped && !block => prose.push_str(&text),
            _ => prose.push(' '),
        }
    }
    words(&prose)
}

fn words(text: &str) -> String {
    let word = |c: char| c.is_alphanumeric() || "-_".contains(c);
    let words = text.split(|c| !word(c)).filter(|word| !word.is_empty());
    format!(" {} ", words.collect::<Vec<_>>().join(" ").to_lowercase())
}

/// Returns whether a text contains a word or its plural.
fn has(prose: &str, word: &str) -> bool {
    prose.contains(&format!(" {word} ")) || prose.contains(&format!(" {word}s "))
}

/// Returns the words of every document and manual page, each with its path. Omits published
/// results.
fn texts() -> Vec<(String, String)> {
    let results = root().join("docs/results");
    let documents = documents().into_iter();
    let own = documents.filter(|path| !path.starts_with(&results));
    let mut texts: Vec<_> = own
        .map(|path| (path.display().to_string(), prose(&read(&path))))
        .collect();
    let folder = tempfile::tempdir().expect("a folder");
    let heapdrome = Command::new(env!("CARGO_BIN_EXE_heapdrome"))
        .args(["man", "--dir"])
        .arg(folder.path())
        .output()
        .expect("heapdrome runs");
    assert!(heapdrome.status.success());
    for page in folder.path().read_dir().expect("a folder").flatten() {
        // In roff, hyphens and font changes begin with a backslash.
        let text = read(&page.path()).replace("\\-", "-").replace("\\f", " ");
        texts.push((page.path().display().to_string(), words(&text)));
    }
    texts
}

#[test]
fn one_thing_has_one_word() {
    let (glossary, texts) = (glossary(), texts());
    assert!(glossary.len() >= 40 && texts.len() > 40);
    let mut wrong = Vec::new();
    for (place, term) in glossary.iter().enumerate() {
        let Term { word, rejected } = term;
        if glossary[..place].iter().any(|other| other.word == *word) {
            wrong.push(format!("{word} is in the glossary twice"));
        }
        if !texts.iter().any(|(_, prose)| has(prose, word)) {
            wrong.push(format!("no text uses {word}"));
        }
        for (text, prose) in &texts {
            let used = rejected.iter().filter(|other| has(prose, other));
            wrong.extend(used.map(|other| format!("{text}: {other}; write {word}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn words_are_found_in_prose_and_not_in_code() {
    let text = "# Laps\n\nTwo *laps*, `code-word`, side-car, SIDE_CAR.\n\n    block word\n\n## Glossary\n\nhidden\n\n## Next\n\nseen";
    let prose = prose(text);
    assert!(has(&prose, "lap") && has(&prose, "side-car") && has(&prose, "seen"));
    for word in ["code-word", "side", "car", "hidden", "glossary", "block"] {
        assert!(!has(&prose, word), "{word}: {prose}");
    }
}
