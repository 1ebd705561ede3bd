//! Conversion of apt's configured binary archives to source archives.

use std::path::{Path, PathBuf};

/// Returns one item for each of apt's files in `folder` that configures archives of Debian or
/// Ubuntu: the extension of the file's name, and a text that configures their source archives.
pub(super) fn source_entries(folder: &Path) -> Vec<(&'static str, String)> {
    let mut files = vec![folder.join("sources.list")];
    let parts = std::fs::read_dir(folder.join("sources.list.d"))
        .into_iter()
        .flatten()
        .flatten();
    let mut parts: Vec<PathBuf> = parts.map(|entry| entry.path()).collect();
    parts.sort();
    files.extend(parts);
    files.iter().filter_map(|path| convert(path)).collect()
}

fn convert(path: &Path) -> Option<(&'static str, String)> {
    let kind = match path.extension()?.to_str()? {
        "list" => "list",
        "sources" => "sources",
        _ => return None,
    };
    let text = std::fs::read_to_string(path).ok()?;
    let converted = if kind == "list" {
        convert_list(&text)
    } else {
        convert_stanzas(&text)
    };
    (!converted.is_empty()).then_some((kind, converted))
}

/// Returns whether the text names an archive of the distribution itself. Third-party archives do
/// not contain the needed sources, and may be unreachable.
fn names_the_distribution(text: &str) -> bool {
    text.contains("/debian") || text.contains("/ubuntu")
}

/// Converts each `deb` line of the distribution to a `deb-src` line. Drops all other lines.
fn convert_list(text: &str) -> String {
    let lines = text
        .lines()
        .map(str::trim)
        .filter(|line| names_the_distribution(line));
    let entries = lines.filter_map(|line| line.strip_prefix("deb ").or(line.strip_prefix("deb\t")));
    entries
        .map(|entry| format!("deb-src {}\n", entry.trim()))
        .collect()
}

/// Sets `Types: deb-src` in each stanza. Drops stanzas that are disabled or do not configure an
/// archive of the distribution.
fn convert_stanzas(text: &str) -> String {
    let stanzas = text
        .split("\n\n")
        .filter(|stanza| is_enabled_archive(stanza));
    let convert_line = |line: &str| {
        let is_types = line.to_ascii_lowercase().starts_with("types:");
        if is_types {
            "Types: deb-src\n".to_owned()
        } else {
            format!("{line}\n")
        }
    };
    let convert = |stanza: &str| stanza.lines().map(convert_line).collect::<String>();
    stanzas.map(|stanza| convert(stanza) + "\n").collect()
}

fn is_enabled_archive(stanza: &str) -> bool {
    let fields: Vec<_> = stanza
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    let has = |name: &str, test: &dyn Fn(&str) -> bool| {
        let lower = fields.iter().map(|line| line.to_ascii_lowercase());
        lower
            .filter(|line| line.starts_with(name))
            .any(|line| test(&line))
    };
    has("types:", &|_| true)
        && has("uris:", &names_the_distribution)
        && !has("enabled:", &|line| line.contains("no"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_source_lines() {
        let text = "# a remark\ndeb http://deb.debian.org/debian bookworm main\n\
                    deb-src http://deb.debian.org/debian bookworm main\n\
                    deb [signed-by=/k] https://archive.example/apt stable main\n";
        assert_eq!(
            convert_list(text),
            "deb-src http://deb.debian.org/debian bookworm main\n"
        );
    }

    #[test]
    fn stanzas_become_source_stanzas() {
        let text = "Types: deb\n# mirror\nURIs: http://deb.debian.org/debian\nSuites: bookworm\n\n\
                    Types: deb\nURIs: https://archive.example/node\nSuites: n\n\n\
                    Enabled: no\nTypes: deb\nURIs: http://deb.debian.org/debian\nSuites: sid\n";
        let expected = "Types: deb-src\n# mirror\nURIs: http://deb.debian.org/debian\n\
                        Suites: bookworm\n\n";
        assert_eq!(convert_stanzas(text), expected);
    }

    #[test]
    fn a_folder_without_sources_gives_none() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        assert!(source_entries(folder.path()).is_empty());
    }
}
