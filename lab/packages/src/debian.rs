//! Source packages from the Debian archive that this machine's apt is configured to use.

use std::path::{Path, PathBuf};

use heapdrome_system::{FileError, sha256_of_file};

use crate::child::Job;
use crate::fetch::{Fetcher, fetched};
use crate::{Cache, FetchError};

mod sources;

/// A Debian source package, pinned by the checksum of its upstream archive.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DebianPin {
    /// Name of the source package.
    pub package: String,
    /// Upstream version, without Debian's revision.
    pub upstream_version: String,
    /// Name of the upstream archive, such as `musl_1.2.3.orig.tar.gz`.
    pub archive: String,
    /// SHA-256 of the upstream archive in hexadecimal.
    pub sha256: String,
}

impl DebianPin {
    /// Returns the name and the version as one word, for folders and messages.
    pub fn label(&self) -> String {
        format!("debian-{}-{}", self.package, self.upstream_version)
    }
}

/// Returns the folder of a source package's unpacked upstream sources, without Debian's patches. If
/// they are not in the cache, fetches them; this does not require root. The sources are shared and
/// must not be changed.
///
/// # Errors
/// When apt-get or tar is missing, fails or is interrupted, when Debian now has another version,
/// when the checksum is not the pinned one, or when the cache cannot be written.
pub fn fetch_debian_source(cache: &Cache, pin: &DebianPin) -> Result<PathBuf, FetchError> {
    fetched(cache, &pin.label(), &pin.sha256, |folder, log| {
        let fetch = Fetch {
            cache,
            pin,
            folder,
            log,
        };
        let archive = fetch.download()?;
        fetch.unpack(&archive)
    })
}

/// An attempt to fetch one package in a staging folder.
struct Fetch<'a> {
    cache: &'a Cache,
    pin: &'a DebianPin,
    folder: &'a Path,
    log: &'a Path,
}

impl Fetch<'_> {
    fn download(&self) -> Result<PathBuf, FetchError> {
        let parts = self.make_folder("sources")?;
        self.make_folder("lists/partial")?;
        self.make_folder("apt-cache/archives/partial")?;
        let downloads = self.make_folder("downloads")?;
        let entries = sources::source_entries(Path::new("/etc/apt"));
        for (index, (kind, text)) in entries.iter().enumerate() {
            let path = parts.join(format!("{index}.{kind}"));
            std::fs::write(&path, text).map_err(FileError::of("write", &path))?;
        }
        // A failed update is ignored: the fetch may succeed even if one of several archives is
        // unreachable.
        match self.apt_get(&["update"], &downloads) {
            Err(FetchError::Failed { .. }) | Ok(()) => {}
            Err(error) => return Err(error),
        }
        let source = [
            "source",
            "--download-only",
            "--only-source",
            &self.pin.package,
        ];
        self.apt_get(&source, &downloads)?;
        self.verified(&downloads)
    }

    fn make_folder(&self, name: &str) -> Result<PathBuf, FetchError> {
        let path = self.folder.join(name);
        std::fs::create_dir_all(&path).map_err(FileError::of("make the folder", &path))?;
        Ok(path)
    }

    fn apt_get(&self, arguments: &[&str], folder: &Path) -> Result<(), FetchError> {
        let mut job = Job::new("apt-get", self.log);
        let command = job.command();
        command.current_dir(folder).args(["-q", "-y"]);
        let staging = self.folder.display();
        let options = [
            "Dir::Etc::sourcelist=/dev/null".to_owned(),
            format!("Dir::Etc::sourceparts={staging}/sources"),
            format!("Dir::State::Lists={staging}/lists"),
            format!("Dir::Cache={staging}/apt-cache"),
            "Debug::NoLocking=1".to_owned(),
            // Disables apt's own download user, which may lack permission to write into the cache.
            "APT::Sandbox::User=".to_owned(),
            "Acquire::Languages=none".to_owned(),
            "Acquire::Retries=2".to_owned(),
        ];
        for option in options {
            command.arg("-o").arg(option);
        }
        command.args(arguments);
        self.run("apt-get", job)
    }

    /// Returns the path of the downloaded upstream archive, if its checksum is the pinned one.
    fn verified(&self, downloads: &Path) -> Result<PathBuf, FetchError> {
        let archive = downloads.join(&self.pin.archive);
        if !archive.is_file() {
            return Err(self.other_version(downloads));
        }
        let found = sha256_of_file(&archive).map_err(FileError::of("read", &archive))?;
        if found == self.pin.sha256 {
            return Ok(archive);
        }
        Err(FetchError::WrongChecksum {
            package: self.pin.archive.clone(),
            wanted: self.pin.sha256.clone(),
            found,
        })
    }

    fn other_version(&self, downloads: &Path) -> FetchError {
        let entries = std::fs::read_dir(downloads).into_iter().flatten().flatten();
        let mut names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let found = names.find(|name| name.contains(".orig."));
        FetchError::OtherVersion {
            package: format!("the Debian source package {}", self.pin.package),
            wanted: self.pin.upstream_version.clone(),
            found: found.unwrap_or_else(|| "no upstream archive".to_owned()),
            advice: "only a Debian release with the pinned version can build this one".to_owned(),
        }
    }

    /// Unpacks the archive, and returns the folder with its content.
    fn unpack(&self, archive: &Path) -> Result<PathBuf, FetchError> {
        let into = self.make_folder("unpacked")?;
        let mut job = Job::new("tar", self.log);
        job.command()
            .current_dir(&into)
            .args(["--no-same-owner", "--strip-components=1", "-xf"]);
        job.command().arg(archive);
        self.run("tar", job)?;
        Ok(into)
    }

    fn run(&self, program: &'static str, job: Job<'_>) -> Result<(), FetchError> {
        let fetcher = Fetcher {
            package: format!("the Debian source package {}", self.pin.package),
            program,
            advice: "it is available only on Debian and its derivatives",
            log: self.log,
            telling: telling_line,
        };
        fetcher.run(job, self.cache)
    }
}

/// Returns the most informative line of the output. A line about an unreachable archive takes
/// precedence: apt-get only prints it as a warning, and fails later, when it needs the archive's
/// content.
fn telling_line(lines: &[String]) -> String {
    let unreachable = lines.iter().find(|line| line.contains("Failed to fetch"));
    let line = unreachable.or(lines.last());
    line.map_or_else(|| "nothing".to_owned(), |line| line.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_that_was_not_reached_is_told_first() {
        let lines = [
            "W: Failed to fetch http://a/b  No route",
            "E: no deb-src URIs",
        ];
        let lines: Vec<_> = lines.iter().map(|&line| line.to_owned()).collect();
        assert!(telling_line(&lines).ends_with("No route"));
        assert_eq!(telling_line(&lines[1..]), "E: no deb-src URIs");
    }

    #[test]
    fn another_upstream_version_is_named() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("musl_1.2.5.orig.tar.gz"), "x").expect("writable");
        let cache = Cache::at(folder.path()).expect("a usable path");
        let pin = DebianPin {
            package: "musl".to_owned(),
            upstream_version: "1.2.3".to_owned(),
            archive: "musl_1.2.3.orig.tar.gz".to_owned(),
            sha256: "00".repeat(32),
        };
        let log = folder.path().join("log");
        let fetch = Fetch {
            cache: &cache,
            pin: &pin,
            folder: folder.path(),
            log: &log,
        };
        let said = fetch
            .verified(folder.path())
            .expect_err("another version")
            .to_string();
        assert!(
            said.contains("1.2.3") && said.contains("musl_1.2.5.orig.tar.gz"),
            "{said}"
        );
        std::fs::write(folder.path().join(&pin.archive), "x").expect("writable");
        let said = fetch
            .verified(folder.path())
            .expect_err("other bytes")
            .to_string();
        assert!(said.contains("is not the pinned one"), "{said}");
    }
}
