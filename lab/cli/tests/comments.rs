//! Checks of the code's comments: an item's documentation stands alone, and lines fit a page.

use std::path::{Path, PathBuf};

/// Maximum number of characters of a line that is a comment.
const LONGEST: usize = 100;

/// Beginnings that refer to another item, which a hover does not show.
const REFERRING: [&str; 3] = ["The same", "As above", "Likewise"];

/// Returns every Rust file in the repository's own folders.
fn sources() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut folders: Vec<_> = ["allocators", "lab", "tools"]
        .map(|name| root.join(name))
        .into();
    let mut sources = Vec::new();
    while let Some(folder) = folders.pop() {
        let entries = folder.read_dir().expect("a folder of the repository");
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                sources.push(path);
            }
        }
    }
    sources
}

/// Returns the faults in the comments of a source, each with the number of its line.
fn faults(source: &str) -> Vec<(usize, &'static str)> {
    let mut faults = Vec::new();
    let mut documented = false;
    for (place, line) in source.lines().enumerate() {
        let text = line.trim_start();
        if text.starts_with("//") && line.chars().count() > LONGEST {
            faults.push((place + 1, "longer than a page is wide"));
        }
        let item = text
            .strip_prefix("///")
            .or_else(|| text.strip_prefix("//!"));
        let begins = item.filter(|_| !documented).map(str::trim_start);
        if begins.is_some_and(|begins| REFERRING.iter().any(|word| begins.starts_with(word))) {
            faults.push((place + 1, "refers to another item"));
        }
        documented = item.is_some();
    }
    faults
}

#[test]
fn comments_fit_and_stand_alone() {
    let sources = sources();
    assert!(sources.len() > 500, "sources are found: {}", sources.len());
    let mut found = Vec::new();
    for path in sources {
        let source = std::fs::read_to_string(&path).expect("a source is text");
        let faults = faults(&source).into_iter();
        found.extend(faults.map(|(line, what)| format!("{}:{line}: {what}", path.display())));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn each_fault_is_found_in_its_line() {
    let long = format!("    // {}", "a".repeat(LONGEST - 6));
    let source =
        format!("/// Counts runs.\n/// The same\nfn a() {{}}\n/// The same again.\n{long}");
    assert_eq!(
        faults(&source),
        [
            (4, "refers to another item"),
            (5, "longer than a page is wide")
        ]
    );
    assert_eq!(faults(&long[1..]), []);
}
