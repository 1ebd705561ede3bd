//! User-defined allocators, from a file in the user's configuration folder.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use heapdrome_system::FileError;

use crate::RegistryError;

/// Name of the file in heapdrome's configuration folder.
pub(crate) const FILE: &str = "allocators.toml";

/// A user-defined allocator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Own {
    /// Name under which the allocator is requested.
    pub name: String,
    /// Path of the library.
    pub path: PathBuf,
    /// Environment variables to set for the allocator.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnFile {
    #[serde(default)]
    allocator: Vec<Own>,
}

/// Reads the user-defined allocators from [`FILE`] in `folder`. A missing file counts as an empty
/// list.
pub(crate) fn read(folder: &Path) -> Result<Vec<Own>, RegistryError> {
    let path = folder.join(FILE);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(FileError::of("read", path)(error).into()),
    };
    let file: OwnFile = toml::from_str(&text).map_err(|error| broken(&path, &text, &error))?;
    Ok(file.allocator)
}

fn broken(path: &Path, text: &str, error: &toml::de::Error) -> RegistryError {
    let start = error.span().map_or(0, |span| span.start.min(text.len()));
    let line = text.as_bytes()[..start]
        .iter()
        .filter(|&&byte| byte == b'\n')
        .count()
        + 1;
    let reason = error.message().lines().collect::<Vec<_>>().join("; ");
    RegistryError::BrokenConfig {
        path: path.to_owned(),
        line,
        reason,
    }
}

/// Replaces [`FILE`] in `folder`, completely or not at all.
pub(crate) fn write(folder: &Path, allocators: Vec<Own>) -> Result<(), RegistryError> {
    let path = folder.join(FILE);
    std::fs::create_dir_all(folder).map_err(FileError::of("make the folder", folder))?;
    let list = toml::to_string(&OwnFile {
        allocator: allocators,
    })
    .map_err(|error| FileError::of("write", &path)(std::io::Error::other(error)))?;
    let text =
        format!("# Allocators of your own, as `heapdrome allocators add` writes them.\n\n{list}");
    heapdrome_schema::write_atomically(&path, text.as_bytes())
        .map_err(|error| FileError::of("write", &path)(error.source))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(name: &str) -> Own {
        let env = BTreeMap::from([("KEY".to_owned(), "a=b c".to_owned())]);
        Own {
            name: name.to_owned(),
            path: PathBuf::from("/opt/lib x.so"),
            env,
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let inner = folder.path().join("a/b");
        assert_eq!(read(&inner).expect("nothing there yet"), []);
        write(&inner, vec![own("one"), own("two")]).expect("writable");
        assert_eq!(read(&inner).expect("readable"), [own("one"), own("two")]);
    }

    #[test]
    fn the_line_of_a_mistake_is_named() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (text, line) in [
            ("[[allocator]]\nname = \"x\"\npath = 3\n", "line 3"),
            ("\n\n[[allocator]\n", "line 3"),
            ("[[allocator]]\nname = \"x\"\n", "line 1"),
            (
                "[[allocator]]\nname = \"x\"\npath = \"/x\"\nsize = 1\n",
                "line 4",
            ),
        ] {
            std::fs::write(folder.path().join(FILE), text).expect("writable");
            let message = read(folder.path()).expect_err("broken").to_string();
            assert!(message.contains(line), "{text:?}: {message}");
            assert!(!message.contains('\n'), "{message}");
        }
    }
}
