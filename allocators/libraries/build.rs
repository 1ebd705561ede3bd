//! Builds the preloadable libraries and embeds them in this crate, so that an installed binary
//! needs no other file. Stable Cargo does not support dependencies on another package's shared
//! object, so a second cargo process builds them in its own folder.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Packages below `allocators/preload`, the library that Cargo builds for each, and the library's
/// proper name. Proper names have hyphens, which Cargo does not allow in names of libraries.
const LIBRARIES: [(&str, &str, &str); 4] = [
    (
        "heapdrome-preload-bumpmalloc",
        "libbumpmalloc.so",
        "libbumpmalloc.so",
    ),
    (
        "heapdrome-preload-elfmalloc",
        "libelfmalloc.so",
        "libelfmalloc.so",
    ),
    (
        "heapdrome-preload-elfmalloc-l",
        "libelfmalloc_l.so",
        "libelfmalloc-l.so",
    ),
    (
        "heapdrome-preload-elfmalloc-hardened",
        "libelfmalloc_hardened.so",
        "libelfmalloc-hardened.so",
    ),
];

/// Folders below `allocators` with the sources of the libraries. A change in them rebuilds the
/// libraries.
const FOLDERS: [&str; 5] = ["pages", "malloc-abi", "bumpmalloc", "elfmalloc", "preload"];

/// Environment variables that the outer cargo sets for its own compilers, and that the inner cargo
/// must not inherit.
const OUTER: [&str; 4] = [
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "CARGO_ENCODED_RUSTFLAGS",
    "CLIPPY_ARGS",
];

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

fn main() {
    let allocators = Path::new(&variable("CARGO_MANIFEST_DIR")).join("..");
    for folder in FOLDERS {
        println!(
            "cargo::rerun-if-changed={}",
            allocators.join(folder).display()
        );
    }
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(variable("OUT_DIR"));
    let target = variable("TARGET");
    let known = variable("CARGO_CFG_TARGET_OS") == "linux"
        && variable("CARGO_CFG_TARGET_ENV") == "gnu"
        && ["x86_64", "aarch64"].contains(&variable("CARGO_CFG_TARGET_ARCH").as_str());
    let built = known && build(&allocators, &out, &target);
    for (_, library, name) in LIBRARIES {
        let made = out
            .join("target")
            .join(&target)
            .join("preload")
            .join(library);
        let carried = out.join(name);
        let bytes = if built {
            std::fs::read(&made)
        } else {
            Ok(Vec::new())
        };
        let bytes = bytes.unwrap_or_else(|error| panic!("{}: {error}", made.display()));
        std::fs::write(&carried, bytes).expect("OUT_DIR is writable");
    }
}

/// Builds the libraries. Returns whether they exist afterwards: cross-compiling may fail.
fn build(allocators: &Path, out: &Path, target: &str) -> bool {
    let mut cargo = Command::new(variable("CARGO"));
    cargo.args(["build", "--locked", "--quiet", "--profile", "preload"]);
    cargo
        .args(["--target", target, "--target-dir"])
        .arg(out.join("target"));
    cargo
        .arg("--manifest-path")
        .arg(allocators.join("../Cargo.toml"));
    for (package, ..) in LIBRARIES {
        cargo.args(["--package", package]);
    }
    for name in OUTER {
        cargo.env_remove(name);
    }
    let status = cargo.status().expect("cargo names itself, and can be run");
    if status.success() {
        return true;
    }
    assert!(
        variable("HOST") != variable("TARGET"),
        "cargo could not build heapdrome's own allocators: {status}"
    );
    println!(
        "cargo::warning=no linker for {target}: heapdrome is built without its own allocators"
    );
    false
}
