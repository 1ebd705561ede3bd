//! What in a machine's state bears on a measurement.

use serde::{Deserialize, Serialize};

/// How much a condition matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// As a measurement wants it.
    Good,
    /// Worth knowing when the result is read; or it could not be read here.
    Note,
    /// It bends results, hides differences or takes a measurement away.
    Warning,
}

/// One condition of the machine, what it means for a result, and how to mend it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// What was looked at, such as `swap`.
    pub name: String,
    /// What was found; starts with `not readable here` where that could not be told.
    pub value: String,
    /// How much it matters.
    pub level: Level,
    /// What it means for a result, in one sentence.
    pub meaning: String,
    /// The exact command or act that mends it, where there is one.
    pub mend: Option<String>,
}
