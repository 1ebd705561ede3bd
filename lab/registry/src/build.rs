//! Builds an entry by its recipe in a staging folder, then moves the result to its final place.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use heapdrome_packages::{Cache, Shelf, fetch_crate, fetch_debian_source};
use heapdrome_system::sha256_of_bytes;

use heapdrome_system::FileError;

use crate::entry::{Entry, OPTIMISATION, Recipe, Source};
use crate::{RegistryError, embedded};

mod compile;
mod steps;

use steps::Work;
pub(crate) use steps::telling_line;

/// Name of the log in the library's folder.
const LOG: &str = "build.log";

/// Progress of a build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuildEvent {
    /// The sources are fetched, unless the cache already contains them.
    Fetching {
        /// Name and version of the package.
        package: String,
    },
    /// A step begins. A compile step reports this for each file.
    Step {
        /// Number of the step, counted from 1.
        n: usize,
        /// Total number of steps. Each file of a compile step counts as one.
        of: usize,
        /// Description of the step.
        what: String,
    },
    /// The library is installed.
    Finished {
        /// Path of the library.
        path: PathBuf,
        /// Total duration.
        took: Duration,
    },
}

/// An installed library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// Path of the library.
    pub path: PathBuf,
    /// Version of the library; empty if unknown.
    pub version: String,
    /// Duration of the build in seconds; `None` if nothing had to be built.
    pub seconds: Option<u64>,
}

/// Returns the recipe of an entry and a text that identifies the pinned sources; `None` if
/// heapdrome does not build the entry.
fn recipe_of(entry: &Entry) -> Option<(&Recipe, String)> {
    match &entry.source {
        Source::Crate { pin, recipe } => Some((recipe, format!("{pin:?}"))),
        Source::Debian { pin, recipe } => Some((recipe, format!("{pin:?}"))),
        Source::Own { recipe } => Some((recipe, "own".to_owned())),
        _ => None,
    }
}

/// Returns the folder of an entry's build; `None` if heapdrome does not build the entry. The
/// folder's name depends on the pinned sources, the recipe, the flags and the recipe's glue files.
/// If any of them changes, heapdrome builds the library again in a new folder. A new compiler does
/// not change the name, so a library stays usable after an update, or without a compiler.
pub(crate) fn folder_of(cache: &Cache, entry: &Entry) -> Option<PathBuf> {
    let (recipe, pin) = recipe_of(entry)?;
    let steps = format!("{recipe:?}");
    let mut glue = embedded::glue_files().to_vec();
    glue.retain(|(name, _)| steps.contains(&format!("{{glue}}/{}", top_folder(name))));
    let what = format!("{pin} {steps} {OPTIMISATION:?} {glue:?}");
    let key = &sha256_of_bytes(what.as_bytes())[..10];
    let name = entry.base.as_ref().unwrap_or(&entry.name);
    Some(cache.path(Shelf::Allocators).join(format!("{name}-{key}")))
}

/// Returns the first folder of a relative path.
fn top_folder(path: &str) -> &str {
    path.split('/').next().unwrap_or(path)
}

/// Returns an entry's library, if it has been built.
pub(crate) fn installed(cache: &Cache, entry: &Entry) -> Option<PathBuf> {
    let (recipe, _) = recipe_of(entry)?;
    let path = folder_of(cache, entry)?.join(file_name(recipe));
    path.is_file().then_some(path)
}

/// Returns the library's file name without its folders.
fn file_name(recipe: &Recipe) -> &str {
    recipe.library.rsplit('/').next().unwrap_or(&recipe.library)
}

/// Fetches, builds and installs an entry's library, unless it is already installed.
pub(crate) fn install(
    cache: &Cache,
    entry: &Entry,
    observe: &mut dyn FnMut(BuildEvent),
) -> Result<Installed, RegistryError> {
    let started = Instant::now();
    let version = entry.version.clone().unwrap_or_default();
    let (Some((recipe, _)), Some(folder)) = (recipe_of(entry), folder_of(cache, entry)) else {
        return Err(RegistryError::NotInstalled {
            name: entry.name.clone(),
        });
    };
    let lock = cache.lock(&entry.name)?;
    if let Some(path) = installed(cache, entry) {
        return Ok(Installed {
            path,
            version,
            seconds: None,
        });
    }
    let staging = lock.staging()?;
    let source = match &entry.source {
        // All files of such an entry are embedded in heapdrome, so there are no sources to fetch.
        Source::Own { .. } => staging.path().to_owned(),
        _ => fetch(cache, entry, observe)?,
    };
    let log = cache
        .shelf(Shelf::Logs)?
        .join(format!("build-{}.log", entry.name));
    start_log(&log, entry)?;
    let work = Work::new(cache, entry, recipe, &source, staging.path(), &log)?;
    work.run(observe)?;
    let library = work.finished_library(file_name(recipe))?;
    cache.shelf(Shelf::Allocators)?;
    let result = staging.path().join("result");
    std::fs::create_dir(&result).map_err(FileError::of("make the folder", &result))?;
    move_into(&library, &result.join(file_name(recipe)))?;
    let kept = result.join(LOG);
    std::fs::copy(&log, &kept).map_err(FileError::of("write", &kept))?;
    lock.place(&result, &folder)?;
    let path = folder.join(file_name(recipe));
    let took = started.elapsed();
    observe(BuildEvent::Finished {
        path: path.clone(),
        took,
    });
    Ok(Installed {
        path,
        version,
        seconds: Some(took.as_secs()),
    })
}

fn fetch(
    cache: &Cache,
    entry: &Entry,
    observe: &mut dyn FnMut(BuildEvent),
) -> Result<PathBuf, RegistryError> {
    Ok(match &entry.source {
        Source::Crate { pin, .. } => {
            observe(BuildEvent::Fetching {
                package: pin.label(),
            });
            fetch_crate(cache, pin)?
        }
        Source::Debian { pin, .. } => {
            observe(BuildEvent::Fetching {
                package: pin.label(),
            });
            fetch_debian_source(cache, pin)?
        }
        _ => {
            return Err(RegistryError::NotInstalled {
                name: entry.name.clone(),
            });
        }
    })
}

fn start_log(log: &Path, entry: &Entry) -> Result<(), FileError> {
    let version = entry.version.as_deref().unwrap_or_default();
    let flags = OPTIMISATION.join(" ");
    let text = format!("{} {version}, optimised with {flags}\n", entry.name);
    std::fs::write(log, text).map_err(FileError::of("write", log))
}

/// Moves a library. If the build left a link, moves the link's target.
fn move_into(from: &Path, to: &Path) -> Result<(), FileError> {
    let real = std::fs::canonicalize(from).map_err(FileError::of("read", from))?;
    std::fs::rename(&real, to).map_err(FileError::of("move", real))
}
