//! Tests of unusable libraries, results, lists, caches and folders, and of unusable names of
//! allocators and races. Each must lead to an error of one line, and to no partial output.

use crate::support::{Site, allocator, program};

#[test]
fn a_library_that_is_no_allocator_is_not_added() {
    let site = Site::new();
    let text = site.file("text.so", "text");
    let text = text.to_str().expect("plain");
    site.run(&["allocators", "add", "mine", text])
        .complains(2, &["text.so", "not a shared object"]);
    site.run(&["allocators", "show", "mine"])
        .complains(2, &["mine"]);
}

#[test]
fn an_unknown_race_to_resume() {
    let site = Site::new();
    site.run(&["race", "--resume"])
        .complains(2, &["no unfinished race"]);
    site.run(&["race", "--resume", "nosuch"])
        .complains(2, &["nosuch"]);
    site.run(&["race", "--resume", "../.."])
        .complains(2, &["no such race"]);
}

/// Returns a valid saved result, which a test then damages.
fn saved_result(site: &Site) -> String {
    let sound = allocator("");
    let (outcome, _) = site.race(&[&sound], &["--memory-runs", "0"], &[&program()]);
    outcome.ends_with(0);
    std::fs::read_to_string(site.path("result.json")).expect("the result was written")
}

#[test]
fn results_that_cannot_be_shown() {
    let site = Site::new();
    let whole = saved_result(&site);
    let show = |name: &str, content: &str| {
        site.file(name, content);
        site.run(&["show", name])
    };
    for length in [1, whole.len() / 2, whole.len() - 3] {
        let outcome = show("cut.json", &whole[..length]);
        outcome.complains(2, &["cut.json ends in the middle (was it cut short?)"]);
    }
    show("none.json", "").complains(2, &["none.json is empty"]);
    let foreign = "other.json is not a heapdrome result";
    show("other.json", "[1, 2]").complains(2, &[foreign]);
    for schema in ["0", "7"] {
        let other = whole.replacen("\"schema\": 1", &format!("\"schema\": {schema}"), 1);
        assert_ne!(other, whole);
        let told = format!("schema.json has schema {schema}; this heapdrome reads 1 to 1");
        show("schema.json", &other).complains(2, &[&told]);
    }
    site.run(&["show", "missing.json"])
        .complains(2, &["missing.json"]);
}

#[test]
fn a_broken_result_is_not_written_in_another_form() {
    let site = Site::new();
    site.file("cut.json", "{\"schema\": 1,");
    let old = site.file("table.md", "an older table");
    site.run(&["show", "cut.json", "--markdown", "table.md"])
        .complains(2, &["cut.json"]);
    assert_eq!(
        std::fs::read_to_string(old).expect("it is there"),
        "an older table"
    );
    assert_eq!(site.visible_files(), ["cut.json", "table.md"]);
}

#[test]
fn a_broken_list_of_the_users_allocators() {
    let site = Site::new();
    let folder = site.path(".config/heapdrome");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("allocators.toml"), "name = [").expect("a file");
    site.run(&["allocators", "list"])
        .complains(2, &["allocators.toml"]);
}

#[test]
fn a_cache_that_is_somebody_elses() {
    let site = Site::new();
    let precious = site.file("precious", "do not remove");
    let mut command = site.command(&["cache", "clean"]);
    command.env("HEAPDROME_CACHE", precious.parent().expect("a folder"));
    site.finish(command)
        .complains(4, &["not a cache of heapdrome"]);
    assert!(precious.exists());
}

#[test]
fn a_group_is_no_name_for_an_allocator() {
    let (site, sound) = (Site::new(), allocator(""));
    let arguments = [
        "allocators",
        "add",
        "default",
        sound.to_str().expect("plain"),
    ];
    site.run(&arguments).complains(2, &["default", "group"]);
}

#[test]
fn a_setting_of_an_allocator_is_not_removed_with_it() {
    let outcome = Site::new().run(&["allocators", "remove", "jemalloc-decay"]);
    outcome.complains(2, &["jemalloc-decay", "setting of jemalloc"]);
}

/// Root may write anywhere, so a file blocks the path here.
#[test]
fn a_state_folder_that_cannot_be_made() {
    let advice = "set XDG_STATE_HOME to a folder that you may write to";
    let sound = allocator("");
    let sound = sound.to_str().expect("plain");
    let program = program();
    let race = ["race", "-a", sound, "--rounds", "2", "--", &program];
    let paging = ["paging", "clean"];
    for arguments in [&race[..], &paging] {
        let site = Site::new();
        let state = site.file("in-the-way", "").join("state");
        let mut command = site.command(arguments);
        command.env("XDG_STATE_HOME", &state);
        let outcome = site.finish(command);
        outcome.complains(4, &["cannot make", "in-the-way/state", advice]);
        assert_eq!(site.visible_files(), ["in-the-way"], "nothing is written");
    }
}
