//! Suggestions for unknown names.

/// Returns the known name that is most similar to `name`; `None` if none is similar enough.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let known = known.into_iter();
    let by_distance = known.map(|known| (strsim::osa_distance(name, known), known));
    let near = by_distance.filter(|(distance, known)| *distance <= known.len() / 2);
    near.min().map(|(_, known)| known)
}

/// Returns a suggestion for an unknown name: the most similar known name, or else a list of all
/// known names.
pub fn nearest_or_all<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<_> = known.into_iter().collect();
    match nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("there are: {}", known.join(", ")),
    }
}
