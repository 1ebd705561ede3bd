//! Conditions of a machine that affect a measurement.

use serde::{Deserialize, Serialize};

/// Severity of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Suitable for a measurement.
    Good,
    /// Relevant to a reader of the result, or unreadable on this machine.
    Note,
    /// Distorts results, hides differences or makes a measurement impossible.
    Warning,
}

/// One condition of the machine, its meaning for a result, and its remedy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// Subject of the check, such as `swap`.
    pub name: String,
    /// Value that was found. The text begins with `not readable here` if the value is unknown.
    pub value: String,
    /// Severity of the condition for a measurement.
    pub level: Level,
    /// Meaning of the condition for a result, in one sentence.
    pub meaning: String,
    /// Exact command or action that fixes the condition, if there is one.
    pub fix: Option<String>,
}
