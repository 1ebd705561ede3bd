//! Tests of the allocator groups, of the quality of the default group, and of the allocators that
//! remain available after a failed fetch.

use std::path::Path;

use heapdrome_packages::Cache;
use heapdrome_registry::{Registry, Source};
use heapdrome_schema::{CPU, EntrantResult, RaceResult, Role, Saved, WALL, read_saved};
use heapdrome_statistics::median;

use super::*;
use crate::event::Silent;
use crate::folders::Folders;

/// Published results that include most of the commonly used allocators.
const PUBLISHED: [&str; 4] = ["elfmalloc", "suite-real", "build", "python"];

/// Allocator that never frees memory. No real program would use it.
const ARENA: &str = "bumpmalloc";

fn published() -> Vec<RaceResult> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
    let read = |name: &&str| read_saved(&folder.join(format!("{name}.json.gz"))).expect("a result");
    let races = |saved| match saved {
        Saved::Race(result) => vec![*result],
        Saved::Collection(all) => all.races.into_iter().map(|race| race.result).collect(),
    };
    PUBLISHED.iter().map(read).flat_map(races).collect()
}

/// Returns the relative excess of the best default entrant's figure over the best figure of all
/// entrants except the twin and [`ARENA`].
fn excess(result: &RaceResult, figure: &str) -> f64 {
    let counts = |row: &&EntrantResult| row.role != Role::Twin && row.allocator != ARENA;
    let rows = result.entrants.iter().filter(counts);
    let known = rows.filter_map(|row| {
        let middle = median(&row.samples(figure)?)?;
        Some((DEFAULT.contains(&row.allocator.as_str()), middle))
    });
    let known: Vec<(bool, f64)> = known.collect();
    let best = |of: &dyn Fn(bool) -> bool| {
        let figures = known.iter().filter(|(default, _)| of(*default));
        figures
            .map(|(_, figure)| *figure)
            .fold(f64::INFINITY, f64::min)
    };
    best(&|default| default) / best(&|_| true) - 1.0
}

#[test]
fn one_of_the_default_entrants_is_near_the_best_in_every_published_race() {
    let races = published();
    assert_eq!(races.len(), 90);
    let document = include_str!("../../../../../docs/allocators.md");
    let document = document.split_whitespace().collect::<Vec<_>>().join(" ");
    for (figure, what) in [(CPU, "processor time"), (WALL, "wall time")] {
        let found: Vec<f64> = races.iter().map(|race| excess(race, figure)).collect();
        let far = found.iter().filter(|excess| **excess > 0.05).count();
        assert!(far <= 2, "the document says all but two: {far} in {what}");
        let worst = found.into_iter().fold(0.0, f64::max);
        let told = format!("{:.1}% in {what}", 100.0 * worst);
        println!("{told}");
        assert!(
            document.contains(&told),
            "docs/allocators.md does not say {told}"
        );
    }
}

fn expanded(asked: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let folders = Folders::below(folder.path()).expect("folders");
    let engine = Engine::apart(folders, Silent);
    let registry = engine.registry().expect("a registry");
    let asked: Vec<String> = asked.iter().map(|name| (*name).to_owned()).collect();
    let names = Names::new(&registry, &engine).expand(&asked);
    names.unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn nobody_asked_for_is_the_default_group() {
    let usual = expanded(&[]);
    assert_eq!(usual, expanded(&["default"]));
    let known = |name: &&str| usual.iter().any(|one| one == name);
    assert!(DEFAULT[..6].iter().all(known), "{usual:?}");
}

#[test]
fn the_hardened_group_holds_what_is_hardened_and_no_other() {
    let hardened = expanded(&["hardened"]);
    let holds = |name: &str| hardened.iter().any(|one| one == name);
    assert!(holds("elfmalloc-hardened"), "{hardened:?}");
    assert!(!holds("system") && !holds("mimalloc2"), "{hardened:?}");
    let more = expanded(&["hardened", "mimalloc2", "hardened"]);
    assert_eq!(more.len(), hardened.len() + 1);
}

#[test]
fn groups_hold_what_is_here_and_what_can_be_had() {
    // The cache is empty, so no allocator that heapdrome builds or embeds is installed.
    let (found, all) = (expanded(&["found"]), expanded(&["all"]));
    let holds = |names: &[String], name: &str| names.iter().any(|one| one == name);
    assert!(holds(&found, "system"), "{found:?}");
    for built in ["elfmalloc", "mimalloc3"] {
        assert!(!holds(&found, built) && holds(&all, built), "{all:?}");
    }
    assert!(found.iter().all(|name| holds(&all, name)), "{found:?}");
    assert!(
        !holds(&all, "cheapest"),
        "a yardstick is no allocator to take"
    );
}

#[test]
fn a_failed_fetch_leaves_the_embedded_allocators_in_reach() {
    let folder = tempfile::tempdir().expect("a folder");
    let folders = Folders::below(folder.path()).expect("folders");
    let engine = Engine::apart(folders, Silent);
    let registry = engine.registry().expect("a registry");
    let names = Names::new(&registry, &engine);
    let all = ["elfmalloc", "elfmalloc-hardened", "mimalloc3", "system"];
    let mut missing = names.announce(&all.map(str::to_owned));
    assert_eq!(missing.names, all[..3]);
    let left = |missing: &Missing| all.map(|name| names.is_out_of_reach(missing, name));
    assert_eq!(left(&missing), [false; 4]);
    missing.offline = true;
    assert_eq!(left(&missing), [false, false, true, false]);
}

#[test]
fn a_distributions_old_library_stands_for_no_default_entrant() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = Cache::at(folder.path()).expect("a cache");
    let registry = Registry::load(&cache, folder.path()).expect("a registry");
    for name in expanded(&[]) {
        let entry = registry.find(&name).expect("an entry");
        assert!(!matches!(entry.source, Source::System(_)), "{name}");
    }
    let debian = registry.find("mimalloc-debian").expect("an entry");
    assert!(matches!(debian.source, Source::System(_)));
}
