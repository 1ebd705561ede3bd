//! Former names of suites. Users can select a renamed suite by its former name for one release.

use std::borrow::Cow;

use heapdrome_schema::Collection;

use crate::list;

/// Returns the current name of a suite or of one of its cells, such as `suite/cell=2`.
pub fn present_name(name: &str) -> Cow<'_, str> {
    let end = name.find(['/', '=']).unwrap_or(name.len());
    let (suite, cell) = name.split_at(end);
    let has_been = |one: &&crate::Suite| one.formerly.iter().any(|former| former == suite);
    match list().iter().find(has_been) {
        Some(renamed) => format!("{}{cell}", renamed.name).into(),
        None => name.into(),
    }
}

/// Renames a collection that was stored under a former name of its suite.
pub fn rename(collection: &mut Collection) {
    let Cow::Owned(present) = present_name(&collection.name) else {
        return;
    };
    collection.name = present;
    for race in &mut collection.races {
        race.cell = present_name(&race.cell).into_owned();
    }
}
