//! What can go wrong with an allocator, and what to do about it.

use std::path::PathBuf;

use heapdrome_system::FileError;

use heapdrome_packages::{CacheError, FetchError};

/// What is wrong with a file that should be an allocator's library.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LibraryFault {
    /// There is no such file.
    #[error("there is no such file")]
    Missing,
    /// It cannot be read.
    #[error("it cannot be read ({0})")]
    Unreadable(String),
    /// It is something else than a shared object.
    #[error("it is not a shared object, but {0}")]
    NotASharedObject(String),
    /// It is for another processor or word size.
    #[error("it is for another machine ({found}); this one is {here}")]
    OtherMachine {
        /// The machine that it is for.
        found: String,
        /// This machine.
        here: String,
    },
    /// It has no `malloc` for other objects to call.
    #[error("it does not export malloc; was it built to be preloaded?")]
    NoMalloc,
    /// The loader would take its path for several.
    #[error(
        "its path has a space, a colon or a dollar sign, which the loader cannot preload from; \
         link to it from a path without"
    )]
    NotPreloadable,
}

/// Why an allocator cannot be had, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// No allocator has this name.
    #[error("no allocator is called {name}{}; `heapdrome allocators list` shows all", or_nearest(.nearest))]
    Unknown {
        /// The name.
        name: String,
        /// The names nearest to it, the nearest first.
        nearest: Vec<String>,
    },
    /// It can be built, and has not been.
    #[error("{name} is not built yet; build it with `heapdrome allocators install {name}`")]
    NotInstalled {
        /// The allocator.
        name: String,
    },
    /// A package of the system is missing.
    #[error("{name} needs a package of the system; install it with `apt install {apt}`")]
    NeedsPackage {
        /// The allocator.
        name: String,
        /// The package.
        apt: String,
    },
    /// Its settings would change nothing here.
    #[error("{name} is not applicable here: {why}")]
    NotApplicable {
        /// The allocator.
        name: String,
        /// The reason, and what to do.
        why: String,
    },
    /// It cannot be had here.
    #[error("{name} cannot be had: {why}")]
    Unavailable {
        /// The allocator.
        name: String,
        /// The reason, and what to do.
        why: String,
    },
    /// The library is not one that can be preloaded.
    #[error("{path} cannot serve as an allocator: {fault}")]
    Library {
        /// The library.
        path: PathBuf,
        /// What is wrong with it.
        fault: LibraryFault,
    },
    /// The sources could not be had.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The cache could not be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// A step of the build failed.
    #[error("{name} could not be built: {reason}: {last} (whole log: {log})")]
    Build {
        /// The allocator.
        name: String,
        /// What failed.
        reason: String,
        /// The telling line of the log.
        last: String,
        /// The log.
        log: PathBuf,
    },
    /// The person asked heapdrome to stop.
    #[error("interrupted while working on {name}")]
    Interrupted {
        /// The allocator.
        name: String,
    },
    /// The user's own list of allocators cannot be understood.
    #[error("{path}, line {line}: {reason}; mend or remove that line")]
    BrokenConfig {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What the parser said.
        reason: String,
    },
    /// A name that an allocator of the user's own cannot have.
    #[error("{name} cannot be the name of an allocator of yours: {why}")]
    BadName {
        /// The name.
        name: String,
        /// The reason.
        why: String,
    },
    /// Only the system can remove this one.
    #[error("{name} is not heapdrome's to remove: {why}")]
    NotRemovable {
        /// The allocator.
        name: String,
        /// Whose it is.
        why: String,
    },
    /// A setting that is no `NAME=VALUE`.
    #[error("{setting} is not a setting; write it as NAME=VALUE")]
    BadSetting {
        /// What was given.
        setting: String,
    },
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// An entry that came with heapdrome is wrong.
    #[error("the entry {name} that came with heapdrome is broken: {reason}; please report it")]
    BrokenEntry {
        /// The entry.
        name: String,
        /// What is wrong.
        reason: String,
    },
}

fn or_nearest(nearest: &[String]) -> String {
    match nearest {
        [] => String::new(),
        [one] => format!(" (did you mean {one}?)"),
        [most @ .., last] => format!(" (did you mean {} or {last}?)", most.join(", ")),
    }
}
