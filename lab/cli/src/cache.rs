//! `heapdrome cache`: cleans the cache, or prints its path.

use heapdrome_measure::journal;
use heapdrome_schema::Bytes;

use crate::arguments::CacheAction;
use crate::failure::Failure;
use crate::folders::Folders;
use crate::output;

/// Cleans the cache, or prints its path.
///
/// # Errors
/// Returns an error if the folder is in use, is not heapdrome's, or cannot be removed.
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
