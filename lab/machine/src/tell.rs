//! Short ways to make a condition.

use heapdrome_schema::{Condition, Level};

/// A condition as a measurement wants it.
pub(crate) fn good(name: &str, value: impl Into<String>, meaning: &str) -> Condition {
    condition(name, value, Level::Good, meaning, None)
}

/// A condition worth knowing.
pub(crate) fn note(
    name: &str,
    value: impl Into<String>,
    meaning: &str,
    mend: Option<&str>,
) -> Condition {
    condition(name, value, Level::Note, meaning, mend)
}

/// A condition that bends results or takes a measurement away.
pub(crate) fn warning(
    name: &str,
    value: impl Into<String>,
    meaning: &str,
    mend: &str,
) -> Condition {
    condition(name, value, Level::Warning, meaning, Some(mend))
}

/// A condition that this machine does not show.
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
    mend: Option<&str>,
) -> Condition {
    Condition {
        name: name.to_owned(),
        value: value.into(),
        level,
        meaning: meaning.to_owned(),
        mend: mend.map(str::to_owned),
    }
}

/// The text of a file of the kernel's, without the last newline; `None` where it cannot be read.
pub(crate) fn read(path: &str) -> Option<String> {
    std::fs::read(path)
        .ok()
        .map(|text| String::from_utf8_lossy(&text).trim_end().to_owned())
}
