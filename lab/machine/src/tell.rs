//! Constructors of conditions, and a reader of system files.

use heapdrome_schema::{Condition, Level};

/// Creates a condition that is good for measurements.
pub(crate) fn good(name: &str, value: impl Into<String>, meaning: &str) -> Condition {
    condition(name, value, Level::Good, meaning, None)
}

/// Creates a condition that users should know about, but that is not a warning.
pub(crate) fn note(
    name: &str,
    value: impl Into<String>,
    meaning: &str,
    fix: Option<&str>,
) -> Condition {
    condition(name, value, Level::Note, meaning, fix)
}

/// Creates a condition that distorts results or makes a measurement impossible.
pub(crate) fn warning(name: &str, value: impl Into<String>, meaning: &str, fix: &str) -> Condition {
    condition(name, value, Level::Warning, meaning, Some(fix))
}

/// Creates a condition whose value cannot be read on this machine.
pub(crate) fn unreadable(name: &str, path: &str, meaning: &str) -> Condition {
    condition(
        name,
        format!("not readable here: {path}"),
        Level::Note,
        meaning,
        None,
    )
}

fn condition(
    name: &str,
    value: impl Into<String>,
    level: Level,
    meaning: &str,
    fix: Option<&str>,
) -> Condition {
    Condition {
        name: name.to_owned(),
        value: value.into(),
        level,
        meaning: meaning.to_owned(),
        fix: fix.map(str::to_owned),
    }
}

/// Reads a text file, without trailing white space; `None` if the file is unreadable.
pub(crate) fn read(path: &str) -> Option<String> {
    std::fs::read(path)
        .ok()
        .map(|text| String::from_utf8_lossy(&text).trim_end().to_owned())
}
