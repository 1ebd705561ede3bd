//! Programs that are linked with a library, with its header and the flags of its pkg-config file.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::libraries::build;

/// Installs a library, its header and its pkg-config file as allocators/preload/README.md
/// describes.
fn install(name: &str, prefix: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../preload")
        .join(name);
    let built = build(
        &format!("heapdrome-preload-{name}"),
        &format!("lib{}.so", name.replace('-', "_")),
    );
    let (include, library) = (prefix.join("include"), prefix.join("lib"));
    for folder in [&include, &library.join("pkgconfig")] {
        std::fs::create_dir_all(folder).expect("the folder is writable");
    }
    let header = format!("{name}.h");
    std::fs::copy(source.join(&header), include.join(&header)).expect("there is a header");
    std::fs::copy(built, library.join(format!("lib{name}.so"))).expect("it was built");
    let template = std::fs::read_to_string(source.join(format!("{name}.pc.in")));
    let filled = template
        .expect("there is a template")
        .replace("@prefix@", &prefix.display().to_string())
        .replace("@version@", env!("CARGO_PKG_VERSION"));
    std::fs::write(package_file(name, prefix), filled).expect("the folder is writable");
}

fn package_file(name: &str, prefix: &Path) -> PathBuf {
    prefix.join("lib/pkgconfig").join(format!("{name}.pc"))
}

/// Returns the flags in the pkg-config file, sorted. Expands variables; these files use no other
/// feature of the format.
fn flags_in_file(name: &str, prefix: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(package_file(name, prefix)).expect("it was written");
    let mut variables: Vec<(String, String)> = Vec::new();
    let mut flags = Vec::new();
    for line in text.lines() {
        let put_in = variables
            .iter()
            .fold(line.to_owned(), |line, (name, value)| {
                line.replace(&format!("${{{name}}}"), value)
            });
        if let Some(found) = ["Cflags: ", "Libs: "]
            .iter()
            .find_map(|key| put_in.strip_prefix(key))
        {
            flags.extend(found.split(' ').map(str::to_owned));
        } else if let Some((name, value)) = put_in.split_once('=') {
            variables.push((name.to_owned(), value.to_owned()));
        }
    }
    flags.sort();
    flags
}

/// Returns the flags that pkg-config prints, sorted; `None` if pkg-config is not installed.
fn flags_by_tool(name: &str, prefix: &Path) -> Option<Vec<String>> {
    let output = Command::new("pkg-config")
        .args(["--cflags", "--libs", name])
        .env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"))
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    let mut flags: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    flags.sort();
    Some(flags)
}

fn compile_and_run(name: &str, prefix: &Path, compiler: &[&str], source: &str) {
    let library = format!("lib{name}.so");
    let program = prefix.join(source).with_extension("program");
    let output = Command::new(compiler[0])
        .args(&compiler[1..])
        .args(["-Wall", "-Wextra", "-Werror", "-fno-builtin"])
        .arg(format!("-DHEADER=<{name}.h>"))
        .arg(format!("-DLIBRARY=\"{library}\""))
        .arg("-o")
        .arg(&program)
        .arg(
            Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("tests/suite")
                .join(source),
        )
        .args(flags_in_file(name, prefix))
        .output()
        .expect("the compiler starts");
    assert!(output.status.success(), "{name}, {source}: {output:?}");
    let output = Command::new(&program)
        .env("LD_LIBRARY_PATH", prefix.join("lib"))
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{name}, {source}: {output:?}");
}

#[test]
fn programs_in_c_and_cxx_are_served_by_the_library_that_they_are_linked_with() {
    for name in [
        "bumpmalloc",
        "elfmalloc",
        "elfmalloc-l",
        "elfmalloc-hardened",
    ] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let prefix = folder.path();
        install(name, prefix);
        if let Some(flags) = flags_by_tool(name, prefix) {
            assert_eq!(flags, flags_in_file(name, prefix));
        }
        compile_and_run(name, prefix, &["gcc", "-std=c99"], "linked.c");
        compile_and_run(name, prefix, &["g++", "-std=c++17"], "linked.cpp");
    }
}
