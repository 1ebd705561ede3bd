//! The header and the static library, as a C program uses them.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The static library, built into a folder of its own: cargo names none of those in its own folder to
/// this program, and other copies of the repository may build there too.
fn library(folder: &Path) -> PathBuf {
    let built = Command::new(env!("CARGO"))
        .args(["build", "--lib", "--quiet", "--locked", "--offline"])
        .arg("--manifest-path")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"))
        .arg("--target-dir")
        .arg(folder)
        .env_remove("CARGO_BUILD_TARGET")
        .output()
        .expect("cargo starts");
    let said = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "{said}");
    folder.join("debug/libheapdrome_lgalloc.a")
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
        .arg(library(&folder.path().join("library")))
        .args(["-lpthread", "-ldl", "-lm", "-o"])
        .arg(&program)
        .output()
        .expect("there is a C compiler");
    let said = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{said}");
    let status = Command::new(&program).status().expect("it starts");
    assert_eq!(status.code(), Some(0), "the line that failed");
}
