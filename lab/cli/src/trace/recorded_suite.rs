//! The suite of a folder of traces: the suite `traces` with the folder's traces in place of the
//! built-in traces.

use std::fs::Permissions;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use heapdrome_library::Manifest;
use heapdrome_suites::TRACES;

use crate::failure::Failure;

/// Name of the suite's file.
pub(super) const FILE: &str = "suite.toml";

/// First line of the file, by which heapdrome recognises its own files.
const FIRST: &str =
    "# Written by heapdrome trace library: the traces of this folder under every allocator.";

/// Checks that `folder` has no [`FILE`] that heapdrome did not write. `force` skips the check.
///
/// # Errors
/// If the file exists and does not begin with [`FIRST`], or cannot be read, unless `force` is set.
pub(super) fn refuse_foreign(folder: &Path, force: bool) -> Result<(), Failure> {
    let path = folder.join(FILE);
    let is_own = match std::fs::read_to_string(&path) {
        Ok(text) => text.starts_with(FIRST),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    };
    match is_own || force {
        true => Ok(()),
        false => Err(Failure::Usage(format!(
            "{} was not written by heapdrome; use --force to overwrite it",
            path.display()
        ))),
    }
}

/// Writes the suite into a folder, completely or not at all.
///
/// # Errors
/// If it cannot be written.
pub(super) fn write(folder: &Path, manifest: &Manifest) -> Result<(), Failure> {
    let path = folder.join(FILE);
    let failed = |error: std::io::Error| Failure::Usage(format!("{}: {error}", path.display()));
    let whole = folder.canonicalize().map_err(failed)?;
    let names = manifest.traces.iter().map(|entry| entry.name.as_str());
    let text = text(&whole, names);
    let mut fresh = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    fresh.write_all(text.as_bytes()).map_err(failed)?;
    let rights = Permissions::from_mode(0o644);
    fresh.as_file().set_permissions(rights).map_err(failed)?;
    fresh.persist(&path).map_err(|error| failed(error.error))?;
    Ok(())
}

/// Returns the suite `traces` with the traces of these names replaced by those in `folder`.
fn text<'a>(folder: &Path, names: impl Iterator<Item = &'a str>) -> String {
    let mut text =
        format!("{FIRST}\n{TRACES}").replacen("name = \"traces\"", "name = \"recorded-traces\"", 1);
    for name in names {
        let path = folder.join(format!("{name}.trace")).display().to_string();
        // Escape the path for a quoted TOML string.
        let path = path.replace('\\', r"\\").replace('"', "\\\"");
        text = text.replace(
            &format!("\"trace=library:{name}\""),
            &format!("\"trace={path}\""),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapdrome_suites::Suite;

    #[test]
    fn every_cell_of_a_recorded_trace_names_its_file() {
        let folder = Path::new("/a \"folder\" of \\ mine");
        let suite = Suite::read(&text(folder, ["gcc", "git"].into_iter())).expect("a suite");
        assert_eq!(suite.name, "recorded-traces");
        for cell in &suite.cells {
            let trace = cell.name.trim_end_matches("-paced");
            let expected = match trace {
                "gcc" | "git" => format!("trace={}/{trace}.trace", folder.display()),
                carried => format!("trace=library:{carried}"),
            };
            assert_eq!(cell.words[0], expected);
        }
    }
}
