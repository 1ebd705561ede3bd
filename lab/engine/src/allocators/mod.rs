//! Allocators by name: found, and built where they are missing.

mod names;

use heapdrome_catalogue::{BuildEvent, Catalogue, CatalogueError};
use heapdrome_packages::{CacheError, FetchError};

use crate::engine::Engine;
use crate::event::Event;
use crate::failure::Failure;

pub use names::{Names, Ready};

/// A failure of the catalogue, by whose concern it is.
pub fn failure(error: CatalogueError) -> Failure {
    match error {
        CatalogueError::Interrupted { .. }
        | CatalogueError::Fetch(FetchError::Interrupted { .. })
        | CatalogueError::Fetch(FetchError::Cache(CacheError::Interrupted { .. }))
        | CatalogueError::Cache(CacheError::Interrupted { .. }) => Failure::Interrupted,
        CatalogueError::Fetch(_)
        | CatalogueError::Cache(_)
        | CatalogueError::Build { .. }
        | CatalogueError::File(_) => Failure::machine(error),
        other => Failure::usage(other),
    }
}

/// Builds one allocator, and tells how that goes.
///
/// # Errors
/// When it cannot be built.
pub fn build(catalogue: &Catalogue, name: &str, engine: &Engine) -> Result<(), CatalogueError> {
    engine.tell(Event::BuildStarted(name));
    let mut observe = |event: BuildEvent| {
        engine.tell(Event::Build {
            allocator: name,
            event: &event,
        });
    };
    let built = catalogue.install(name, &mut observe);
    engine.tell(Event::BuildEnded);
    let built = built?;
    if let Some(seconds) = built.seconds {
        engine.tell(Event::Built {
            allocator: name,
            version: &built.version,
            seconds,
        });
    }
    Ok(())
}
