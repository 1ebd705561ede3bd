//! Errors of the registry, with remedies.

use std::path::PathBuf;

use heapdrome_system::FileError;

use heapdrome_packages::{CacheError, FetchError};

/// Defect that keeps a file from being an allocator's library.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LibraryFault {
    /// The file does not exist.
    #[error("there is no such file")]
    Missing,
    /// The file cannot be read.
    #[error("it cannot be read ({0})")]
    Unreadable(String),
    /// The file is not a shared object.
    #[error("it is not a shared object, but {0}")]
    NotASharedObject(String),
    /// The file is for another processor or word size.
    #[error("it is for another machine ({found}); this one is {here}")]
    OtherMachine {
        /// Architecture or word size for which the file was built.
        found: String,
        /// Architecture of this machine.
        here: String,
    },
    /// The file does not export `malloc`.
    #[error("it does not export malloc; was it built to be preloaded?")]
    NoMalloc,
    /// The loader would split the file's path or expand a part of it.
    #[error(
        "its path has a space, a colon or a dollar sign, which the loader cannot preload from; \
         link to it from a path without"
    )]
    NotPreloadable,
}

/// Error of the registry, with a remedy.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// No allocator has this name.
    #[error("no such allocator: {name}{}; `heapdrome allocators list` shows all", or_nearest(.nearest))]
    Unknown {
        /// The requested name, which no allocator has.
        name: String,
        /// Most similar names, the best match first.
        nearest: Vec<String>,
    },
    /// The allocator can be built, but is not built yet.
    #[error("{name} is not built yet; build it with `heapdrome allocators install {name}`")]
    NotInstalled {
        /// Name of the allocator.
        name: String,
    },
    /// A system package is missing.
    #[error("{name} needs a system package; install it with `apt install {apt}`")]
    NeedsPackage {
        /// Name of the allocator, or of the programs to be compiled.
        name: String,
        /// Names of the packages, as arguments for `apt install`.
        apt: String,
    },
    /// The allocator's settings would have no effect on this system.
    #[error("{name} is not applicable here: {why}")]
    NotApplicable {
        /// Name of the allocator.
        name: String,
        /// Reason and remedy.
        why: String,
    },
    /// The allocator is unavailable on this system.
    #[error("{name} is unavailable: {why}")]
    Unavailable {
        /// Name of the allocator.
        name: String,
        /// Reason and remedy.
        why: String,
    },
    /// The library cannot be preloaded.
    #[error("{path} cannot serve as an allocator: {fault}")]
    Library {
        /// Path of the library.
        path: PathBuf,
        /// Fault of the library.
        fault: LibraryFault,
    },
    /// The sources could not be fetched.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The cache could not be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// A step of the build failed, or the build left no usable library.
    #[error("{name} could not be built: {reason}: {last} (full log: {log})")]
    Build {
        /// Name of the allocator, or of the programs to be compiled.
        name: String,
        /// Description of the failed operation.
        reason: String,
        /// Most informative line of the log, or the fault of the library.
        last: String,
        /// Path of the log.
        log: PathBuf,
    },
    /// The user interrupted heapdrome.
    #[error("interrupted while working on {name}")]
    Interrupted {
        /// Name of the allocator, or of the programs to be compiled.
        name: String,
    },
    /// The user's own list of allocators is invalid.
    #[error("{path}, line {line}: {reason}; fix or remove that line")]
    BrokenConfig {
        /// Path of the file.
        path: PathBuf,
        /// Number of the line, counted from 1.
        line: usize,
        /// Error that the parser returned.
        reason: String,
    },
    /// A name that a user-defined allocator cannot have.
    #[error("{name} is not a valid name for your allocator: {why}")]
    BadName {
        /// The rejected name.
        name: String,
        /// Reason why the name is rejected.
        why: String,
    },
    /// An allocator that heapdrome cannot remove.
    #[error("heapdrome cannot remove {name}: {why}")]
    NotRemovable {
        /// Name of the allocator.
        name: String,
        /// Reason, which names the owner of the allocator.
        why: String,
    },
    /// A setting that is not of the form `NAME=VALUE`.
    #[error("{setting} is not a setting; write it as NAME=VALUE")]
    BadSetting {
        /// The invalid setting.
        setting: String,
    },
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A built-in entry is invalid.
    #[error("the built-in entry {name} is invalid: {reason}; please report it")]
    BrokenEntry {
        /// Name of the entry.
        name: String,
        /// Fault of the entry.
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
