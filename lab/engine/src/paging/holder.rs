//! Lookup of holders of a working set, such as allocators, by the names that the user gave.

use heapdrome_paging::Holding;
use heapdrome_schema::{Entrant, Holder};

use super::Opened;
use crate::allocators::Names;
use crate::engine::Engine;
use crate::failure::Failure;

/// Returns the holdings for these names. With `build`, missing allocators are built; otherwise only
/// their names are used.
///
/// # Errors
/// When a name is unknown, an allocator is unavailable, or the user interrupts.
pub fn holdings(asked: &[String], build: bool, engine: &Engine) -> Result<Vec<Holding>, Failure> {
    // These names stand for sources of memory in the child that do not use `malloc`.
    let own = [Holder::Lgalloc, Holder::Published, Holder::Mapped];
    let own = |name: &str| own.into_iter().find(|holder| holder.name() == name);
    if let Some(all) = asked
        .iter()
        .map(|name| own(name))
        .collect::<Option<Vec<_>>>()
    {
        return Ok(all.into_iter().map(Holding::from).collect());
    }
    let registry = engine.registry()?;
    let names = Names::new(&registry, engine);
    let ready = |name: &String| -> Result<Holding, Failure> {
        let named = || Entrant {
            name: name.clone(),
            ..Entrant::default()
        };
        let allocator = match build || !names.must_be_built(name) {
            true => names.ready(name)?,
            false => named(),
        };
        Ok(Holding {
            holder: Holder::Malloc,
            allocator: Some(allocator),
        })
    };
    let mut found: Vec<Holding> = Vec::new();
    for word in asked {
        let more = match own(word) {
            Some(holder) => vec![holder.into()],
            None => {
                let expanded = names.expand(std::slice::from_ref(word))?;
                expanded.iter().map(ready).collect::<Result<_, _>>()?
            }
        };
        for holding in more {
            if !found.iter().any(|known| known.name() == holding.name()) {
                found.push(holding);
            }
        }
    }
    Ok(found)
}

/// Returns the allocators to compare with lgalloc: those requested, else the default ones. If a
/// default one is unavailable, returns none and adds a remark.
///
/// # Errors
/// When a requested allocator is unavailable, or the user interrupts.
pub fn rivals_of(
    asked: &[String],
    build: bool,
    opened: &mut Opened<'_>,
) -> Result<Vec<Holding>, Failure> {
    const USUAL: [&str; 2] = ["mimalloc3", "jemalloc"];
    if !asked.is_empty() {
        let mut found = holdings(asked, build, opened.engine)?;
        found.retain(|holding| holding.allocator.is_some());
        return Ok(found);
    }
    match holdings(&USUAL.map(str::to_owned), build, opened.engine) {
        Err(Failure::Interrupted) => Err(Failure::Interrupted),
        Err(failure) => {
            let why = format!("{} left out: {failure}", USUAL.join(" and "));
            opened.remarks.push(why);
            Ok(Vec::new())
        }
        found => found,
    }
}

/// Returns the names of the allocators in `holdings` that are not built.
///
/// # Errors
/// When the user's own list of allocators is invalid.
pub fn unbuilt(holdings: &[&Holding], engine: &Engine) -> Result<Vec<String>, Failure> {
    let registry = engine.registry()?;
    let names = Names::new(&registry, engine);
    let of = |holding: &&Holding| Some(holding.allocator.as_ref()?.name.clone());
    let mut found: Vec<String> = holdings.iter().filter_map(of).collect();
    found.retain(|name| names.must_be_built(name));
    found.sort();
    found.dedup();
    Ok(found)
}
