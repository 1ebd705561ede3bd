//! Tests of commands that choose an allocator themselves. The entrant `as-is` runs such a command
//! unchanged, and is the default baseline.

use std::path::Path;

use serde_json::Value;

use crate::support::{Site, allocator, baseline, linked_program, named, program, row};

/// Returns a start script as in containers, which chooses `library` only if nothing is preloaded.
fn choosing(library: &Path) -> String {
    let chosen = library.display();
    format!(
        "if [ -z \"${{LD_PRELOAD+x}}\" ]; then export LD_PRELOAD={chosen}; fi; exec {}",
        program()
    )
}

#[track_caller]
fn is_served_by(row: &Value, library: &str) {
    assert_eq!(row["status"], "ok", "{row}");
    let server = row["proof"]["served_by"].as_str();
    assert!(server.is_some_and(|it| it.ends_with(library)), "{row}");
}

/// Checks that the entrant as-is ran on `library` in this role, and the entrant system on the C
/// library.
#[track_caller]
fn races_as_it_is(result: &Value, role: &str, library: &str) {
    let as_is = named(result, "as-is");
    assert_eq!(as_is["role"], role, "{as_is}");
    is_served_by(as_is, library);
    let calls = as_is["proof"]["calls"].as_u64();
    assert!(calls.is_some_and(|calls| calls > 0), "{as_is}");
    let system = named(result, "system");
    let by = system["library"].as_str();
    assert!(by.is_some_and(|it| it.ends_with("libc.so.6")), "{system}");
    is_served_by(system, "libc.so.6");
}

#[test]
fn the_allocator_that_a_start_script_chooses_is_the_baseline() {
    let (site, sound, slow) = (Site::new(), allocator(""), allocator("slow"));
    let options = ["--rounds", "20", "--memory-runs", "0"];
    let (outcome, result) = site.race(&[&sound], &options, &["sh", "-c", &choosing(&slow)]);
    outcome.ends_with(0);
    races_as_it_is(&result, "baseline", "libslow.so");
    assert_eq!(result["baseline"], "as-is");
    assert_eq!(baseline(&result)["allocator"], "as-is");
    is_served_by(row(&result, &sound), "libsound.so");
    // A run that follows every block would set LD_PRELOAD, and the script would then choose no
    // allocator. So the entrant has no such run.
    assert!(named(&result, "as-is")["evidence"].is_null());
    // Of the timed runs, only those of the baseline use the slow library.
    let versus = &named(&result, "system")["versus_baseline"]["wall_s"];
    assert_eq!(versus["verdict"], "faster", "{versus}");
    outcome.says(
        0,
        &[
            "as-is, the baseline, is what the command itself chooses",
            "libslow.so",
        ],
    );
}

#[test]
fn a_baseline_that_is_asked_for_wins() {
    let (site, sound, slow) = (Site::new(), allocator(""), allocator("slow"));
    let options = ["--baseline", "system", "--memory-runs", "0"];
    let (outcome, result) = site.race(&[&sound], &options, &["sh", "-c", &choosing(&slow)]);
    outcome.ends_with(0);
    races_as_it_is(&result, "rival", "libslow.so");
    assert_eq!(result["baseline"], "system");
    outcome.says(
        0,
        &["as-is is what the command itself chooses", "libslow.so"],
    );
}

#[test]
fn a_linked_allocator_is_the_baseline() {
    let (site, sound, slow) = (Site::new(), allocator(""), allocator("slow"));
    let (outcome, result) = site.race(&[&sound], &[], &[&linked_program(&slow)]);
    outcome.ends_with(0);
    races_as_it_is(&result, "baseline", "libslow.so");
    assert!(!named(&result, "as-is")["evidence"].is_null());
}

#[test]
fn a_command_that_chooses_nothing_has_no_such_entrant() {
    let (site, sound) = (Site::new(), allocator(""));
    let (outcome, result) = site.race(&[&sound], &["--memory-runs", "0"], &[&program()]);
    outcome.ends_with(0);
    assert_eq!(result["baseline"], "system");
    assert_eq!(result["entrants"].as_array().map(Vec::len), Some(3));
}

#[test]
fn settings_of_its_environment_are_kept_for_the_command_as_it_is() {
    let (site, sound, slow) = (Site::new(), allocator(""), allocator("slow"));
    let json = site.path("result.json");
    let names = [sound.as_path(), json.as_path()].map(|path| path.to_str().expect("plain"));
    let program = linked_program(&slow);
    let arguments = [
        "race",
        "-a",
        names[0],
        "--json",
        names[1],
        "--rounds",
        "2",
        "--memory-runs",
        "0",
        "--",
    ];
    let mut command = site.command(&[&arguments[..], &[&program]].concat());
    command.env("MALLOC_CONF", "background_thread:true");
    site.finish(command).ends_with(0);
    let text = std::fs::read_to_string(&json).expect("the result was written");
    let result: Value = serde_json::from_str(&text).expect("JSON");
    let kept = &named(&result, "as-is")["settings"]["MALLOC_CONF"];
    assert_eq!(kept, "background_thread:true");
    let others = named(&result, "system")["settings"].as_object();
    assert!(others.is_some_and(|settings| settings.is_empty()));
}

#[test]
fn a_race_as_it_is_can_be_shown_and_compared() {
    let (site, sound, slow) = (Site::new(), allocator(""), allocator("slow"));
    let options = ["--rounds", "5", "--memory-runs", "0"];
    let (outcome, _) = site.race(&[&sound], &options, &["sh", "-c", &choosing(&slow)]);
    outcome.ends_with(0);
    let shown = site.run(&["show", "result.json"]);
    assert!(shown.ends_with(0).stdout.contains("as-is"));
    let compared = site.run(&["compare", "result.json", "result.json"]);
    assert!(compared.ends_with(0).stdout.contains("as-is"));
}

#[test]
fn debians_redis_runs_on_jemalloc_as_it_is() {
    let linked = std::process::Command::new("ldd")
        .arg("/usr/bin/redis-server")
        .output();
    let linked = linked.map(|output| output.stdout).unwrap_or_default();
    if !String::from_utf8_lossy(&linked).contains("libjemalloc") {
        eprintln!("skipped: no redis-server that links jemalloc");
        return;
    }
    // This race uses elfmalloc, because `malloc_usable_size` of the fixtures calls the next
    // definition. In redis, that is jemalloc's, which does not know the fixtures' blocks.
    let (site, whole) = (Site::new(), Path::new("elfmalloc"));
    let settings = [
        "--serve",
        "exec redis-server --save '' --port 0 --unixsocket socket",
        "--ready",
        "test -S socket",
        "--prepare",
        "rm -f socket",
        "--idle",
        "0s",
    ];
    let (outcome, result) = site.race(&[whole], &settings, &["sleep", "0.1"]);
    outcome.ends_with(0);
    races_as_it_is(&result, "baseline", "libjemalloc.so.2");
}
