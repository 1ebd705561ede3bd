//! Names of allocators on a command line, and what they stand for.

use heapdrome_catalogue::{Catalogue, CatalogueError, Entry, State};
use heapdrome_record::Entrant;

use super::{build, failure};
use crate::failure::Failure;
use crate::output;

/// The allocators that a first race should have: the ones that people choose among.
const DEFAULT: [&str; 8] = [
    "system",
    "jemalloc",
    "mimalloc2",
    "mimalloc3",
    "mimalloc3-secure",
    "snmalloc",
    "snmalloc-checks",
    "rpmalloc",
];

/// Names on a command line, and what they stand for.
pub struct Names<'a> {
    catalogue: &'a Catalogue,
}

impl<'a> Names<'a> {
    /// Names are looked up in `catalogue`.
    pub fn new(catalogue: &'a Catalogue) -> Self {
        Self { catalogue }
    }

    /// The names of entries, with groups taken apart and duplicates left out. No names at all mean
    /// what was found on this machine, or the default group where nothing was.
    ///
    /// # Errors
    /// When a name is unknown.
    pub fn expand(&self, asked: &[String]) -> Result<Vec<String>, Failure> {
        let mut names = Vec::new();
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
                "default" => names.extend(DEFAULT.map(str::to_owned)),
                "found" => names.extend(self.found()),
                "all" => names.extend(self.every()),
                path if path.contains('/') => names.push(path.to_owned()),
                name => names.push(self.catalogue.find(name).map_err(failure)?.name.clone()),
            }
        }
        if asked.is_empty() {
            names = self.found();
            if names.len() < 2 {
                output::tell("no other allocator was found here; building the usual ones");
                names = DEFAULT.map(str::to_owned).to_vec();
            }
        }
        let mut seen = std::collections::BTreeSet::new();
        names.retain(|name| seen.insert(name.clone()));
        Ok(names)
    }

    /// Entries of their own kind (no settings of another) whose library is here.
    pub fn found(&self) -> Vec<String> {
        let here = |entry: &Entry, state: &State| {
            entry.base.is_none() && entry.conforming && matches!(state, State::Installed { .. })
        };
        self.names(here)
    }

    /// All that is here, settings included.
    pub fn here(&self) -> Vec<String> {
        let here = |entry: &Entry, state: &State| {
            entry.conforming && matches!(state, State::Installed { .. })
        };
        self.names(here)
    }

    /// Everything that is here or can be built, settings included.
    fn every(&self) -> Vec<String> {
        let possible = |entry: &Entry, state: &State| {
            entry.conforming && matches!(state, State::Installed { .. } | State::Buildable)
        };
        self.names(possible)
    }

    fn names(&self, wanted: impl Fn(&Entry, &State) -> bool) -> Vec<String> {
        let listing = self.catalogue.list();
        let chosen = listing
            .iter()
            .filter(|listed| wanted(listed.entry, &listed.state));
        chosen.map(|listed| listed.entry.name.clone()).collect()
    }

    /// Whether `name` was written on the command line itself, and not only a group that holds it.
    pub fn asked_by_name(&self, asked: &[String], name: &str) -> bool {
        asked.iter().any(|word| self.same(word, name))
    }

    /// Whether two names mean the same entry.
    pub fn same(&self, one: &str, other: &str) -> bool {
        let entry = |name| self.catalogue.find(name).map(|entry| &entry.name).ok();
        one == other || (entry(one).is_some() && entry(one) == entry(other))
    }

    /// The entrant of this name or path; built, and said so, where it is not there yet.
    ///
    /// # Errors
    /// When there is no such allocator, or it cannot be built.
    pub fn ready(&self, name: &str) -> Result<Entrant, Failure> {
        match self.catalogue.entrant(name) {
            Err(CatalogueError::NotInstalled { .. }) => {
                build(self.catalogue, name)?;
                self.catalogue.entrant(name).map_err(failure)
            }
            other => other.map_err(failure),
        }
    }
}
