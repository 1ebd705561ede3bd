//! What somebody may have meant who wrote a name that is not known.

/// The known name that is nearest to one that is not known, or all names where none is near.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<_> = known.collect();
    let near = known
        .iter()
        .map(|known| (strsim::osa_distance(name, known), known))
        .filter(|(distance, known)| *distance <= known.len() / 2)
        .min();
    match near {
        Some((_, near)) => format!("did you mean {near}?"),
        None => format!("there are: {}", known.join(", ")),
    }
}
