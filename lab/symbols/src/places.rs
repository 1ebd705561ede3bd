//! Places in source code, and the reasons why a place is unknown.

/// A place in the source of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Name of the function as in the source, or its symbol if the symbol cannot be decoded.
    pub function: String,
    /// Path of the source file. A relative path is joined to the compiler's working folder.
    pub file: Option<String>,
    /// Number of the line, counted from 1.
    pub line: Option<u32>,
}

/// Reason why the frames of a module have no names. In each case, no debug information with the
/// module's build id is installed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Trouble {
    /// The file cannot be read, is too large, or is not a regular file.
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
