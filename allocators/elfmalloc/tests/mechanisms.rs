//! Checks the tables of mechanisms in `docs/elfmalloc-design.md`: they name every numeric constant
//! of the sources, and their counts are right. Each mechanism has a figure in
//! `docs/elfmalloc-results.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const DESIGN: &str = include_str!("../../../docs/elfmalloc-design.md");
const RESULTS: &str = include_str!("../../../docs/elfmalloc-results.md");
/// Heading of the tables of the design.
const MECHANISMS: &str = "\n## Mechanisms\n";
/// Heading of the table of the results.
const WORTH: &str = "\n## What each mechanism is worth\n";

/// Path below `src` of the file that defines a constant, and the name of the constant.
type Constant = (String, String);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Returns the path below `src` and the text of every source file.
fn sources() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(root()).expect("it is below");
            let text = fs::read_to_string(&path).expect("a text");
            found.insert(name.display().to_string(), text);
        }
    }
    found
}

/// Returns the part of a source file before its tests.
fn shipped(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {")
        .next()
        .unwrap_or(text)
}

/// Returns the name of the numeric constant that a line defines, if any.
fn constant(line: &str) -> Option<&str> {
    let (visibility, definition) = line.trim_start().split_once("const ")?;
    let (name, rest) = definition.split_once(": ")?;
    let (kind, _) = rest.split_once(" =")?;
    let is_item = visibility.is_empty() || visibility.starts_with("pub");
    (is_item && is_number(kind)).then_some(name)
}

/// Returns whether a type is numeric.
fn is_number(kind: &str) -> bool {
    let size = kind.strip_prefix(['u', 'i']);
    kind == "Units" || size.is_some_and(|size| size == "size" || size.parse::<u8>().is_ok())
}

fn constants(sources: &BTreeMap<String, String>) -> BTreeSet<Constant> {
    let mut all = BTreeSet::new();
    for (file, text) in sources
        .iter()
        .filter(|(file, _)| !file.ends_with("tests.rs"))
    {
        let names = shipped(text).lines().filter_map(constant);
        all.extend(names.map(|name| (file.clone(), name.to_owned())));
    }
    all
}

/// Returns the words between backquotes.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// Returns the rows of all tables in a section of a page, each as a list of its cells.
fn rows_of(page: &'static str, section: &str) -> Vec<Vec<&'static str>> {
    let (_, section) = page.split_once(section).expect("the section");
    let section = section.split("\n## ").next().unwrap_or(section);
    let cells = |line: &'static str| {
        let row = line.strip_prefix("| ")?.strip_suffix(" |")?;
        Some(row.split(" | ").map(str::trim).collect::<Vec<_>>())
    };
    section.lines().filter_map(cells).collect()
}

/// Returns the rows of all tables of mechanisms and constants, each as a list of its cells.
fn rows() -> Vec<Vec<&'static str>> {
    rows_of(DESIGN, MECHANISMS)
}

/// Returns the rows of the default's mechanisms, which are the only ones with four cells.
fn of_default() -> Vec<Vec<&'static str>> {
    let rows = rows().into_iter().filter(|row| row.len() == 4);
    rows.skip(1).collect()
}

/// Returns the constants that the rows name: names in the second-last cell, files in the last.
fn documented(known: &BTreeSet<Constant>) -> Vec<Constant> {
    let mut all = Vec::new();
    for row in rows() {
        let [_, .., names, files] = row[..] else {
            continue;
        };
        for name in quoted(names) {
            let file = quoted(files)
                .find(|file| known.contains(&((*file).to_owned(), name.to_owned())))
                .unwrap_or_else(|| panic!("{name} is in none of {files}"));
            all.push((file.to_owned(), name.to_owned()));
        }
    }
    all
}

/// Returns the number in the page's row for `what`.
fn counted(what: &str) -> usize {
    let row = rows().into_iter().find(|row| row[0] == what);
    let row = row.unwrap_or_else(|| panic!("no row: {what}"));
    row[1].parse().expect("a number")
}

#[test]
fn the_page_names_every_constant_once() {
    let known = constants(&sources());
    let documented = documented(&known);
    let distinct: BTreeSet<Constant> = documented.iter().cloned().collect();
    assert_eq!(distinct.len(), documented.len(), "one is named twice");
    assert_eq!(distinct, known);
}

#[test]
fn the_page_counts_right() {
    let sources = sources();
    let shipped_files = sources.keys().filter(|file| !file.ends_with("tests.rs"));
    assert_eq!(counted("source files"), shipped_files.count());
    let longest = sources.values().map(|text| text.lines().count()).max();
    assert_eq!(Some(counted("lines of the longest")), longest);
    assert_eq!(counted("numeric constants"), constants(&sources).len());
    let of_default = of_default();
    assert_eq!(counted("mechanisms of the default"), of_default.len());
    let names = of_default.iter().flat_map(|row| quoted(row[2]));
    assert_eq!(counted("their numeric constants"), names.count());
    let is_block = |line: &&str| {
        let code = line.split('/').next().unwrap_or(line);
        code.split("unsafe {").nth(1).is_some()
    };
    let blocks = sources
        .values()
        .flat_map(|text| text.lines())
        .filter(is_block);
    assert_eq!(counted("unsafe blocks"), blocks.count());
}

#[test]
fn the_results_have_a_row_for_each_mechanism_of_the_default() {
    let worth = rows_of(RESULTS, WORTH).into_iter().skip(1);
    let worth: Vec<_> = worth.map(|row| row[0]).collect();
    let mechanisms: Vec<_> = of_default().into_iter().map(|row| row[0]).collect();
    assert_eq!(worth, mechanisms);
}
