//! Allocators by name: found, and built where they are missing.

mod names;

use heapdrome_catalogue::{BuildEvent, Catalogue, CatalogueError};
use heapdrome_packages::{CacheError, FetchError};
use indicatif::{ProgressBar, ProgressStyle};

use crate::failure::Failure;
use crate::output;

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

/// Builds one allocator behind a progress bar.
///
/// # Errors
/// When it cannot be built.
pub fn build(catalogue: &Catalogue, name: &str) -> Result<(), CatalogueError> {
    output::tell(format_args!("building {name}"));
    let bar = ProgressBar::new(1);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(std::time::Duration::from_millis(500));
    let mut observe = |event: BuildEvent| match event {
        BuildEvent::Step { n, of, what } => {
            bar.set_length(of as u64);
            bar.set_position(n as u64);
            bar.set_message(format!("{name}: {what}"));
        }
        BuildEvent::Fetching { package } => {
            bar.set_message(format!("{name}: fetching {package}"));
        }
        BuildEvent::Finished { .. } => {}
    };
    let built = catalogue.install(name, &mut observe);
    bar.finish_and_clear();
    let built = built?;
    if let Some(seconds) = built.seconds {
        output::tell(format_args!(
            "built {name} {} in {seconds} s",
            built.version
        ));
    }
    Ok(())
}
