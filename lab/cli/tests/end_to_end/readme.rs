//! What the README shows is what heapdrome prints.

use std::path::Path;

use crate::support::Site;

#[test]
fn the_readme_shows_what_show_prints() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).expect("the README is there");
    let site = Site::new();
    let results = ["python.json", "build.json"].map(|name| {
        let path = root.join("docs/results").join(name);
        let words = ["show", path.to_str().expect("a plain path")];
        site.run(&words).ends_with(0).stdout.clone()
    });
    let blocks = readme.split("```text\n").skip(1);
    let blocks: Vec<&str> = blocks
        .filter_map(|block| block.split("```").next())
        .collect();
    assert_eq!(blocks.len(), results.len());
    for (block, printed) in blocks.iter().zip(&results) {
        assert!(block.contains("Conclusion:"), "{block}");
        for line in block.lines() {
            assert!(
                printed.lines().any(|own| own == line),
                "'{line}' is not in:\n{printed}"
            );
        }
    }
}
