//! Tests of results compressed by gzip: commands read them like plain results, output whose name
//! ends in `.gz` is compressed, and damaged files are reported.

use std::io::Write as _;
use std::process::Stdio;

use crate::saved::{self, RACE, SUITE};
use crate::support::Site;

/// Creates a folder with a race, as `r.json`, and compressed as `r.json.gz`.
fn site() -> Site {
    let site = Site::new();
    site.file("plain.json", saved::text(RACE));
    for name in ["r.json", "r.json.gz"] {
        let ask = ["show", "plain.json", "--json", name];
        site.run(&ask).ends_with(0);
    }
    site
}

fn bytes(site: &Site, name: &str) -> Vec<u8> {
    std::fs::read(site.path(name)).expect("the file is there")
}

#[test]
fn the_name_decides_how_a_result_is_written() {
    let site = site();
    let (plain, packed) = (bytes(&site, "r.json"), bytes(&site, "r.json.gz"));
    assert!(plain.starts_with(b"{") && packed.starts_with(b"\x1f\x8b"));
    assert!(packed.len() * 4 < plain.len(), "{}", packed.len());
    let ask = ["show", "r.json.gz", "--json", "again.json"];
    site.run(&ask).ends_with(0);
    assert_eq!(bytes(&site, "again.json"), plain);
    site.file("suite.json", saved::text(SUITE));
    let ask = [
        "show",
        "suite.json",
        "--json",
        "s.json.gz",
        "--csv",
        "s.csv.gz",
    ];
    site.run(&ask).ends_with(0);
    for name in ["s.json.gz", "s.csv.gz"] {
        assert!(bytes(&site, name).starts_with(b"\x1f\x8b"), "{name}");
    }
    let ask = ["compare", "r.json", "r.json.gz", "--json", "c.json.gz"];
    site.run(&ask).ends_with(0);
    assert!(bytes(&site, "c.json.gz").starts_with(b"\x1f\x8b"));
    site.run(&["show", "c.json.gz"])
        .complains(2, &["c.json.gz is a comparison of two results"]);
}

#[test]
fn a_compressed_result_is_known_by_what_is_in_it() {
    let site = site();
    site.file("named.json", bytes(&site, "r.json.gz"));
    site.file("named.json.gz", bytes(&site, "r.json"));
    let shown = site.run(&["show", "r.json", "--full"]);
    let shown = shown.ends_with(0).stdout.clone();
    for name in ["r.json.gz", "named.json", "named.json.gz"] {
        let outcome = site.run(&["show", name, "--full"]);
        assert_eq!(outcome.ends_with(0).stdout, shown, "{name}");
    }
    let mut piped = site.command(&["show", "-", "--full"]);
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    piped.stdin(Stdio::from(reader));
    let running = site.start(piped);
    writer
        .write_all(&bytes(&site, "r.json.gz"))
        .expect("it is read");
    drop(writer);
    assert_eq!(running.wait().ends_with(0).stdout, shown);
}

#[test]
fn the_page_and_the_plots_of_a_compressed_result_are_those_of_the_plain_one() {
    let site = site();
    for (name, page, plots) in [("r.json", "a.html", "a"), ("r.json.gz", "b.html", "b")] {
        site.run(&["report", name, "-o", page]).ends_with(0);
        let ask = [
            "plot", name, "-o", plots, "--only", "time", "--format", "svg",
        ];
        site.run(&ask).ends_with(0);
    }
    assert_eq!(bytes(&site, "a.html"), bytes(&site, "b.html"));
    let drawn = |folder: &str| bytes(&site, &format!("{folder}/time-memory.svg"));
    assert_eq!(drawn("a"), drawn("b"));
}

#[test]
fn a_damaged_file_is_told_in_one_line() {
    let site = site();
    let whole = bytes(&site, "r.json.gz");
    site.file("cut.json.gz", &whole[..whole.len() / 2]);
    let mut damaged = whole;
    let middle = damaged.len() / 2;
    damaged[middle..middle + 64].fill(0xff);
    site.file("bad.json.gz", &damaged);
    let cases = [
        ("cut.json.gz", "cut.json.gz ends in the middle"),
        ("bad.json.gz", "bad.json.gz is a damaged gzip file: "),
    ];
    for (name, words) in cases {
        let asks: [&[&str]; 5] = [
            &["show", name],
            &["report", name, "-o", "x"],
            &["plot", name, "-o", "x"],
            &["compare", name, "r.json"],
            &["suite", "real", "--resume", name],
        ];
        for ask in asks {
            site.run(ask).complains(2, &[words]);
        }
    }
    assert!(!site.path("x").exists());
}
