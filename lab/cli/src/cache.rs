//! `heapdrome cache`: cleans the cache and removes the journals of finished races, or prints the
//! cache's path.

use heapdrome_measure::journal;
use heapdrome_schema::Bytes;

use crate::arguments::CacheAction;
use crate::failure::Failure;
use crate::folders::Folders;
use crate::output;

/// Cleans the cache and removes the journals of finished races, or prints the cache's path.
///
/// # Errors
/// Returns an error if the user's folders are unknown or unusable, or standard output cannot be
/// written. For cleaning, also returns an error if the cache is in use or not heapdrome's, or if a
/// file or folder cannot be removed.
pub fn cache(action: CacheAction) -> Result<(), Failure> {
    let Folders { cache, races, .. } = Folders::find()?;
    let text = match action {
        CacheAction::Path => format!("{}\n", cache.root().display()),
        CacheAction::Clean => {
            let freed = cache.clean().map_err(Failure::machine)?;
            for race in journal::list(&races)
                .into_iter()
                .filter(|race| race.finished)
            {
                std::fs::remove_dir_all(&race.folder).map_err(|error| {
                    Failure::Machine(format!("cannot remove {}: {error}", race.folder.display()))
                })?;
            }
            format!("removed {} from {}\n", Bytes(freed), cache.root().display())
        }
    };
    output::print(text.as_bytes())
}
