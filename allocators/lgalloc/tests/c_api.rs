//! The header and the static library, as a C program uses them.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The static library that cargo has built beside this program; the last one, where several are left.
fn library() -> PathBuf {
    let own = std::env::current_exe().expect("this program has a path");
    let folder = own.parent().expect("it lies in a folder");
    let is_library = |path: &Path| {
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or("");
        name.starts_with("libheapdrome_lgalloc-") && name.ends_with(".a")
    };
    let entries = std::fs::read_dir(folder).expect("a folder");
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let libraries = paths.filter(|path| is_library(path));
    let age = |path: &PathBuf| path.metadata().and_then(|file| file.modified()).ok();
    libraries.max_by_key(age).expect("cargo builds the library")
}

#[test]
fn a_c_program_uses_all_of_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = folder.path().join("example");
    let compiled = Command::new("cc")
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-I"])
        .arg(root.join("include"))
        .arg(root.join("tests/c/example.c"))
        .arg(library())
        .args(["-lpthread", "-ldl", "-lm", "-o"])
        .arg(&program)
        .output()
        .expect("there is a C compiler");
    let said = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{said}");
    let status = Command::new(&program).status().expect("it starts");
    assert_eq!(status.code(), Some(0), "the line that failed");
}
