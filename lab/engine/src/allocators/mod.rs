//! Finds allocators by name, and builds the missing ones.

mod names;

use heapdrome_packages::{CacheError, FetchError};
use heapdrome_registry::{BuildEvent, Registry, RegistryError};

use crate::engine::Engine;
use crate::event::Event;
use crate::failure::Failure;

pub use names::{Names, Ready};

/// Converts an error of the registry into an interruption, a failure of the machine or, for any
/// other error, a failure of usage.
pub fn failure(error: RegistryError) -> Failure {
    match error {
        RegistryError::Interrupted { .. }
        | RegistryError::Fetch(FetchError::Interrupted { .. })
        | RegistryError::Fetch(FetchError::Cache(CacheError::Interrupted { .. }))
        | RegistryError::Cache(CacheError::Interrupted { .. }) => Failure::Interrupted,
        RegistryError::Fetch(_)
        | RegistryError::Cache(_)
        | RegistryError::Build { .. }
        | RegistryError::File(_) => Failure::machine(error),
        other => Failure::usage(other),
    }
}

/// Builds one allocator unless it is installed, and reports the progress as events.
///
/// # Errors
/// When the allocator cannot be built.
pub fn build(registry: &Registry, name: &str, engine: &Engine) -> Result<(), RegistryError> {
    engine.tell(Event::BuildStarted(name));
    let mut observe = |event: BuildEvent| {
        engine.tell(Event::Build {
            allocator: name,
            event: &event,
        });
    };
    let built = registry.install(name, &mut observe);
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
