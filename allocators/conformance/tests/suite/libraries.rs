use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use heapdrome_conformance::{Library, Program, Suite};

fn must_pass(library: Library) {
    let suite = Suite {
        library,
        executable: env!("CARGO_BIN_EXE_heapdrome-conformance").into(),
        seed: 7,
        programs: 1,
        steps: 100_000,
        threads: 8,
    };
    let failures = suite.run().expect("a temporary folder");
    let texts: Vec<String> = failures.iter().map(ToString::to_string).collect();
    assert!(texts.is_empty(), "{}", texts.join("\n"));
}

/// Builds one of the libraries under allocators/preload, in the build profile that users use.
pub(crate) fn build(package: &str, file: &str) -> PathBuf {
    let executable = Path::new(env!("CARGO_BIN_EXE_heapdrome-conformance"));
    let target = executable
        .parent()
        .and_then(Path::parent)
        .expect("a target folder");
    let status = Command::new(env!("CARGO"))
        .args([
            "build",
            "--quiet",
            "--profile",
            "preload",
            "--package",
            package,
            "--target-dir",
        ])
        .arg(target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .expect("cargo runs");
    assert!(status.success(), "{package} does not build");
    target.join("preload").join(file)
}

/// Compiles a C program of this crate into a folder.
pub(crate) fn compile(folder: &Path, source: &Path) -> PathBuf {
    let program = folder.join("program");
    let status = Command::new("gcc")
        .args(["-O1", "-fno-builtin", "-w", "-pthread", "-o"])
        .arg(&program)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(source))
        .status()
        .expect("gcc runs");
    assert!(status.success(), "{} does not compile", source.display());
    program
}

/// Runs a generated program with a preloaded library and the given environment variables.
pub(crate) fn execute(library: &Path, program: &Program, variables: &[(&str, &str)]) -> Output {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), program.to_string()).expect("it can be written");
    Command::new(env!("CARGO_BIN_EXE_heapdrome-conformance"))
        .arg("execute")
        .arg(file.path())
        .env("LD_PRELOAD", library)
        .envs(variables.iter().copied())
        .output()
        .expect("the program can be run")
}

#[test]
fn glibc_passes() {
    must_pass(Library::System);
}

#[test]
fn bumpmalloc_passes() {
    must_pass(Library::File(build(
        "heapdrome-preload-bumpmalloc",
        "libbumpmalloc.so",
    )));
}

#[test]
fn elfmalloc_passes() {
    must_pass(Library::File(build(
        "heapdrome-preload-elfmalloc",
        "libelfmalloc.so",
    )));
}

#[test]
fn elfmalloc_l_passes() {
    must_pass(Library::File(build(
        "heapdrome-preload-elfmalloc-l",
        "libelfmalloc_l.so",
    )));
}

#[test]
fn elfmalloc_hardened_passes() {
    must_pass(Library::File(build(
        "heapdrome-preload-elfmalloc-hardened",
        "libelfmalloc_hardened.so",
    )));
}
