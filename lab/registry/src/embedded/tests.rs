use std::collections::BTreeSet;
use std::path::Path;

use super::*;
use crate::entry::{Recipe, Source, Step};

fn all() -> Vec<Entry> {
    entries().expect("every entry can be read")
}

/// Returns the files below a folder of this crate, with their relative paths.
fn files_in(folder: &str) -> BTreeSet<String> {
    fn walk(root: &Path, folder: &Path, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).expect("readable") {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                walk(root, &path, found);
            } else {
                let path = path.strip_prefix(root).expect("below the root");
                found.insert(path.to_string_lossy().into_owned());
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut found = BTreeSet::new();
    walk(&root, &root, &mut found);
    found
}

fn recipe(entry: &Entry) -> Option<&Recipe> {
    match &entry.source {
        Source::Crate { recipe, .. } | Source::Debian { recipe, .. } | Source::Own { recipe } => {
            Some(recipe)
        }
        _ => None,
    }
}

#[test]
fn every_file_of_the_folders_is_embedded() {
    let named = |names: Vec<&str>, end: &str| -> BTreeSet<String> {
        names
            .into_iter()
            .map(|name| format!("{name}{end}"))
            .collect()
    };
    let entries = ENTRIES.iter().map(|(name, _)| *name).collect();
    assert_eq!(files_in("allocators"), named(entries, ".toml"));
    let glue = GLUE.iter().map(|(name, _)| *name).collect();
    assert_eq!(files_in("glue"), named(glue, ""));
}

/// Each row of the table has names in backticks, then a duration. The test uses the last number of
/// the duration.
#[test]
fn build_times_are_those_of_the_document() {
    let document = include_str!("../../../../docs/allocators.md");
    let heading = "| allocators | seconds |";
    let (_, table) = document.split_once(heading).expect("the table");
    let rows = table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let mut told = BTreeSet::new();
    for row in rows {
        let cells: Vec<&str> = row.split('|').collect();
        let words = cells[2].split_whitespace();
        let seconds: Vec<u64> = words.filter_map(|word| word.parse().ok()).collect();
        let names = cells[1].split('`').skip(1).step_by(2);
        told.extend(names.map(|name| (name.to_owned(), seconds.last().copied())));
    }
    let entries = all();
    let known = entries.iter().filter(|entry| entry.base.is_none());
    let known = known.filter(|entry| entry.build_seconds.is_some());
    let known: BTreeSet<_> = known
        .map(|entry| (entry.name.clone(), entry.build_seconds))
        .collect();
    let differing: Vec<_> = known.symmetric_difference(&told).collect();
    let fault = "in the entries or in docs/allocators.md alone";
    assert!(differing.is_empty(), "{fault}: {differing:?}");
}

#[test]
fn every_entry_is_complete() {
    for (entry, (file, _)) in all().iter().zip(ENTRIES) {
        let name = &entry.name;
        assert_eq!(name, file);
        assert!(
            !entry.summary.is_empty() && entry.summary.len() <= 100,
            "{name}: the summary"
        );
        assert!(!entry.summary.contains('\n'), "{name}: the summary");
        let is_own = matches!(entry.source, Source::Own { .. } | Source::Carried(_));
        assert!(
            entry.homepage.starts_with("https://") || (is_own && entry.homepage.is_empty()),
            "{name}: the homepage"
        );
        assert!(
            entry.family != "yardstick" || !entry.conforming,
            "{name}: a yardstick races by its name only"
        );
        assert!(
            !entry.licence.is_empty() && !entry.family.is_empty(),
            "{name}"
        );
        let can_be_had = !matches!(entry.source, Source::Unavailable(_));
        let adopts = entry.adoption.rust.is_some() && entry.adoption.cmake.is_some();
        assert!(!can_be_had || adopts, "{name}: how to adopt it");
        assert!(
            recipe(entry).is_none() || entry.version.is_some(),
            "{name}: the version"
        );
    }
}

#[test]
fn names_and_aliases_are_unique_and_plain() {
    let mut seen = BTreeSet::new();
    for entry in all() {
        for name in std::iter::once(entry.name).chain(entry.aliases) {
            assert!(
                name.chars()
                    .all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)),
                "{name}"
            );
            assert!(seen.insert(name.clone()), "{name} is there twice");
        }
    }
}

#[test]
fn every_pin_is_well_formed() {
    let is_digest = |text: &str| {
        text.len() == 64
            && text
                .chars()
                .all(|c| c.is_ascii_digit() || ('a'..='f').contains(&c))
    };
    for entry in all() {
        match &entry.source {
            Source::Crate { pin, .. } => {
                assert!(is_digest(&pin.sha256), "{}", entry.name);
                assert!(
                    pin.version.starts_with(|c: char| c.is_ascii_digit()),
                    "{}",
                    entry.name
                );
            }
            Source::Debian { pin, .. } => {
                assert!(is_digest(&pin.sha256), "{}", entry.name);
                assert!(
                    pin.archive.contains(&pin.upstream_version),
                    "{}",
                    entry.name
                );
            }
            _ => {}
        }
    }
}

#[test]
fn every_recipe_hangs_together() {
    for entry in all() {
        let Some(recipe) = recipe(&entry) else {
            continue;
        };
        let name = &entry.name;
        assert!(
            Path::new(&recipe.library).is_relative() && recipe.library.contains(".so"),
            "{name}"
        );
        for step in &recipe.steps {
            let text = format!("{step:?}");
            assert!(
                !text.contains("-O2") && !text.contains("-march"),
                "{name}: other flags: {text}"
            );
            let mut rest = text.as_str();
            while let Some(start) = rest.find("{glue}/") {
                rest = &rest[start + "{glue}/".len()..];
                let path = rest.split('"').next().unwrap_or_default();
                let is_known = GLUE.iter().any(|(glue, _)| glue.starts_with(path));
                assert!(is_known, "{name}: there is no glue {path}");
            }
            if let Step::Link { output, .. } = step {
                assert_eq!(output, &recipe.library, "{name}");
            }
        }
    }
}

#[test]
fn a_variant_shares_the_source_of_its_base() {
    let all = all();
    for entry in all.iter().filter(|entry| entry.base.is_some()) {
        let base = all
            .iter()
            .find(|base| Some(&base.name) == entry.base.as_ref());
        let base = base.expect("the base is there");
        assert_eq!(entry.source, base.source);
        assert_ne!(entry.settings, base.settings);
    }
}

#[test]
fn mistakes_in_an_entry_are_told() {
    let none = |_: &str| None;
    for (text, part) in [
        ("name = 1", "string"),
        ("name = \"x\"\nsummary = \"y\"\nbase = \"z\"", "its base z"),
        (
            "name = \"x\"\nsummary = \"y\"\nlibc = true\nunavailable = \"z\"",
            "exactly one source",
        ),
        ("name = \"x\"\nsummary = \"y\"", "exactly one source"),
        (
            "name = \"x\"\nsummary = \"y\"\nlibc = true",
            "family is missing",
        ),
        ("name = \"x\"\nsummary = \"y\"\nsize = 1", "size"),
    ] {
        let message = entry::parse(text, &none).expect_err("a mistake");
        assert!(message.contains(part), "{text:?}: {message}");
    }
}
