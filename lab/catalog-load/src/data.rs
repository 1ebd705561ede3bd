//! A folder of data sets: one file for each, numbered from 0.

use std::path::{Path, PathBuf};

use crate::error::CatalogError;
use crate::file::{Reader, Set};
use crate::settings::Settings;

/// The file that is in a folder while its data are written. Where a killed run has left it, the
/// data are not used.
pub(crate) const UNFINISHED: &str = "unfinished";

/// The path of a data set's file in a folder.
pub(crate) fn set_path(folder: &Path, set: usize) -> PathBuf {
    folder.join(format!("set-{set:03}.bin"))
}

/// Whether a folder holds all data that these settings need, as far as the heads and the lengths of
/// its files tell. Contents are checked when they are read.
pub fn data_is_complete(folder: &Path, settings: &Settings) -> bool {
    open(folder).is_ok_and(|sets| serve(&sets, settings))
}

/// Reads the heads of all data sets of a folder, which must be of one size and seed.
///
/// # Errors
/// When there are no data, or they are unfinished, foreign, of another version or visibly damaged.
pub(crate) fn open(folder: &Path) -> Result<Vec<Set>, CatalogError> {
    if folder.join(UNFINISHED).exists() {
        return Err(CatalogError::Damaged {
            path: folder.to_owned(),
            reason: "its data were not written to the end".to_owned(),
        });
    }
    let mut sets: Vec<Set> = Vec::new();
    loop {
        let path = set_path(folder, sets.len());
        if !path.exists() {
            break;
        }
        let mut wanted = sets.first().map(|set| set.place.identity);
        if let Some(wanted) = &mut wanted {
            wanted.set = sets.len() as u32;
        }
        sets.push(Reader::open(&path, wanted)?.set);
    }
    match sets.is_empty() {
        true => Err(CatalogError::NoData {
            path: folder.to_owned(),
        }),
        false => Ok(sets),
    }
}

/// The first `n` data sets of a folder.
///
/// # Errors
/// When there are fewer, or [`open`] fails.
pub(crate) fn first(folder: &Path, n: u32) -> Result<Vec<Set>, CatalogError> {
    let mut sets = open(folder)?;
    let have = sets.len();
    if have < n as usize {
        return Err(CatalogError::TooFewSets {
            asked: n,
            have,
            path: folder.to_owned(),
        });
    }
    sets.truncate(n as usize);
    Ok(sets)
}

/// Whether data sets are those that these settings need.
pub(crate) fn serve(sets: &[Set], settings: &Settings) -> bool {
    let right = |set: &Set| {
        let identity = set.place.identity;
        (identity.size, identity.seed) == (settings.size, settings.seed)
    };
    sets.len() >= settings.n as usize && sets.iter().all(right)
}
