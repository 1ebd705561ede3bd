//! Selection of suites, allocators and races.

use std::collections::BTreeMap;
use std::path::Path;

use heapdrome_schema::{Collection, Saved, Scale, read_saved};
use heapdrome_suites::{Race, Selection, Suite};

use super::SuiteRequest;
use super::races::label;
use crate::allocators::Names;
use crate::engine::Engine;
use crate::event::Event;
use crate::failure::Failure;

/// Returns the suites of this name, or the suite in a file of the user's own.
///
/// # Errors
/// When the name is unknown, or the file cannot be read or is not a suite.
pub fn suites(name: &str) -> Result<Vec<Suite>, Failure> {
    if !is_file(name) {
        return heapdrome_suites::find(name).map_err(Failure::usage);
    }
    let text = std::fs::read_to_string(name)
        .map_err(|error| Failure::Usage(format!("cannot read {name}: {error}")))?;
    let suite = Suite::read(&text);
    let suite = suite.map_err(|error| Failure::Usage(format!("{name}: {error}")))?;
    Ok(vec![suite])
}

/// Returns whether `name` is a file of the user's own instead of a built-in suite.
pub fn is_file(name: &str) -> bool {
    name.contains('/') || Path::new(name).extension().is_some_and(|it| it == "toml")
}

/// Returns the collection that `--resume` continues, if any.
///
/// # Errors
/// When the file cannot be read, is not a collection, or belongs to another suite, scale or
/// machine.
pub fn taken_up(request: &SuiteRequest, scale: Scale) -> Result<Option<Collection>, Failure> {
    let Some(path) = &request.resume else {
        return Ok(None);
    };
    let wrong = |what: &str| Failure::Usage(format!("--resume {}: it is {what}", path.display()));
    let mut saved = read_saved(path).map_err(Failure::usage)?;
    if let Saved::Collection(old) = &mut saved {
        heapdrome_suites::rename(old);
    }
    match saved {
        Saved::Race(_) => Err(wrong("one race, not a suite")),
        Saved::Collection(old) if old.name != request.name => {
            Err(wrong(&format!("of {}, not of {}", old.name, request.name)))
        }
        Saved::Collection(old) if old.scale() != Some(scale) => {
            Err(wrong("of another scale; see --quick and --published"))
        }
        Saved::Collection(old) if !of_this_machine(&old) => Err(wrong(&format!(
            "of another machine ({}, {} processors); start the suite again",
            old.machine.processor, old.machine.processors
        ))),
        Saved::Collection(old) => Ok(Some(*old)),
    }
}

/// Checks that each finished race among `races` included all allocators of its entry there. Only
/// then do finished and remaining races fit into one table.
///
/// # Errors
/// When an allocator of such an entry did not take part in the finished race.
pub fn check_rivals(
    request: &SuiteRequest,
    before: &Collection,
    races: &[Race],
) -> Result<(), Failure> {
    for race in races {
        let Some(done) = before.races.iter().find(|member| race.is(member)) else {
            continue;
        };
        let raced = |name: &String| {
            done.result
                .entrants
                .iter()
                .any(|row| row.allocator == *name)
        };
        if let Some(missing) = race.allocators.iter().find(|name| !raced(name)) {
            let path = request.resume.clone().unwrap_or_default();
            return Err(Failure::Usage(format!(
                "--resume {}: {missing} did not race in {} there; name the same allocators with \
                 -a, or start the suite again",
                path.display(),
                label(race)
            )));
        }
    }
    Ok(())
}

/// Returns whether a collection was measured on a machine with the same processors as this one.
/// Returns true for a collection without measurements.
fn of_this_machine(collection: &Collection) -> bool {
    let (there, here) = (&collection.machine, heapdrome_machine::describe());
    (collection.races.is_empty() && collection.paging_cells().is_empty())
        || (&there.processor, there.processors) == (&here.processor, here.processors)
}

/// Allocators of suites, as names in the registry or paths of libraries.
pub struct Equipment {
    /// Rivals that were requested in place of the suites' own.
    pub rivals: Vec<String>,
    /// Allocators that are not built, because only an estimate is wanted.
    pub unbuilt: Vec<String>,
}

/// Builds the suites' missing allocators, unless only an estimate is wanted, and removes
/// unavailable ones from the suites.
///
/// # Errors
/// When an allocator that was requested by name, or a baseline, is unavailable. Also when the user
/// interrupts.
pub fn equip(
    suites: &mut [Suite],
    request: &SuiteRequest,
    engine: &Engine,
    scale: Scale,
) -> Result<Equipment, Failure> {
    let registry = engine.registry()?;
    let known = Names::new(&registry, engine);
    let asked = match request.allocators.as_slice() {
        [] => Vec::new(),
        names => known.expand(names)?,
    };
    for suite in &mut *suites {
        suite.admit(&asked);
    }
    let mut unbuilt = Vec::new();
    for (name, needed) in names(suites, request, &asked, scale) {
        if request.estimate && known.must_be_built(&name) {
            unbuilt.push(name);
            continue;
        }
        let needed = needed || known.asked_by_name(&request.allocators, &name);
        match known.ready(&name) {
            Ok(_) => {}
            Err(Failure::Interrupted) => return Err(Failure::Interrupted),
            Err(error) if needed => return Err(error),
            Err(error) => {
                let in_registry = registry.find(&name).is_ok();
                for suite in &mut *suites {
                    suite.take(&name, &error.to_string(), in_registry);
                }
                engine.tell(Event::DoesNotRace {
                    allocator: &name,
                    failure: &error,
                });
            }
        }
    }
    Ok(Equipment {
        rivals: asked,
        unbuilt,
    })
}

/// Returns the names of all allocators that race, each with a flag that marks baselines.
fn names(
    suites: &[Suite],
    request: &SuiteRequest,
    rivals: &[String],
    scale: Scale,
) -> BTreeMap<String, bool> {
    let mut names = BTreeMap::new();
    for race in races(suites, request, rivals, scale) {
        names.insert(race.baseline, true);
        for name in race.allocators {
            names.entry(name).or_insert(false);
        }
    }
    names
}

/// Returns the races to run, without those that have no rival.
pub fn races(
    suites: &[Suite],
    request: &SuiteRequest,
    rivals: &[String],
    scale: Scale,
) -> Vec<Race> {
    let selection = Selection {
        scale,
        processors: heapdrome_machine::processors_in_order().len(),
        only: &request.only,
        allocators: rivals,
    };
    let all = suites.iter().flat_map(|suite| suite.races(&selection));
    all.filter(|race| !race.allocators.is_empty()).collect()
}
