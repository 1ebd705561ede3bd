//! Checks that there are no import cycles: within a crate, sibling modules use each other in one
//! direction only.
//!
//! A module and its descendants form a room, in which a child may use its parent, and a parent its
//! children. Between two sibling rooms, uses go in one direction only, at every level. The uses of
//! a module are read from its imports and from the paths in its code. Each use counts for the file
//! that contains the definition, even through re-exports.

mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use source::{Crate, Module};

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the repository is there")
}

/// Returns the root files of all crates that are checked.
fn roots() -> Vec<PathBuf> {
    let mut folders = vec![
        root().join("allocators/bumpmalloc"),
        root().join("allocators/elfmalloc"),
        root().join("allocators/lgalloc"),
        root().join("lab/witness/interpose"),
    ];
    folders.extend(entries(&root().join("lab")));
    folders.sort();
    let mut roots = Vec::new();
    for source in folders.iter().map(|folder| folder.join("src")) {
        roots.extend(["lib.rs", "main.rs"].map(|name| source.join(name)));
        for program in entries(&source.join("bin")) {
            roots.push(program.join("main.rs"));
            roots.push(program);
        }
    }
    roots.retain(|file| file.is_file());
    roots
}

/// Returns the entries of a folder; none if the folder does not exist.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = folder.read_dir().into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Uses between sibling rooms: for each pair of rooms, the pairs of files in which the first room
/// uses the second.
type Uses = BTreeMap<(Module, Module), BTreeSet<(PathBuf, PathBuf)>>;

/// Returns the uses between sibling rooms, at every level of a crate.
fn uses(whole: &Crate) -> Uses {
    let mut uses = Uses::new();
    for (from, to) in whole.references() {
        let shared = from.iter().zip(&to).take_while(|(one, other)| one == other);
        let level = shared.count();
        if level < from.len() && level < to.len() {
            let rooms = (from[..=level].to_vec(), to[..=level].to_vec());
            let files = (whole.files[&from].clone(), whole.files[&to].clone());
            uses.entry(rooms).or_default().insert(files);
        }
    }
    uses
}

/// Returns whether `to` can be reached from `from` along uses.
fn reaches(uses: &Uses, from: &Module, to: &Module) -> bool {
    let mut seen = BTreeSet::from([from]);
    let mut open = vec![from];
    while let Some(room) = open.pop() {
        let next = uses.keys().filter(|(user, _)| user == room);
        for used in next.map(|(_, used)| used) {
            if used == to {
                return true;
            }
            if seen.insert(used) {
                open.push(used);
            }
        }
    }
    false
}

/// Describes the uses that are part of a cycle, each with its files.
fn cycles(root_file: &Path, below: &Path) -> BTreeMap<String, Vec<String>> {
    let whole = Crate::read(root_file);
    let uses = uses(&whole);
    let name = |file: &Path| {
        file.strip_prefix(below)
            .unwrap_or(file)
            .display()
            .to_string()
    };
    let circular = uses
        .iter()
        .filter(|((from, to), _)| reaches(&uses, to, from));
    let told = circular.map(|((from, to), files)| {
        let rooms = format!(
            "{}: {} -> {}",
            name(root_file),
            from.join("::"),
            to.join("::")
        );
        let file = |(from, to): &(PathBuf, PathBuf)| format!("{} uses {}", name(from), name(to));
        (rooms, files.iter().map(file).collect())
    });
    told.collect()
}

#[test]
fn no_two_rooms_of_a_crate_use_each_other() {
    let roots = roots();
    assert!(roots.len() > 20, "{roots:?}");
    let found: BTreeMap<String, Vec<String>> = roots
        .iter()
        .flat_map(|file| cycles(file, &root()))
        .collect();
    let told = found
        .iter()
        .map(|(rooms, files)| format!("{rooms}\n    {}", files.join("\n    ")));
    let told: Vec<String> = told.collect();
    assert!(told.is_empty(), "import cycles:\n{}", told.join("\n"));
}

/// Returns the import cycles in a crate that consists of these files.
fn cycles_of(files: &[(&str, &str)]) -> BTreeMap<String, Vec<String>> {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("written");
    }
    cycles(&folder.path().join("lib.rs"), folder.path())
}

#[test]
fn a_cycle_is_found_with_its_files() {
    let found = cycles_of(&[
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "use crate::b::{self, X as Y}; fn f() { b::g() }"),
        ("b/mod.rs", "mod inner;"),
        (
            "b/inner.rs",
            "fn f() -> u8 { assert!(super::super::c::g()) }",
        ),
        ("c.rs", "pub fn g() { crate::a::f() }"),
    ]);
    let rooms: Vec<&String> = found.keys().collect();
    assert_eq!(
        rooms,
        ["lib.rs: a -> b", "lib.rs: b -> c", "lib.rs: c -> a"]
    );
    assert_eq!(found["lib.rs: b -> c"], ["b/inner.rs uses c.rs"]);
}

#[test]
fn a_re_export_counts_as_what_it_stands_for() {
    let lib = "mod a; mod b; pub use a::Thing as Other; pub use b::f;";
    let a = ("a.rs", "pub struct Thing; fn g() { crate::f() }");
    let apart = ("b.rs", "pub fn f() {}");
    assert_eq!(cycles_of(&[("lib.rs", lib), a, apart]).len(), 0);
    let circular = ("b.rs", "use crate::Other; pub fn f() {}");
    assert_eq!(cycles_of(&[("lib.rs", lib), a, circular]).len(), 2);
}

#[test]
fn parents_and_children_and_tests_are_no_cycles() {
    let found = cycles_of(&[
        (
            "lib.rs",
            "mod a; mod b { pub fn h() { super::f() } } fn f() { a::g(); b::h() }",
        ),
        (
            "a.rs",
            "pub fn g() { crate::f() } #[cfg(test)] mod tests { use super::*; use crate::b::h; }
             #[cfg(test)] #[path = \"none.rs\"] mod elsewhere; #[path = \"there.rs\"] mod here;",
        ),
        (
            "there.rs",
            "// use crate::b\nconst S: &str = \"crate::b::h()\"; use super::g;",
        ),
    ]);
    assert_eq!(found, BTreeMap::new());
    let found = cycles_of(&[
        ("lib.rs", "mod a; mod b { use crate::a::g; }"),
        ("a.rs", "mod c { pub fn f() { crate::b::h() } }"),
    ]);
    assert_eq!(found.len(), 2);
}
