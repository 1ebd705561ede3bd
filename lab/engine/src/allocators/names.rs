//! Names of allocators on a command line, and the entrants for these names.

use std::collections::BTreeSet;

use heapdrome_packages::FetchError;
use heapdrome_registry::{Entry, Registry, RegistryError, Source, State};
use heapdrome_schema::Entrant;

use super::{build, failure};
use crate::engine::Engine;
use crate::event::Event;
use crate::failure::Failure;

/// Allocators for a first race, if the registry knows them. A test reads published races, and
/// checks that in each of them one of these allocators is near the best.
const DEFAULT: [&str; 7] = [
    "system",
    "elfmalloc",
    "jemalloc",
    "mimalloc2",
    "mimalloc3",
    "rpmalloc",
    "system-huge",
];

/// Name of the group of [`DEFAULT`] allocators.
const DEFAULT_GROUP: &str = "default";

/// Resolver of allocator names and groups from a command line.
pub struct Names<'a> {
    registry: &'a Registry,
    engine: &'a Engine,
}

/// Entrants that are ready to race, and notes on group members that are left out.
pub struct Ready {
    /// Entrants, in the requested order.
    pub entrants: Vec<Entrant>,
    /// Reasons why group members are left out, and the command that builds the missing ones.
    pub notes: Vec<String>,
}

impl<'a> Names<'a> {
    /// Creates a resolver for `registry`. Builds send their events to the sink of `engine`.
    pub fn new(registry: &'a Registry, engine: &'a Engine) -> Self {
        Self { registry, engine }
    }

    /// Resolves names and groups to names of registry entries, and keeps paths. The result has no
    /// duplicates. An empty list means the group `default`.
    ///
    /// # Errors
    /// When a name is unknown, empty, or `as-is`.
    pub fn expand(&self, asked: &[String]) -> Result<Vec<String>, Failure> {
        let mut names = Vec::new();
        if asked.is_empty() {
            names = self.usual();
        }
        for name in asked {
            match name.as_str() {
                "" => {
                    return Err(Failure::usage(
                        "an allocator's name is empty; see -a in --help",
                    ));
                }
                Entrant::AS_IS => {
                    return Err(Failure::usage(
                        "as-is is not an allocator: a command that chooses its own allocator races as-is \
                         automatically",
                    ));
                }
                DEFAULT_GROUP => names.extend(self.usual()),
                "found" => names.extend(self.found()),
                "hardened" => names.extend(self.hardened()),
                "all" => names.extend(self.every()),
                path if path.contains('/') => names.push(path.to_owned()),
                name => names.push(self.registry.find(name).map_err(failure)?.name.clone()),
            }
        }
        let mut seen = BTreeSet::new();
        names.retain(|name| seen.insert(name.clone()));
        Ok(names)
    }

    /// Returns the members of the group `default` that the registry knows.
    fn usual(&self) -> Vec<String> {
        let known = DEFAULT.iter();
        let known = known.filter(|name| self.registry.find(name).is_ok());
        known.map(|name| (*name).to_owned()).collect()
    }

    /// Returns the names of the installed conforming entries, except those that only change the
    /// settings of another entry.
    pub fn found(&self) -> Vec<String> {
        self.names(|entry, state| entry.base.is_none() && is_here(state))
    }

    /// Returns the names of all installed conforming entries, including those that only change the
    /// settings of another entry.
    pub fn here(&self) -> Vec<String> {
        self.names(|_, state| is_here(state))
    }

    /// Returns the names of the hardened conforming entries that are installed or can be built,
    /// except those that only change the settings of another entry.
    fn hardened(&self) -> Vec<String> {
        self.names(|entry, state| entry.hardened && entry.base.is_none() && is_possible(state))
    }

    /// Returns the names of all conforming entries that are installed or can be built, including
    /// those that only change the settings of another entry.
    fn every(&self) -> Vec<String> {
        self.names(|_, state| is_possible(state))
    }

    /// Returns the names of conforming entries for which `wanted` is true.
    fn names(&self, wanted: impl Fn(&Entry, &State) -> bool) -> Vec<String> {
        let listing = self.registry.list();
        let chosen = listing
            .iter()
            .filter(|listed| listed.entry.conforming && wanted(listed.entry, &listed.state));
        chosen.map(|listed| listed.entry.name.clone()).collect()
    }

    /// Returns whether the command line contains `name` itself or an alias of it, and not only a
    /// group that includes it.
    pub fn asked_by_name(&self, asked: &[String], name: &str) -> bool {
        asked.iter().any(|word| self.same(word, name))
    }

    /// Returns whether two names are equal or mean the same entry.
    pub fn same(&self, one: &str, other: &str) -> bool {
        let entry = |name| self.registry.find(name).map(|entry| &entry.name).ok();
        one == other || (entry(one).is_some() && entry(one) == entry(other))
    }

    /// Returns whether an allocator must be built before it can race.
    pub fn must_be_built(&self, name: &str) -> bool {
        let found = self.registry.entrant(name);
        matches!(found, Err(RegistryError::NotInstalled { .. }))
    }

    /// Returns the entrant for this name or path. Builds the allocator if it is missing, and
    /// reports the build.
    ///
    /// # Errors
    /// When there is no allocator of this name or path, or the allocator cannot be built.
    pub fn ready(&self, name: &str) -> Result<Entrant, Failure> {
        self.built(name).map_err(failure)
    }

    fn built(&self, name: &str) -> Result<Entrant, RegistryError> {
        match self.registry.entrant(name) {
            Err(RegistryError::NotInstalled { .. }) => {
                build(self.registry, name, self.engine)?;
                self.registry.entrant(name)
            }
            other => other,
        }
    }

    /// Returns the entrants for these names, except `but`. Missing allocators are built, after an
    /// announcement of the expected time. A group member that cannot be built is left out and
    /// reported. After a failed fetch of sources, all other missing group members with sources to
    /// fetch are left out, too. If no name was given and the whole group `default` is unavailable,
    /// the installed allocators race.
    ///
    /// # Errors
    /// When a name is unknown, empty or `as-is`, an allocator that was given by its own name is
    /// unavailable, or the user interrupts.
    pub fn ready_all(&self, asked: &[String], but: Option<&str>) -> Result<Ready, Failure> {
        let mut names = self.expand(asked)?;
        let wanted = |name: &String| but.is_none_or(|but| !self.same(name, but));
        names.retain(wanted);
        let mut missing = self.announce(&names);
        let mut ready = Ready {
            entrants: Vec::new(),
            notes: Vec::new(),
        };
        for name in names {
            let by_name = self.asked_by_name(asked, &name);
            if !by_name && self.is_out_of_reach(&missing, &name) {
                self.leave_out(&mut ready, &name, "its sources cannot be fetched either");
                continue;
            }
            match self.built(&name) {
                Ok(entrant) => ready.add(entrant),
                Err(error) if by_name => return Err(failure(error)),
                Err(error) => {
                    let offline = matches!(&error, RegistryError::Fetch(FetchError::Failed { .. }));
                    missing.offline |= offline;
                    match failure(error) {
                        Failure::Interrupted => return Err(Failure::Interrupted),
                        error => self.leave_out(&mut ready, &name, &error.to_string()),
                    }
                }
            }
        }
        if asked.is_empty() && ready.entrants.is_empty() {
            let mut here = self.found();
            here.retain(wanted);
            let entrants = here.iter().filter_map(|name| self.built(name).ok());
            entrants.for_each(|entrant| ready.add(entrant));
        }
        self.tell_of_missing(&missing, &mut ready);
        Ok(ready)
    }

    /// Returns whether an allocator must be built from sources that cannot be fetched. This is
    /// false for heapdrome's own allocators, because their files are embedded in the binary.
    fn is_out_of_reach(&self, missing: &Missing, name: &str) -> bool {
        let entry = self.registry.find(name);
        let is_embedded = entry
            .is_ok_and(|entry| matches!(entry.source, Source::Own { .. } | Source::Carried(_)));
        missing.offline && !is_embedded && missing.names.iter().any(|one| one == name)
    }

    /// Announces the builds whose duration is known, and returns all allocators among `names` that
    /// must be built.
    fn announce(&self, names: &[String]) -> Missing {
        let entries = names
            .iter()
            .filter_map(|name| self.registry.find(name).ok());
        let buildable = |entry: &&Entry| self.registry.state(entry) == State::Buildable;
        let missing: Vec<&Entry> = entries.filter(buildable).collect();
        // The entries of heapdrome's own allocators state no build time, so these allocators are
        // not announced.
        let slow = missing.iter().filter(|entry| entry.build_seconds.is_some());
        let builds: Vec<(&str, u64)> = slow
            .map(|entry| (entry.name.as_str(), entry.build_seconds.unwrap_or(0)))
            .collect();
        if !builds.is_empty() {
            self.engine.tell(Event::BuildsAhead { builds: &builds });
        }
        Missing {
            names: missing.iter().map(|entry| entry.name.clone()).collect(),
            offline: false,
        }
    }

    /// Reports how to install the allocators that are still missing.
    fn tell_of_missing(&self, missing: &Missing, ready: &mut Ready) {
        let is_ready = |name: &String| ready.entrants.iter().any(|one| one.name == *name);
        let still: Vec<&str> = missing
            .names
            .iter()
            .filter(|name| !is_ready(name))
            .map(String::as_str)
            .collect();
        if !still.is_empty() {
            let network = if missing.offline {
                "with a network, "
            } else {
                ""
            };
            let advice = format!(
                "to race the missing allocators: {network}heapdrome allocators install {}",
                still.join(" ")
            );
            self.note(ready, advice);
        }
    }

    fn leave_out(&self, ready: &mut Ready, name: &str, why: &str) {
        self.note(ready, format!("{name} does not race: {why}"));
    }

    /// Reports a note to the user, and keeps it for the reader of the result.
    fn note(&self, ready: &mut Ready, note: String) {
        self.engine.tell(Event::Remark(&note));
        ready.notes.push(note);
    }
}

/// Allocators that must be built before a race.
struct Missing {
    names: Vec<String>,
    /// Whether a fetch of sources failed.
    offline: bool,
}

impl Ready {
    /// Adds an entrant, unless one of that name exists.
    fn add(&mut self, entrant: Entrant) {
        if !self.entrants.iter().any(|other| other.name == entrant.name) {
            self.entrants.push(entrant);
        }
    }
}

fn is_here(state: &State) -> bool {
    matches!(state, State::Installed { .. })
}

fn is_possible(state: &State) -> bool {
    matches!(state, State::Installed { .. } | State::Buildable)
}

#[cfg(test)]
mod tests;
