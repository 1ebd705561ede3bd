//! Places in source code, and the reasons why a place is unknown.

/// A place in the source of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Name of the function as in the source, or its symbol if the symbol cannot be decoded.
    pub function: String,
    /// Path of the source file, as passed to the compiler.
    pub file: Option<String>,
    /// Number of the line, counted from 1.
    pub line: Option<u32>,
}

/// Reason why the frames of a module have no names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Trouble {
    /// The file cannot be read, and no debug information with its build id is installed.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    /// The file belongs to another build.
    #[error("it has build id {found}, and had {recorded} when it was recorded")]
    OtherBuild {
        /// Build id of the file; empty if it has none.
        found: String,
        /// Build id in the trace.
        recorded: String,
    },
    /// The file is damaged, or is not an ELF file.
    #[error("it is damaged: {0}")]
    Damaged(String),
}

/// A module whose frames have no names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The path of the module.
    pub path: String,
    /// Reason why the frames have no names.
    pub trouble: Trouble,
}
