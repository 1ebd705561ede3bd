//! Fetches the real package from the registry, and builds the default form, the quick form and two
//! units of the full form.

use std::process::Command;

use heapdrome_packages::Cache;
use heapdrome_programs::find;

fn build(word: &str) -> (usize, String) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let cache = Cache::at(folder.path()).expect("a cache");
    let program = find("build").expect("the program is there");
    let settings = program.settings(&[word]).expect("a parameter");
    let prepared = program
        .prepare(&cache, &settings, &mut |_| {})
        .expect("ready");
    let mut command = Command::new(&prepared.command[0]);
    let output = command
        .args(&prepared.command[1..])
        .current_dir(&prepared.directory)
        .output();
    let output = output.expect("it starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    let mut members = Command::new("ar");
    members
        .args(["t", "libgeos-part.a"])
        .current_dir(&prepared.directory);
    let members = members.output().expect("ar is here");
    (
        String::from_utf8_lossy(&members.stdout).lines().count(),
        prepared.notes.join("\n"),
    )
}

#[test]
fn the_whole_form_has_at_least_a_hundred_translation_units() {
    let (units, notes) = build("quick=no");
    assert!(units >= 100, "{units}");
    assert!(
        notes.contains(&format!("{units} translation units")),
        "{notes}"
    );
}

#[test]
fn the_quick_form_is_small() {
    let (units, notes) = build("quick=yes");
    assert!((5..20).contains(&units), "{units}");
    assert!(
        notes.contains(&format!("{units} translation units")),
        "{notes}"
    );
}

/// Building all units takes minutes, so the test builds only two units that need generated and
/// bundled headers.
#[test]
fn units_of_the_full_form_find_generated_and_bundled_headers() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let cache = Cache::at(folder.path()).expect("a cache");
    let program = find("build").expect("the program is there");
    let settings = program.settings(&["units=376"]).expect("a parameter");
    let prepared = program
        .prepare(&cache, &settings, &mut |_| {})
        .expect("ready");
    assert!(prepared.notes[0].starts_with("376 translation units"));
    let output = Command::new(&prepared.command[0])
        .args([
            "objects/source_src_geom_Geometry.o",
            "objects/source_src_io_WKTWriter.o",
        ])
        .current_dir(&prepared.directory)
        .output()
        .expect("it starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}
