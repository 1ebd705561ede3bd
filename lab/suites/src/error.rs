//! Errors in a suite.

use heapdrome_schema::nearest;

/// The reason why a suite cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SuiteError {
    /// No suite has this name.
    #[error(
        "no such suite: {name}{hint}; available: {known}, lgalloc, and files such as ./mine.toml"
    )]
    Unknown {
        /// Name that was requested.
        name: String,
        /// Suggestion ` (did you mean NAME?)`; empty if no name is similar.
        hint: String,
        /// Names of all suites, separated by commas.
        known: String,
    },
    /// The text is not a suite.
    #[error("this is not a suite: {0}")]
    Unreadable(String),
    /// The parts of the suite contradict each other.
    #[error("suite {suite}: {reason}")]
    Contradiction {
        /// Name of the suite.
        suite: String,
        /// Description of the contradiction.
        reason: String,
    },
    /// No suite has the requested cell, or the requested kind of misuse is unknown.
    #[error("--only {asked}: no such cell; available: {known}")]
    UnknownCell {
        /// Cell or kind of misuse that was requested.
        asked: String,
        /// Names of the existing cells or kinds, separated by commas.
        known: String,
    },
}

impl SuiteError {
    /// Returns the error for a suite `name` that is not one of `known`.
    pub(crate) fn unknown(name: &str, known: &[&str]) -> Self {
        let near = nearest(name, known.iter().copied());
        Self::Unknown {
            name: name.to_owned(),
            hint: near.map_or_else(String::new, |near| format!(" (did you mean {near}?)")),
            known: known.join(", "),
        }
    }
}
