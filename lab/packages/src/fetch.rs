//! Steps of a fetch that all registries share.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::child::{ChildError, Job, last_lines};
use crate::{Cache, CacheError, FetchError, Shelf};

/// Returns the folder of a package's sources in the cache. If the folder is missing, calls `fetch`
/// with a staging folder and the path of a log. `fetch` returns the folder with the sources below
/// the staging folder, which is then moved into the cache.
pub(crate) fn fetched(
    cache: &Cache,
    label: &str,
    sha256: &str,
    fetch: impl FnOnce(&Path, &Path) -> Result<PathBuf, FetchError>,
) -> Result<PathBuf, FetchError> {
    let short = sha256.get(..12).unwrap_or(sha256);
    let place = cache.path(Shelf::Sources).join(format!("{label}-{short}"));
    if place.is_dir() {
        return Ok(place);
    }
    let lock = cache.lock(label)?;
    if place.is_dir() {
        return Ok(place);
    }
    let staging = lock.staging()?;
    let log = cache.shelf(Shelf::Logs)?.join(format!("fetch-{label}.log"));
    // The error message of this attempt must not quote an earlier attempt's log.
    let _ = std::fs::remove_file(&log);
    let made = fetch(staging.path(), &log)?;
    cache.shelf(Shelf::Sources)?;
    lock.place(&made, &place)?;
    Ok(place)
}

/// Program that fetches or unpacks a package, and the texts for messages about its failures.
pub(crate) struct Fetcher<'a> {
    /// Package to fetch, as messages name it.
    pub(crate) package: String,
    /// Name of the program, such as `cargo`.
    pub(crate) program: &'static str,
    /// Advice for users who lack the program.
    pub(crate) advice: &'static str,
    pub(crate) log: &'a Path,
    /// Function that selects the most informative of the log's last lines.
    pub(crate) telling: fn(&[String]) -> String,
}

impl Fetcher<'_> {
    /// Runs a job of the program. Converts a failure of the job into a [`FetchError`].
    pub(crate) fn run(self, job: Job<'_>, cache: &Cache) -> Result<(), FetchError> {
        let (package, program) = (self.package, self.program.to_owned());
        job.run(cache.interrupt()).map_err(|error| match error {
            ChildError::Interrupted => FetchError::Interrupted { package },
            ChildError::Start { source, .. } if source.kind() == ErrorKind::NotFound => {
                FetchError::ProgramMissing {
                    package,
                    program,
                    advice: self.advice.to_owned(),
                }
            }
            ChildError::Start { source, .. } => FetchError::CannotStart {
                package,
                program,
                source,
            },
            ChildError::Log { path, source } => FetchError::Cache(CacheError::File {
                doing: "write",
                path,
                source,
            }),
            ChildError::Failed { .. } => FetchError::Failed {
                package,
                program,
                reason: (self.telling)(&last_lines(self.log, 60)),
                log: self.log.to_owned(),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_cannot_be_started_is_missing_only_if_it_is_not_there() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let cache = Cache::at(&folder.path().join("cache")).expect("a cache");
        let log = folder.path().join("log");
        let forbidden = folder.path().join("cargo");
        std::fs::write(&forbidden, "text").expect("writable");
        let told = |program: &Path| {
            let fetcher = Fetcher {
                package: "demo 1.2.3".to_owned(),
                program: "cargo",
                advice: "install Rust",
                log: &log,
                telling: |lines| lines.join(" "),
            };
            let failed = fetcher.run(Job::new(program, &log), &cache);
            failed.expect_err("it does not start").to_string()
        };
        assert_eq!(
            told(&folder.path().join("none")),
            "cannot fetch demo 1.2.3: cargo was not found; install Rust"
        );
        assert_eq!(
            told(&forbidden),
            "cannot fetch demo 1.2.3: cannot start cargo: Permission denied (os error 13)"
        );
    }
}
