//! Places in the source, and the reasons why they are not known.

/// A place in the source of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The function, as it is written in the source; as it is linked, if its name cannot be
    /// decoded.
    pub function: String,
    /// The path of the source file, as the compiler knew it.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: Option<u32>,
}

/// Why the frames of a module have no names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Trouble {
    /// The file cannot be read, and no debug information with its build id is installed.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    /// The file is of another build.
    #[error("it has build id {found}, and had {recorded} when it was recorded")]
    OtherBuild {
        /// Its build id; empty if it has none.
        found: String,
        /// The build id in the trace.
        recorded: String,
    },
    /// The file is no ELF file, or a damaged one.
    #[error("it is damaged: {0}")]
    Damaged(String),
}

/// A module whose frames have no names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The path of the module.
    pub path: String,
    /// The reason.
    pub trouble: Trouble,
}
