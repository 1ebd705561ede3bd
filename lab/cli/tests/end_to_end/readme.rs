//! What the README shows is what heapdrome prints.

use std::path::Path;

use crate::support::Site;

/// The result behind each block of the README, and the options of `heapdrome show` that print it.
const SHOWN: [(&str, &[&str]); 3] = [
    ("jq.json.gz", &[]),
    ("build.json.gz", &[]),
    ("python.json.gz", &["--full"]),
];

#[test]
fn the_readme_shows_what_show_prints() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).expect("the README is there");
    let results = SHOWN.map(|(name, options)| {
        let site = Site::new();
        // A race that has just ended is shown by this name.
        let path = root.join("docs/results").join(name);
        std::fs::copy(path, site.path("latest")).expect("a result");
        let mut show = site.command(&[&["show", "latest"], options].concat());
        show.env_remove("COLUMNS");
        site.finish(show).ends_with(0).stdout.clone()
    });
    let blocks = readme.split("```text\n").skip(1);
    let blocks: Vec<&str> = blocks
        .filter_map(|block| block.split("```").next())
        .collect();
    assert_eq!(blocks.len(), results.len());
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
