//! Builds the counting library. The crate embeds it, so that an installed binary needs no other
//! file.

use std::path::{Path, PathBuf};
use std::process::Command;

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

fn main() {
    let source = Path::new(&variable("CARGO_MANIFEST_DIR")).join("interpose/src");
    println!("cargo::rerun-if-changed={}", source.display());
    println!("cargo::rerun-if-changed=build.rs");
    let library = PathBuf::from(variable("OUT_DIR")).join("libheapdrome_interpose.so");
    let machine = variable("CARGO_CFG_TARGET_ARCH");
    let known = variable("CARGO_CFG_TARGET_OS") == "linux"
        && variable("CARGO_CFG_TARGET_ENV") == "gnu"
        && ["x86_64", "aarch64"].contains(&machine.as_str());
    if !known {
        // At run time the witness reports that this platform is not supported.
        std::fs::write(&library, []).expect("OUT_DIR is writable");
        return;
    }
    let mut rustc = Command::new(variable("RUSTC"));
    rustc.args(["--edition", "2024", "--crate-type", "cdylib"]);
    rustc.args([
        "--crate-name",
        "heapdrome_interpose",
        "--target",
        &variable("TARGET"),
    ]);
    rustc.args([
        "-Copt-level=3",
        "-Clto=fat",
        "-Cpanic=abort",
        "-Ccodegen-units=1",
    ]);
    rustc
        .args(["-Cstrip=symbols", "-o"])
        .arg(&library)
        .arg(source.join("lib.rs"));
    if let Ok(linker) = std::env::var("RUSTC_LINKER") {
        rustc.arg(format!("-Clinker={linker}"));
    }
    let status = rustc.status().expect("cargo names a rustc that can be run");
    if status.success() {
        return;
    }
    assert!(
        variable("HOST") != variable("TARGET"),
        "rustc could not build the counting library: {status}"
    );
    println!(
        "cargo::warning=no linker for {}: heapdrome is built without its witness; name one in \
         CARGO_TARGET_<TRIPLE>_LINKER",
        variable("TARGET")
    );
    std::fs::write(&library, []).expect("OUT_DIR is writable");
}
