//! The header of a data folder: what was written, so that it can be checked before it is used.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::error::CatalogError;

/// The file of a data folder that describes the others.
pub(crate) const FILE: &str = "header.json";

/// What the header says first.
const MAGIC: &str = "heapdrome-catalog";

/// The version of the data format.
pub(crate) const VERSION: u32 = 1;

/// A data folder, as its header describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// The size of each data set, relative to 100.
    pub(crate) size: u32,
    /// The seed from which the data were drawn.
    pub(crate) seed: u64,
    /// The data sets, in order.
    pub(crate) sets: Vec<SetHeader>,
}

/// A data set, as the header describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SetHeader {
    /// Its file.
    pub(crate) file: String,
    /// The length of its file.
    pub(crate) file_bytes: u64,
    /// The length of what is in it, serialised and not compressed.
    pub(crate) data_bytes: u64,
    /// Entries.
    pub(crate) entries: u64,
    /// Records: items of all chapters of all entries.
    pub(crate) records: u64,
    /// The checksum over the names and URLs of its records.
    pub(crate) checksum: u64,
    /// Bytes requested of the allocator and not given back when the set is loaded and joined;
    /// `None` if nobody counted.
    pub(crate) requested_bytes: Option<u64>,
}

/// The text of the header: the manifest with what is needed to recognise and check it.
#[derive(Serialize, Deserialize)]
struct Header {
    format: String,
    version: u32,
    checksum: String,
    #[serde(default = "nothing")]
    manifest: serde_json::Value,
}

fn nothing() -> serde_json::Value {
    serde_json::Value::Null
}

/// The text of a header.
pub(crate) fn text(manifest: &Manifest) -> Result<String, serde_json::Error> {
    let manifest = serde_json::to_value(manifest)?;
    let header = Header {
        format: MAGIC.to_owned(),
        version: VERSION,
        checksum: checksum(&manifest),
        manifest,
    };
    Ok(serde_json::to_string_pretty(&header)? + "\n")
}

/// The checksum of a manifest, whatever the white space in the file.
fn checksum(manifest: &serde_json::Value) -> String {
    format!("{:016x}", xxh3_64(manifest.to_string().as_bytes()))
}

/// Reads the header of a data folder and compares the lengths of its files.
///
/// # Errors
/// When there are no data, or they are foreign, of another version or visibly damaged.
pub(crate) fn open(folder: &Path) -> Result<Manifest, CatalogError> {
    let path = folder.join(FILE);
    let text = match std::fs::read(&path) {
        Ok(text) => text,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Err(CatalogError::NoData {
                path: folder.to_owned(),
            });
        }
        Err(source) => return Err(CatalogError::Read { path, source }),
    };
    let manifest = parse(&path, &text)?;
    for set in &manifest.sets {
        check_length(&folder.join(&set.file), set.file_bytes)?;
    }
    Ok(manifest)
}

/// The manifest in the text of a header.
fn parse(path: &Path, text: &[u8]) -> Result<Manifest, CatalogError> {
    let path = || PathBuf::from(path);
    let header: Header = serde_json::from_slice(text).map_err(|error| {
        let reason = error.to_string();
        match error.is_eof() {
            true => CatalogError::Damaged {
                path: path(),
                reason,
            },
            false => CatalogError::Foreign {
                path: path(),
                reason,
            },
        }
    })?;
    if header.format != MAGIC {
        return Err(CatalogError::Foreign {
            path: path(),
            reason: format!("its format is {:?}", header.format),
        });
    }
    if header.version != VERSION {
        return Err(CatalogError::OtherVersion {
            path: path(),
            found: header.version,
            expected: VERSION,
        });
    }
    if header.checksum != checksum(&header.manifest) {
        return Err(CatalogError::Damaged {
            path: path(),
            reason: "its checksum does not match".to_owned(),
        });
    }
    serde_json::from_value(header.manifest).map_err(|error| CatalogError::Foreign {
        path: path(),
        reason: error.to_string(),
    })
}

fn check_length(path: &Path, expected: u64) -> Result<(), CatalogError> {
    let path = path.to_owned();
    match std::fs::metadata(&path) {
        Ok(file) if file.len() == expected => Ok(()),
        Ok(file) => Err(CatalogError::Damaged {
            reason: format!("it has {} bytes, not {expected}", file.len()),
            path,
        }),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(CatalogError::Damaged {
            path,
            reason: "it is missing".to_owned(),
        }),
        Err(source) => Err(CatalogError::Read { path, source }),
    }
}
