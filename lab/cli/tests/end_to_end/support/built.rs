//! Allocators and programs for these tests, each compiled once per test process.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock};

/// Returns the folder of the built fixtures: beside the tests, or in the system's temporary folder
/// if that path has a space, a colon or a dollar sign, which LD_PRELOAD cannot express.
fn fixture_folder() -> PathBuf {
    let beside = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fixtures");
    match beside.to_string_lossy().contains([' ', ':', '$']) {
        true => std::env::temp_dir().join("heapdrome-test-fixtures"),
        false => beside,
    }
}

/// Returns an allocator of the fixtures; `fault` is empty for a sound one.
pub fn allocator(fault: &str) -> PathBuf {
    let name = format!("lib{}.so", if fault.is_empty() { "sound" } else { fault });
    let define = format!("-D{}", fault.to_uppercase());
    let mut flags = vec!["-shared", "-fPIC", "-O1", "-fno-builtin"];
    if !fault.is_empty() {
        flags.push(&define);
    }
    build(&name, &["allocator.c"], &flags)
}

/// Returns an allocator whose operators new and delete jump to its malloc and free.
pub fn forwarding_allocator() -> PathBuf {
    let flags = ["-shared", "-fPIC", "-O2", "-fno-builtin"];
    build("libforwarding.so", &["allocator.c", "forwards.c"], &flags)
}

/// Returns an allocator with one of the faults that the conformance suite detects.
pub fn faulty(fault: &str) -> PathBuf {
    let define = format!("-D{fault}");
    let source = "../../../../../allocators/conformance/tests/suite/faulty.c";
    let flags = [
        "-shared",
        "-fPIC",
        "-O1",
        "-fno-builtin",
        "-pthread",
        &define,
    ];
    build(&format!("libfaulty-{fault}.so"), &[source], &flags)
}

/// Returns an allocator that reacts to misuse in this way; if `way` is empty, one that ignores
/// misuse.
pub fn misused(way: &str) -> PathBuf {
    let define = format!("-D{}", way.to_uppercase());
    let mut flags = vec!["-shared", "-fPIC", "-O1", "-fno-builtin"];
    if !way.is_empty() {
        flags.push(&define);
    }
    build(&format!("libmisused-{way}.so"), &["misused.c"], &flags)
}

/// Returns an allocator that a signal handler may call even if the handler interrupted the
/// allocator.
pub fn reentrant_allocator() -> PathBuf {
    let flags = ["-shared", "-fPIC", "-O1", "-fno-builtin"];
    build("libreentrant.so", &["reentrant.c"], &flags)
}

/// Returns the program of the fixtures.
pub fn program() -> String {
    text_of(build("program", &["program.c"], &["-O1", "-fno-builtin"]))
}

/// Returns the program of the fixtures, statically linked.
pub fn static_program() -> String {
    text_of(build(
        "program-static",
        &["program.c"],
        &["-O1", "-fno-builtin", "-static"],
    ))
}

/// Returns the program of the fixtures with an allocator of its own.
pub fn bundling_program() -> String {
    let flags = ["-O1", "-fno-builtin"];
    text_of(build(
        "program-bundling",
        &["program.c", "bundled.c"],
        &flags,
    ))
}

/// Returns the program of the fixtures, linked with one of their allocators.
pub fn linked_program(library: &Path) -> String {
    let folder = library.parent().and_then(Path::to_str).expect("plain");
    let rpath = format!("-Wl,-rpath,{folder}");
    let library = library.to_str().expect("plain");
    let flags = ["-O1", "-fno-builtin", &rpath, "-Wl,--no-as-needed", library];
    text_of(build("program-linked", &["program.c"], &flags))
}

/// Returns a program that allocates by `operator new`.
pub fn news_program() -> String {
    let flags = ["-O1", "-Wl,--no-as-needed", "-lstdc++"];
    text_of(build("news", &["news.c"], &flags))
}

/// Returns a program that bypasses malloc, with an allocation interface under these names.
pub fn private_program(names: &str) -> String {
    let define = format!("-DNAMES_{}", names.to_uppercase());
    let flags = ["-O1", "-fno-builtin", "-rdynamic", &define];
    text_of(build(&format!("private-{names}"), &["private.c"], &flags))
}

/// Returns a program that allocates in the ways that a recorder must follow.
pub fn recorded_program() -> String {
    let flags = ["-O1", "-fno-builtin", "-pthread"];
    text_of(build("recorded", &["recorded.c"], &flags))
}

/// Returns a program that allocates at the end of known chains of calls.
pub fn stacks_program() -> String {
    // With these flags, each function keeps its own stack frame.
    let flags = ["-O1", "-fno-builtin", "-fno-inline", "-pthread"];
    text_of(build("stacks", &["stacks.c"], &flags))
}

/// Returns a C++ program that catches failed allocations, and an allocator that throws on failure.
pub fn throwing_program() -> (String, PathBuf) {
    let cpp = ["-O1", "-fno-builtin", "-Wl,--no-as-needed", "-lstdc++"];
    let library = ["-shared", "-fPIC"].iter().chain(&cpp).copied();
    let library: Vec<_> = library.collect();
    (
        text_of(build("thrown", &["thrown.cpp"], &cpp)),
        build("libthrowing.so", &["throwing.cpp"], &library),
    )
}

/// Returns a library that allocates for the program that opens it.
pub fn opened_library() -> PathBuf {
    let flags = ["-shared", "-fPIC", "-O1", "-fno-builtin"];
    build("libopened.so", &["opened.c"], &flags)
}

fn text_of(path: PathBuf) -> String {
    path.into_os_string().into_string().expect("a plain path")
}

/// Compiles a fixture, once per test process.
fn build(name: &str, sources: &[&str], flags: &[&str]) -> PathBuf {
    static BUILT: OnceLock<Mutex<HashMap<String, PathBuf>>> = OnceLock::new();
    let mut built = BUILT
        .get_or_init(Mutex::default)
        .lock()
        .expect("no test failed in here");
    if let Some(path) = built.get(name) {
        return path.clone();
    }
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/end_to_end/fixtures");
    let folder = fixture_folder();
    std::fs::create_dir_all(&folder).expect("a folder for fixtures");
    let path = folder.join(name);
    let fresh = folder.join(format!("{name}.{}", std::process::id()));
    let mut gcc = Command::new("gcc");
    gcc.args(flags).arg("-o").arg(&fresh);
    gcc.args(sources.iter().map(|source| fixtures.join(source)));
    let output = gcc.output().expect("gcc is installed");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    std::fs::rename(&fresh, &path).expect("the fixture is put into place");
    built.insert(name.to_owned(), path.clone());
    path
}

/// Returns the program that holds memory from malloc, and maps further memory itself.
pub fn fidelity_program() -> String {
    text_of(build("fidelity", &["fidelity.c"], &["-O1", "-fno-builtin"]))
}
