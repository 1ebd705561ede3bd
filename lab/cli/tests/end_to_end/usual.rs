//! Test of a race without a named allocator, on a machine without a network.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::support::{Site, program};

/// Allocators are built from sources that cargo fetches; a failing fetch stands for a machine
/// without a network.
#[test]
fn without_a_network_races_what_is_there_and_the_rest_is_told() {
    let site = Site::new();
    let folder = site.path("programs");
    std::fs::create_dir(&folder).expect("a folder");
    let cargo = site.file(
        "programs/cargo",
        "#!/bin/sh\necho no network >&2\nexit 101\n",
    );
    std::fs::set_permissions(&cargo, std::fs::Permissions::from_mode(0o755)).expect("executable");
    let words = [
        "race",
        "--rounds",
        "1",
        "--memory-runs",
        "0",
        "--json",
        "r.json",
        "--",
    ];
    let program = program();
    let mut command = site.command(&[&words[..], &[program.as_str(), "work", "1000"]].concat());
    let path = std::env::var("PATH").expect("a path");
    command.env("PATH", format!("{}:{path}", folder.display()));
    command.env("CARGO", &cargo);
    let outcome = site.finish(command);
    outcome.says(0, &["building missing allocators first", "jemalloc 142 s"]);
    outcome.says(0, &["jemalloc does not race", "no network"]);
    outcome.says(0, &["mimalloc2 does not race", "cannot be fetched either"]);
    outcome.says(
        0,
        &["with a network, heapdrome allocators install jemalloc mimalloc2"],
    );
    let text = std::fs::read_to_string(site.path("r.json")).expect("a result");
    let result: Value = serde_json::from_str(&text).expect("JSON");
    let rows = result["entrants"].as_array().expect("rows");
    assert!(
        rows.iter().any(|row| row["allocator"] == "elfmalloc"),
        "{result}"
    );
    let remarks = result["remarks"].to_string();
    assert!(remarks.contains("jemalloc does not race"), "{remarks}");
}
