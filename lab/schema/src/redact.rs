//! Removal of user names from shared results: `$HOME` and `$CACHE` replace folders in paths.

use std::path::{Path, PathBuf};

/// Folders to be replaced by variables, the longest first.
#[derive(Clone, Debug)]
pub struct Redaction {
    folders: Vec<(String, &'static str)>,
}

impl Redaction {
    /// Creates a redaction that replaces `cache` by `$CACHE` and `home` by `$HOME`. A folder whose
    /// path has only one character, such as `/`, is not replaced.
    pub fn new(home: Option<&Path>, cache: &Path) -> Self {
        let mut folders = vec![(cache.to_string_lossy().into_owned(), "$CACHE")];
        folders.extend(home.map(|path| (path.to_string_lossy().into_owned(), "$HOME")));
        folders.retain(|(folder, _)| folder.len() > 1);
        folders.sort_by_key(|(folder, _)| std::cmp::Reverse(folder.len()));
        Self { folders }
    }

    /// Returns `text` with each known folder replaced by its variable, but only where the folder
    /// forms whole path components.
    pub fn text(&self, text: &str) -> String {
        let mut result = text.to_owned();
        for (folder, name) in &self.folders {
            result = replace_folder(&result, folder, name);
        }
        result
    }

    /// Returns `path` with a leading variable, if any, replaced by its folder.
    pub fn undone(&self, path: &Path) -> PathBuf {
        let folder = |(folder, name): &(String, &'static str)| {
            Some(Path::new(folder).join(path.strip_prefix(name).ok()?))
        };
        let found = self.folders.iter().find_map(folder);
        found.unwrap_or_else(|| path.to_owned())
    }

    /// Returns `path` with each known folder replaced by its variable.
    pub fn path(&self, path: &Path) -> PathBuf {
        PathBuf::from(self.text(&path.to_string_lossy()))
    }
}

/// Replaces `folder` by `name` wherever it begins a path and ends at a component's end. For
/// example, `/home/ada` is not replaced in `/home/adam` or `/var/home/ada`.
fn replace_folder(text: &str, folder: &str, name: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(place) = rest.find(folder) {
        let (before, found) = rest.split_at(place);
        let after = &found[folder.len()..];
        let of_a_name = |c: char| c.is_alphanumeric() || "-_.".contains(c);
        let inside = after.starts_with(of_a_name) || before.ends_with(of_a_name);
        result.push_str(before);
        result.push_str(if inside { folder } else { name });
        rest = after;
    }
    result + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_goes_before_the_home_that_holds_it() {
        let redaction = Redaction::new(
            Some(Path::new("/home/ada")),
            Path::new("/home/ada/.cache/h"),
        );
        assert_eq!(
            redaction.text("/home/ada/.cache/h/a.so:/home/ada/b.so"),
            "$CACHE/a.so:$HOME/b.so"
        );
        for path in ["/home/ada/.cache/h/a.so", "/home/ada/b.so", "/usr/lib/c.so"] {
            let path = Path::new(path);
            assert_eq!(redaction.undone(&redaction.path(path)), path);
        }
        assert_eq!(redaction.text("/var/home/ada/x"), "/var/home/ada/x");
        assert_eq!(
            redaction.path(Path::new("/home/adam/x")),
            Path::new("/home/adam/x")
        );
    }
}
