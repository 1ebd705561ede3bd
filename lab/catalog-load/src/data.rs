//! Folder of data sets. Each set has one file, and the sets are numbered from 0.

use std::path::{Path, PathBuf};

use crate::error::CatalogError;
use crate::file::{Reader, Set};
use crate::settings::Settings;

/// Name of the file that marks a folder while its data are written. If a killed run has left this
/// file, the data are not used.
pub(crate) const UNFINISHED: &str = "unfinished";

/// Returns the path of a data set's file in a folder.
pub(crate) fn set_path(folder: &Path, set: usize) -> PathBuf {
    folder.join(format!("set-{set:03}.bin"))
}

/// Checks whether a folder holds all data for these settings, by the headers and the lengths of its
/// files. The contents are checked when they are read.
pub fn data_is_complete(folder: &Path, settings: &Settings) -> bool {
    open(folder).is_ok_and(|sets| serve(&sets, settings))
}

/// Reads the headers of all data sets of a folder. The sets must have equal size and seed.
///
/// # Errors
/// Returns an error if there are no data. Also returns an error if the data cannot be read, or are
/// incomplete, foreign, of another version or visibly damaged.
pub(crate) fn open(folder: &Path) -> Result<Vec<Set>, CatalogError> {
    if folder.join(UNFINISHED).exists() {
        return Err(CatalogError::Damaged {
            path: folder.to_owned(),
            reason: "its data are incomplete".to_owned(),
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

/// Returns the first `n` data sets of a folder.
///
/// # Errors
/// Returns an error if the folder has fewer data sets, or if [`open`] fails.
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

/// Returns whether there are at least as many data sets as these settings require, all with the
/// size and the seed of the settings.
pub(crate) fn serve(sets: &[Set], settings: &Settings) -> bool {
    let right = |set: &Set| {
        let identity = set.place.identity;
        (identity.size, identity.seed) == (settings.size, settings.seed)
    };
    sets.len() >= settings.n as usize && sets.iter().all(right)
}
