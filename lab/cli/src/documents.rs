//! Test that heapdrome can parse the command lines in its main documents.

use std::path::Path;

use clap::Parser;

use crate::arguments::Arguments;

/// Returns every call of heapdrome in the code blocks of a document, with continued lines joined.
/// Omits lines with an ellipsis.
fn calls(text: &str) -> Vec<String> {
    let joined = text.replace("\\\n", " ");
    let mut fenced = false;
    let mut calls = Vec::new();
    for line in joined.lines() {
        fenced ^= line.trim_start().starts_with("```");
        let is_code = fenced || line.starts_with("    ");
        let line = line.trim();
        if is_code && line.starts_with("heapdrome ") && !line.contains("...") {
            calls.push(line.to_owned());
        }
    }
    calls
}

#[test]
fn every_command_line_of_the_documents_is_one() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (document, least) in [
        ("docs/ci.md", 4),
        ("docs/report.md", 2),
        ("docs/sweeps.md", 4),
        ("docs/commands.md", 18),
        ("docs/traces.md", 9),
        ("docs/profiles.md", 3),
        ("docs/replays.md", 9),
        ("README.md", 4),
    ] {
        let text = std::fs::read_to_string(root.join(document)).expect("the document is there");
        let calls = calls(&text);
        assert!(calls.len() >= least, "{document}: {calls:?}");
        for call in calls {
            let words = shlex::split(&call).unwrap_or_else(|| panic!("{document}: {call}"));
            if let Err(error) = Arguments::try_parse_from(&words) {
                panic!("{document}: {call}: {error}");
            }
        }
    }
}
