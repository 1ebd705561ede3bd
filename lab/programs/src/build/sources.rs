//! The translation units of a build.

use std::path::{Path, PathBuf};

use crate::ProgramError;
use crate::definition::Build;

/// Returns the paths of `count` translation units within the package, in an order that does not
/// depend on the machine. `count` is the length of one of the three lists: all, quick, or default
/// units.
pub(crate) fn list(
    build: &Build,
    count: usize,
    package: &Path,
) -> Result<Vec<String>, ProgramError> {
    let path = |unit: &String| format!("{}/{unit}.{}", build.folder, build.extension);
    let missing = |path: PathBuf| ProgramError::SourceMissing {
        package: format!("{} {}", build.package.name, build.package.version),
        path,
    };
    if count == build.all_units {
        let units = all(build, package);
        return match units.len() == count {
            true => Ok(units),
            false => Err(missing(package.join(&build.folder))),
        };
    }
    let units = match count == build.quick_units.len() {
        true => &build.quick_units,
        false => &build.units,
    };
    let units: Vec<_> = units.iter().map(path).collect();
    match units
        .iter()
        .map(|unit| package.join(unit))
        .find(|path| !path.is_file())
    {
        None => Ok(units),
        Some(path) => Err(missing(path)),
    }
}

/// Returns every translation unit in the folder, sorted; omits unreadable folders.
fn all(build: &Build, package: &Path) -> Vec<String> {
    let mut units = Vec::new();
    let mut folders = vec![package.join(&build.folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| *it == *build.extension) {
                let unit = path.strip_prefix(package).unwrap_or(&path);
                units.push(unit.to_string_lossy().into_owned());
            }
        }
    }
    units.sort_unstable();
    units
}
