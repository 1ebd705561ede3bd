//! Suggestions for a name that is not known.

/// The known name that is nearest to one that is not known; `None` where none is near.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let known = known.into_iter();
    let by_distance = known.map(|known| (strsim::osa_distance(name, known), known));
    let near = by_distance.filter(|(distance, known)| *distance <= known.len() / 2);
    near.min().map(|(_, known)| known)
}

/// The suggestion for a name that is not known: the nearest one, or all where none is near.
pub fn nearest_or_all<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<_> = known.into_iter().collect();
    match nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("there are: {}", known.join(", ")),
    }
}
