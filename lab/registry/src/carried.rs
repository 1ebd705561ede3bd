//! heapdrome's own libraries, which are embedded in the binary. heapdrome writes them into the
//! cache in order to preload them.

use std::path::PathBuf;

use heapdrome_packages::{Cache, Shelf};
use heapdrome_system::sha256_of_bytes;

use heapdrome_system::FileError;

use crate::RegistryError;
use crate::build::Installed;
use crate::entry::Entry;

/// Returns the folder of a library; `None` if heapdrome was built without it. The folder's name
/// depends on the library's content, so a heapdrome that embeds a different library never uses this
/// one.
pub(crate) fn folder_of(cache: &Cache, file: &str) -> Option<PathBuf> {
    let library = heapdrome_libraries::find(file).filter(|library| !library.bytes.is_empty())?;
    let key = &sha256_of_bytes(library.bytes)[..10];
    let name = file.trim_start_matches("lib").trim_end_matches(".so");
    Some(cache.path(Shelf::Allocators).join(format!("{name}-{key}")))
}

/// Returns the library, if it has been written.
pub(crate) fn installed(cache: &Cache, file: &str) -> Option<PathBuf> {
    let path = folder_of(cache, file)?.join(file);
    path.is_file().then_some(path)
}

/// Writes the library, unless it is already in the cache.
pub(crate) fn install(
    cache: &Cache,
    entry: &Entry,
    file: &str,
) -> Result<Installed, RegistryError> {
    let missing = || RegistryError::Unavailable {
        name: entry.name.clone(),
        why: "heapdrome was built without it, because no linker for this machine was available"
            .to_owned(),
    };
    let library = heapdrome_libraries::find(file).ok_or_else(missing)?;
    let folder = folder_of(cache, file).ok_or_else(missing)?;
    let lock = cache.lock(&entry.name)?;
    if installed(cache, file).is_none() {
        let staging = lock.staging()?;
        let result = staging.path().join("result");
        std::fs::create_dir(&result).map_err(FileError::of("make the folder", &result))?;
        let path = result.join(file);
        std::fs::write(&path, library.bytes).map_err(FileError::of("write", &path))?;
        cache.shelf(Shelf::Allocators)?;
        lock.place(&result, &folder)?;
    }
    Ok(Installed {
        path: folder.join(file),
        version: entry.version.clone().unwrap_or_default(),
        seconds: None,
    })
}
