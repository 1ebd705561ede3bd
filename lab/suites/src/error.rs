//! What can be wrong with a suite.

use heapdrome_schema::nearest;

/// Why a suite cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SuiteError {
    /// There is none of this name.
    #[error("there is no suite '{name}'{hint}; there are {known}, and files such as ./mine.toml")]
    Unknown {
        /// The name.
        name: String,
        /// The nearest name, if one is near.
        hint: String,
        /// Every name.
        known: String,
    },
    /// The text is not a suite.
    #[error("this is not a suite: {0}")]
    Unreadable(String),
    /// Its parts do not fit each other.
    #[error("suite {suite}: {reason}")]
    Contradiction {
        /// The suite.
        suite: String,
        /// What does not fit.
        reason: String,
    },
    /// A cell was asked for that no suite has.
    #[error("--only {asked}: there is no such cell; there are {known}")]
    UnknownCell {
        /// What was asked for.
        asked: String,
        /// The cells that there are.
        known: String,
    },
}

impl SuiteError {
    /// There is no suite `name` among the `known` ones.
    pub(crate) fn unknown(name: &str, known: &[&str]) -> Self {
        let near = nearest(name, known.iter().copied());
        Self::Unknown {
            name: name.to_owned(),
            hint: near.map_or_else(String::new, |near| format!(", did you mean {near}?")),
            known: known.join(", "),
        }
    }
}
