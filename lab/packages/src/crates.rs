//! Source packages from the crate registry that cargo is configured to use.

use std::path::{Path, PathBuf};

use heapdrome_system::FileError;

use crate::child::Job;
use crate::fetch::{Fetcher, fetched};
use crate::{Cache, FetchError};

/// A crate, pinned by version and checksum.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CratePin {
    /// Name of the crate.
    pub name: String,
    /// Full version, including build metadata.
    pub version: String,
    /// SHA-256 of the package in hexadecimal, from the registry's index.
    pub sha256: String,
}

impl CratePin {
    /// Returns the name and the version as one word, for folders and messages.
    pub fn label(&self) -> String {
        format!("{}-{}", self.name, self.version)
    }

    /// Returns the version in the form that cargo requires for a dependency, which is without build
    /// metadata.
    fn requirement(&self) -> &str {
        self.version.split('+').next().unwrap_or(&self.version)
    }
}

/// Returns the folder of a crate's unpacked sources. If they are not in the cache, fetches them.
/// The sources are shared and must not be changed.
///
/// # Errors
/// When cargo is missing, fails or is interrupted, when the registry offers another version, when
/// the checksum is not the pinned one, or when the cache cannot be written.
pub fn fetch_crate(cache: &Cache, pin: &CratePin) -> Result<PathBuf, FetchError> {
    fetched(cache, &pin.label(), &pin.sha256, |staging, log| {
        let vendored = vendor(cache, pin, staging, log)?;
        verify(pin, &vendored)?;
        Ok(vendored)
    })
}

/// Fetches the crate and its dependencies with cargo, and returns the crate's own folder.
fn vendor(cache: &Cache, pin: &CratePin, folder: &Path, log: &Path) -> Result<PathBuf, FetchError> {
    write_manifest(pin, folder)?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut job = Job::new(cargo, log);
    job.command()
        .current_dir(folder)
        .args(["vendor", "--versioned-dirs", "vendor"]);
    // Settings for builds of the user's own programs must not affect this run of cargo.
    for name in [
        "CARGO_TARGET_DIR",
        "CARGO_ENCODED_RUSTFLAGS",
        "RUSTFLAGS",
        "RUSTC_WRAPPER",
    ] {
        job.command().env_remove(name);
    }
    let fetcher = Fetcher {
        package: pin.label(),
        program: "cargo",
        advice: "install Rust, or put cargo's folder into PATH",
        log,
        telling: telling_line,
    };
    fetcher.run(job, cache)?;
    find(pin, &folder.join("vendor"))
}

fn write_manifest(pin: &CratePin, folder: &Path) -> Result<(), FetchError> {
    // The empty workspace keeps cargo from searching for a workspace in parent folders.
    let manifest = format!(
        "[package]\nname = \"heapdrome-fetch\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\n\
         [dependencies]\n{} = \"={}\"\n\n[workspace]\n",
        pin.name,
        pin.requirement()
    );
    let source = folder.join("src");
    std::fs::create_dir(&source).map_err(FileError::of("make the folder", &source))?;
    let files = [("src/lib.rs", ""), ("Cargo.toml", manifest.as_str())];
    for (name, text) in files {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(FileError::of("write", &path))?;
    }
    Ok(())
}

/// Returns the most informative line of cargo's output: the last line after an error, which names
/// the root cause. Without an error, returns the last line of the output.
fn telling_line(lines: &[String]) -> String {
    let cause = |line: &&String| !line.trim_end().ends_with("Caused by:");
    let after_error = lines.iter().skip_while(|line| !line.starts_with("error"));
    let line = after_error.filter(cause).last().or(lines.last());
    line.map_or_else(|| "nothing".to_owned(), |line| line.trim().to_owned())
}

/// Returns the folder of the pinned crate among the vendored crates. Fails if cargo did not vendor
/// the pinned version.
fn find(pin: &CratePin, vendor: &Path) -> Result<PathBuf, FetchError> {
    let exact = vendor.join(pin.label());
    if exact.is_dir() {
        return Ok(exact);
    }
    let entries = std::fs::read_dir(vendor).map_err(FileError::of("read", vendor))?;
    let names = entries
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned());
    let start = format!("{}-", pin.name);
    let found = names
        .filter_map(|name| name.strip_prefix(&start).map(str::to_owned))
        .next();
    Err(FetchError::OtherVersion {
        package: pin.name.clone(),
        wanted: pin.version.clone(),
        found: found.unwrap_or_else(|| "nothing".to_owned()),
        advice: "use a newer heapdrome".to_owned(),
    })
}

/// Fails if the checksum that cargo verified for the download differs from the pinned one.
fn verify(pin: &CratePin, folder: &Path) -> Result<(), FetchError> {
    let path = folder.join(".cargo-checksum.json");
    let text = std::fs::read(&path).map_err(FileError::of("read", &path))?;
    let value: serde_json::Value = serde_json::from_slice(&text)
        .map_err(|error| FileError::of("read", &path)(error.into()))?;
    let found = value
        .get("package")
        .and_then(serde_json::Value::as_str)
        .unwrap_or("none");
    if found == pin.sha256 {
        return Ok(());
    }
    Err(FetchError::WrongChecksum {
        package: pin.label(),
        wanted: pin.sha256.clone(),
        found: found.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pin() -> CratePin {
        CratePin {
            name: "demo".to_owned(),
            version: "1.2.3+build".to_owned(),
            sha256: "00".repeat(32),
        }
    }

    #[test]
    fn build_metadata_is_no_part_of_the_requirement() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        write_manifest(&pin(), folder.path()).expect("a manifest can be written");
        let text = std::fs::read_to_string(folder.path().join("Cargo.toml")).expect("readable");
        assert!(text.contains("demo = \"=1.2.3\""), "{text}");
    }

    #[test]
    fn another_checksum_is_refused() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join(".cargo-checksum.json");
        std::fs::write(&path, r#"{"files":{},"package":"11"}"#).expect("writable");
        let error = verify(&pin(), folder.path())
            .expect_err("not the pinned one")
            .to_string();
        assert!(error.contains("SHA-256 11 instead of 0000"), "{error}");
        let good = format!(r#"{{"files":{{}},"package":"{}"}}"#, pin().sha256);
        std::fs::write(&path, good).expect("writable");
        assert!(verify(&pin(), folder.path()).is_ok());
    }

    #[test]
    fn another_version_is_named() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::create_dir(folder.path().join("demo-1.2.4")).expect("writable");
        let error = find(&pin(), folder.path())
            .expect_err("another version")
            .to_string();
        assert!(error.contains("the registry offers 1.2.4"), "{error}");
    }

    #[test]
    fn the_first_cause_is_told() {
        let lines = [
            "    Updating index",
            "error: failed to sync",
            "",
            "Caused by:",
            "  no route",
        ];
        let lines: Vec<_> = lines.iter().map(|&line| line.to_owned()).collect();
        assert_eq!(telling_line(&lines), "no route");
        assert_eq!(telling_line(&[]), "nothing");
    }
}
