//! Names of allocators on a command line, and what they stand for.

use std::collections::BTreeSet;

use heapdrome_packages::FetchError;
use heapdrome_registry::{Entry, Registry, RegistryError, State};
use heapdrome_schema::Entrant;

use super::{build, failure};
use crate::engine::Engine;
use crate::event::Event;
use crate::failure::Failure;

/// The allocators that a first race should have, as far as the registry knows them: six of which
/// one is near the best in every published race, and the system's with huge pages.
const DEFAULT: [&str; 7] = [
    "system",
    "elfmalloc",
    "jemalloc",
    "mimalloc2",
    "mimalloc3",
    "rpmalloc",
    "system-huge",
];

/// The name of that group.
const DEFAULT_GROUP: &str = "default";

/// Names on a command line, and what they stand for.
pub struct Names<'a> {
    registry: &'a Registry,
    engine: &'a Engine,
}

/// Entrants that are ready, and what a reader must know of those that are not.
pub struct Ready {
    /// The entrants, in the order of their names.
    pub entrants: Vec<Entrant>,
    /// Which of a group is left out, and why.
    pub notes: Vec<String>,
}

impl<'a> Names<'a> {
    /// Looks names up in `registry`; builds send their events to the sink of `engine`.
    pub fn new(registry: &'a Registry, engine: &'a Engine) -> Self {
        Self { registry, engine }
    }

    /// The names of entries, with groups taken apart and duplicates left out. No names at all mean
    /// the group `default`.
    ///
    /// # Errors
    /// When a name is unknown.
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
                        "as-is is no allocator: where the command chooses one, it races as it is by \
                         itself",
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

    /// The group `default`.
    fn usual(&self) -> Vec<String> {
        let known = DEFAULT.iter();
        let known = known.filter(|name| self.registry.find(name).is_ok());
        known.map(|name| (*name).to_owned()).collect()
    }

    /// Entries of their own kind (no settings of another) whose library is here.
    pub fn found(&self) -> Vec<String> {
        self.names(|entry, state| entry.base.is_none() && is_here(state))
    }

    /// All that is here, settings included.
    pub fn here(&self) -> Vec<String> {
        self.names(|_, state| is_here(state))
    }

    /// Hardened entries of their own kind that are here or can be built.
    fn hardened(&self) -> Vec<String> {
        self.names(|entry, state| entry.hardened && entry.base.is_none() && is_possible(state))
    }

    /// Everything that is here or can be built, settings included.
    fn every(&self) -> Vec<String> {
        self.names(|_, state| is_possible(state))
    }

    /// The conforming entries that are wanted.
    fn names(&self, wanted: impl Fn(&Entry, &State) -> bool) -> Vec<String> {
        let listing = self.registry.list();
        let chosen = listing
            .iter()
            .filter(|listed| listed.entry.conforming && wanted(listed.entry, &listed.state));
        chosen.map(|listed| listed.entry.name.clone()).collect()
    }

    /// Whether `name` was written on the command line itself, and not only a group that holds it.
    pub fn asked_by_name(&self, asked: &[String], name: &str) -> bool {
        asked.iter().any(|word| self.same(word, name))
    }

    /// Whether two names mean the same entry.
    pub fn same(&self, one: &str, other: &str) -> bool {
        let entry = |name| self.registry.find(name).map(|entry| &entry.name).ok();
        one == other || (entry(one).is_some() && entry(one) == entry(other))
    }

    /// Whether an allocator would have to be built first.
    pub fn must_be_built(&self, name: &str) -> bool {
        let found = self.registry.entrant(name);
        matches!(found, Err(RegistryError::NotInstalled { .. }))
    }

    /// The entrant of this name or path; built, and said so, where it is not there yet.
    ///
    /// # Errors
    /// When there is no such allocator, or it cannot be built.
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

    /// The entrants that these names stand for, `but` left out. What is missing is built, after a
    /// word on how long that takes. One of a group that cannot be built is left out and told, and
    /// so are all whose sources would have to be fetched once that has failed. Where nobody asked
    /// for any and nothing of the group `default` can be had, what is here races.
    ///
    /// # Errors
    /// When a name is unknown, or one that was asked for by its own name cannot be had.
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
            if missing.offline && !by_name && missing.names.contains(&name) {
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

    /// Says which of these must be built, and how long that took elsewhere.
    fn announce(&self, names: &[String]) -> Missing {
        let entries = names
            .iter()
            .filter_map(|name| self.registry.find(name).ok());
        let buildable = |entry: &&Entry| self.registry.state(entry) == State::Buildable;
        let missing: Vec<&Entry> = entries.filter(buildable).collect();
        // heapdrome carries its own, which take no time.
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

    /// Says how what was to be built and is still missing can be had.
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
                "to race what is missing: {network}heapdrome allocators install {}",
                still.join(" ")
            );
            self.note(ready, advice);
        }
    }

    fn leave_out(&self, ready: &mut Ready, name: &str, why: &str) {
        self.note(ready, format!("{name} does not race: {why}"));
    }

    /// Tells who waits, and the reader of the result.
    fn note(&self, ready: &mut Ready, note: String) {
        self.engine.tell(Event::Remark(&note));
        ready.notes.push(note);
    }
}

/// What must be built before a race.
struct Missing {
    /// The names.
    names: Vec<String>,
    /// Whether sources could not be fetched.
    offline: bool,
}

impl Ready {
    /// Adds an entrant, unless one of that name is there.
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
