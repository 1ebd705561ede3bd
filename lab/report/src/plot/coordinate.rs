//! Formatting of coordinates.

/// Formats a coordinate, with one decimal if necessary.
pub(crate) fn n(value: f64) -> String {
    let text = format!("{value:.1}");
    match text.strip_suffix(".0") {
        Some("-0") => "0".to_owned(),
        Some(whole) => whole.to_owned(),
        None => text,
    }
}
