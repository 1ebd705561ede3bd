//! The published pages are of today's form.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use heapdrome_report::page;

/// So much of a page is read: its policy stands at the top.
const HEAD: u64 = 4096;

/// What a page allows itself: the hashes of its style and of its script.
fn policy(page: &str) -> Option<&str> {
    let start = "http-equiv=\"Content-Security-Policy\" content=\"";
    let (_, rest) = page.split_once(start)?;
    rest.split_once('"').map(|(policy, _)| policy)
}

fn published() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
    let files = folder.read_dir().expect("results are published").flatten();
    let paths = files.map(|file| file.path());
    let mut pages: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|ending| ending == "html"))
        .collect();
    pages.sort();
    pages
}

/// Whoever changes the page's style or script makes the published pages anew: the loop in docs/results/README.md.
#[test]
fn every_published_page_has_the_style_and_the_script_of_today() {
    let today = String::from_utf8(page(&[]).expect("a page")).expect("UTF-8");
    let today = policy(&today).expect("a page has a policy");
    let is_stale = |path: &PathBuf| {
        let mut head = Vec::new();
        let file = File::open(path).expect("the page opens");
        file.take(HEAD).read_to_end(&mut head).expect("it is read");
        policy(&String::from_utf8_lossy(&head)) != Some(today)
    };
    let (stale, fresh): (Vec<PathBuf>, Vec<PathBuf>) = published().into_iter().partition(is_stale);
    assert!(
        stale.is_empty() && !fresh.is_empty(),
        "of another version: {stale:?}; run the loop in docs/results/README.md"
    );
}
