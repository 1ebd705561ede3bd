//! Use of the header and the static library by C and C++ programs.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds the static library into `folder`. Does not use the usual target folder: cargo does not
/// report the library's path in it, and other copies of the repository may build there.
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

/// Compiles the example, which uses the whole interface, with `compiler`, and runs it.
fn the_example_runs(folder: &Path, library: &Path, compiler: &str, options: &[&str]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = folder.join(compiler);
    let compiled = Command::new(compiler)
        .args(options)
        .args(["-Wall", "-Wextra", "-Werror", "-pedantic", "-I"])
        .arg(root.join("include"))
        .arg(root.join("tests/c/example.c"))
        // The files that follow are libraries, not source files.
        .args(["-x", "none"])
        .arg(library)
        .args(["-lpthread", "-ldl", "-lm", "-o"])
        .arg(&program)
        .output()
        .expect("the compiler starts");
    let said = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{compiler}: {said}");
    let status = Command::new(&program).status().expect("it starts");
    assert_eq!(status.code(), Some(0), "the line that failed");
}

#[test]
fn programs_in_c_and_cxx_use_all_of_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let library = library(&folder.path().join("library"));
    the_example_runs(folder.path(), &library, "cc", &["-x", "c", "-std=c99"]);
    if Command::new("c++").arg("--version").output().is_ok() {
        the_example_runs(folder.path(), &library, "c++", &["-x", "c++", "-std=c++11"]);
    } else {
        println!("there is no C++ compiler here: the header was read as C alone");
    }
}
