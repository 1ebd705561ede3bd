//! Tests of the leftovers of a paging lab that is killed while it has swap and control groups of
//! its own. These tests need root and a kernel that supports both; otherwise a test prints a line
//! and passes.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::support::{Outcome, Running, Site};

/// Time limit of each wait, long enough for creating 128 MiB of swap and starting a child.
const PATIENCE: Duration = Duration::from_secs(120);

/// Returns the swap files in the site's folder that are in use. Their names are unique, so the form
/// of the folder's name in `/proc/swaps` does not matter.
fn swap_files(site: &Site) -> Vec<PathBuf> {
    let swaps = std::fs::read_to_string("/proc/swaps").unwrap_or_default();
    let names = site.visible_files().into_iter();
    names
        .filter(|name| name.starts_with("heapdrome-paging-swap-") && swaps.contains(name.as_str()))
        .map(|name| site.path(&name))
        .collect()
}

/// Returns the existing control groups that the ledgers of this site name.
fn groups(site: &Site) -> Vec<PathBuf> {
    let folder = site.path(".local/state/heapdrome/paging");
    let ledgers = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let text: String = ledgers
        .filter_map(|entry| std::fs::read_to_string(entry.path()).ok())
        .collect();
    let named = text.lines().filter_map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).ok()?;
        Some(PathBuf::from(line["making"][1]["folder"].as_str()?))
    });
    named.filter(|folder| folder.exists()).collect()
}

/// Waits until the experiment uses a swap file and has a control group. Returns `false` if the
/// experiment ends first.
fn is_at_work(site: &Site, running: &mut Running) -> bool {
    let end = Instant::now() + PATIENCE;
    while running.is_running() {
        if swap_files(site).len() == 1 && !groups(site).is_empty() {
            return true;
        }
        assert!(Instant::now() < end, "{}", running.stderr());
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

/// Cleans up until nothing is kept, or [`PATIENCE`] is over. A child that was being started when
/// the lab was killed holds the lab's locks until it executes its program.
fn clean(site: &Site) -> Outcome {
    let end = Instant::now() + PATIENCE;
    loop {
        let outcome = site.run(&["paging", "clean"]);
        if !outcome.stdout.contains("kept: ") || Instant::now() >= end {
            return outcome;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn kill_and_clean(arguments: &[&str]) {
    let site = Site::new();
    let mut running = site.start(site.command(arguments));
    if !is_at_work(&site, &mut running) {
        let outcome = running.wait();
        outcome.ends_with(4);
        println!("nothing to kill here: {}", outcome.stderr.trim());
        return;
    }
    running.signal(libc::SIGKILL);
    assert_eq!(running.wait().status, 128 + libc::SIGKILL);
    let (swap, left) = (swap_files(&site), groups(&site));
    assert_eq!(swap.len(), 1, "it could not clean up itself");
    let outcome = clean(&site);
    outcome.ends_with(0).tells("removed swap file");
    if !left.is_empty() {
        outcome.tells("removed control group");
    }
    assert!(swap_files(&site).is_empty(), "it is no swap any more");
    assert!(!swap[0].exists());
    assert!(left.iter().all(|group| !group.exists()), "{left:?}");
    site.run(&["paging", "clean"])
        .ends_with(0)
        .tells("nothing to remove");
}

#[test]
fn swap_and_groups_of_a_killed_search_are_removed_by_the_next_start() {
    kill_and_clean(&[
        "survive",
        "--swap",
        "file:64M",
        "--swap-folder",
        ".",
        "-a",
        "system",
        "--",
        "sh",
        "-c",
        // The first run is the proof, which does not belong to the search.
        "test -e proven && exec sleep 60; touch proven",
    ]);
}

#[test]
fn swap_and_groups_of_a_killed_experiment_are_removed_by_the_next_start() {
    kill_and_clean(&[
        "paging",
        "random",
        "--ram",
        "16M",
        "--total",
        "48M",
        "--time",
        "60s",
        "--swap",
        "file:128M",
        "--swap-folder",
        ".",
    ]);
}
