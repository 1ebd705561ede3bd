//! Tests that the README and the page on reading a result contain heapdrome's actual output.

use std::path::Path;

use crate::support::Site;

/// Blocks of printed text: document, result, and the options of `heapdrome show` that print it.
const SHOWN: [(&str, &str, &[&str]); 3] = [
    ("README.md", "jq.json.gz", &[]),
    ("docs/reading.md", "build.json.gz", &[]),
    ("docs/reading.md", "python.json.gz", &["--full"]),
];

/// Returns the blocks of printed text of a document.
fn blocks(document: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(document).expect("the document is there");
    let blocks = text.split("```text\n").skip(1);
    let blocks = blocks.filter_map(|block| block.split("```").next());
    blocks.map(str::to_owned).collect()
}

/// Returns the output of `heapdrome show` for a committed result.
fn printed(result: &Path, options: &[&str]) -> String {
    let site = Site::new();
    // The printed text contains the name of its result. The documents show a race that has just
    // ended, whose name is `latest`.
    std::fs::copy(result, site.path("latest")).expect("a result");
    let mut show = site.command(&[&["show", "latest"], options].concat());
    show.env_remove("COLUMNS");
    site.finish(show).ends_with(0).stdout.clone()
}

#[test]
fn documents_show_what_show_prints() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for document in ["README.md", "docs/reading.md"] {
        let results = SHOWN.iter().filter(|(of, _, _)| *of == document);
        let results = results
            .map(|(_, name, options)| printed(&root.join("docs/results").join(name), options));
        let (blocks, results) = (blocks(&root.join(document)), results.collect::<Vec<_>>());
        assert_eq!(blocks.len(), results.len(), "{document}");
        for (block, printed) in blocks.iter().zip(&results) {
            assert!(block.contains("Conclusion:"), "{block}");
            let printed: Vec<&str> = printed.lines().collect();
            for part in block.trim_end().split("\n\n") {
                let lines: Vec<&str> = part.lines().collect();
                let mut places = printed.windows(lines.len());
                assert!(
                    places.any(|own| own == lines),
                    "{part}\nis not in:\n{}",
                    printed.join("\n")
                );
            }
        }
    }
}
