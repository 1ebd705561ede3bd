//! Golden files: stored outputs of exporters.

use std::path::Path;

/// Asserts that `text` equals the golden file of this name. If `HEAPDROME_GOLDEN` is set, first
/// writes `text` to the file, which must then be reviewed before a commit.
#[track_caller]
pub fn matches(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    if std::env::var_os("HEAPDROME_GOLDEN").is_some() {
        std::fs::write(&path, text).expect("the golden can be written");
    }
    let golden = std::fs::read_to_string(&path).expect("the golden is there");
    assert_eq!(text, golden, "{name}; HEAPDROME_GOLDEN=1 writes it anew");
}

/// Returns the text without its colours, and without the padding of coloured cells.
#[allow(dead_code)]
pub fn uncoloured(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    let plain = parts.fold(first, |plain, part| {
        let (code, rest) = part.split_once('m').expect("a colour ends with m");
        let is_code = code.chars().all(|c| c.is_ascii_digit() || c == ';');
        assert!(is_code, "{code:?} is no colour");
        plain + rest
    });
    let lines = plain.split('\n').map(str::trim_end);
    lines.collect::<Vec<_>>().join("\n")
}
