//! Record of the environment in which a race's proofs were taken, in a file next to the journal. If
//! the race is resumed in another environment, the differences are reported. Only digests of the
//! values are stored, because variables may hold secrets.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use heapdrome_measure::BaseEnvironment;
use heapdrome_schema::write_atomically;
use heapdrome_system::sha256_of_bytes;
use heapdrome_witness::is_bookkeeping;

use crate::failure::Failure;

/// Name of the file within the race's folder.
const FILE_NAME: &str = "environment.json";

/// Digests of the variables' values, by name.
type Digests = BTreeMap<String, String>;

/// Stores the digests of `environment` in the race's folder.
///
/// # Errors
/// When the file cannot be written.
pub fn keep(folder: &Path, environment: &BaseEnvironment) -> Result<(), Failure> {
    let bytes = serde_json::to_vec(&digests(environment)).map_err(Failure::machine)?;
    write_atomically(&folder.join(FILE_NAME), &bytes).map_err(Failure::machine)
}

/// Returns the names of the variables that differ from the stored ones; none if nothing was stored,
/// as in races of older versions.
pub fn changed(folder: &Path, environment: &BaseEnvironment) -> Vec<String> {
    let kept = std::fs::read(folder.join(FILE_NAME)).ok();
    let kept: Option<Digests> = kept.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let Some(kept) = kept else {
        return Vec::new();
    };
    let now = digests(environment);
    let gone = kept.keys().filter(|name| !now.contains_key(*name));
    let other = now
        .iter()
        .filter(|(name, digest)| kept.get(*name) != Some(*digest));
    let mut names: Vec<_> = gone.chain(other.map(|(name, _)| name)).cloned().collect();
    names.sort();
    names
}

fn digests(environment: &BaseEnvironment) -> Digests {
    let counts = |(name, _): &(&OsString, &OsString)| !is_bookkeeping(name);
    let digest = |(name, value): (&OsString, &OsString)| {
        let name = name.to_string_lossy().into_owned();
        (name, sha256_of_bytes(value.as_bytes()))
    };
    environment
        .variables
        .iter()
        .filter(counts)
        .map(digest)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> BaseEnvironment {
        let pair = |(name, value): &(&str, &str)| (OsString::from(name), OsString::from(value));
        BaseEnvironment {
            variables: variables.iter().map(pair).collect(),
            removed: Vec::new(),
        }
    }

    #[test]
    fn what_came_went_or_changed_is_named_but_not_what_shells_count() {
        let folder = tempfile::tempdir().expect("a folder");
        let before = environment(&[("A", "1"), ("B", "secret"), ("C", "3"), ("SHLVL", "1")]);
        assert!(
            changed(folder.path(), &before).is_empty(),
            "nothing is kept"
        );
        keep(folder.path(), &before).expect("written");
        assert!(changed(folder.path(), &before).is_empty());
        let now = environment(&[
            ("A", "1"),
            ("B", "2"),
            ("D", "4"),
            ("SHLVL", "2"),
            ("_", "x"),
        ]);
        assert_eq!(changed(folder.path(), &now), ["B", "C", "D"]);
        let text = std::fs::read_to_string(folder.path().join(FILE_NAME)).expect("kept");
        assert!(!text.contains("secret"), "{text}");
    }
}
