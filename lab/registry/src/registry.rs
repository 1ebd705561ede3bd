//! The registry: entries, and what of them is here.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use heapdrome_packages::Cache;
use heapdrome_schema::{Entrant, Role};
use heapdrome_system::sha256_of_file;

use heapdrome_system::FileError;

use crate::build::{self, BuildEvent, Installed};
use crate::entry::{Entry, Recipe, Source};
use crate::requires::Surroundings;
use crate::system::{Loader, Packages, has_program, libc_version};
use crate::{RegistryError, carried, config, embedded, library};

mod own;

/// Whether an allocator can run now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Its library is here.
    Installed {
        /// The library; empty for the C library that is there anyway.
        path: PathBuf,
        /// Its version.
        version: String,
    },
    /// `install` can build it.
    Buildable,
    /// Packages of the system are missing.
    NeedsPackage {
        /// Their names, as `apt install` takes them.
        apt: String,
    },
    /// It cannot be had here.
    Unavailable {
        /// The reason, and what to do.
        why: String,
    },
}

/// An entry and its state.
#[derive(Clone, Debug, PartialEq)]
pub struct Listing<'a> {
    /// The entry.
    pub entry: &'a Entry,
    /// Whether it can run now.
    pub state: State,
}

/// Every allocator that heapdrome knows.
#[derive(Debug)]
pub struct Registry {
    cache: Cache,
    config: PathBuf,
    entries: Vec<Entry>,
    loader: Loader,
    packages: Packages,
    /// What settings are applicable to, looked up once.
    surroundings: OnceLock<Surroundings>,
}

/// The library of an entry with what is preloaded with it.
struct Located {
    library: Option<PathBuf>,
    preload: Vec<PathBuf>,
}

impl Registry {
    /// Reads the entries that came with heapdrome and the user's own from `allocators.toml` in
    /// `config_dir` (usually `$XDG_CONFIG_HOME/heapdrome`). One of the user's own takes the place
    /// of an entry of the same name.
    ///
    /// # Errors
    /// When the user's file cannot be read or understood.
    pub fn load(cache: &Cache, config_dir: &Path) -> Result<Self, RegistryError> {
        let mut entries = embedded::entries()?;
        for own in config::read(config_dir)? {
            let entry = own::own_entry(own);
            match entries.iter_mut().find(|other| other.name == entry.name) {
                Some(other) => *other = entry,
                None => entries.push(entry),
            }
        }
        Ok(Self {
            cache: cache.clone(),
            config: config_dir.to_owned(),
            entries,
            loader: Loader::default(),
            packages: Packages::default(),
            surroundings: OnceLock::new(),
        })
    }

    /// Every entry with its state, in the order of the registry.
    pub fn list(&self) -> Vec<Listing<'_>> {
        self.entries
            .iter()
            .map(|entry| Listing {
                entry,
                state: self.state(entry),
            })
            .collect()
    }

    /// The entry of a name or an alias.
    ///
    /// # Errors
    /// [`RegistryError::Unknown`] with the nearest names.
    pub fn find(&self, name: &str) -> Result<&Entry, RegistryError> {
        let by_name = self.entries.iter().find(|entry| entry.name == name);
        let by_alias = || {
            self.entries
                .iter()
                .find(|entry| entry.aliases.iter().any(|a| a == name))
        };
        by_name
            .or_else(by_alias)
            .ok_or_else(|| RegistryError::Unknown {
                name: name.to_owned(),
                nearest: self.nearest(name),
            })
    }

    /// Up to three names that `name` may have been meant to be.
    fn nearest(&self, name: &str) -> Vec<String> {
        let names = self
            .entries
            .iter()
            .flat_map(|entry| std::iter::once(&entry.name).chain(&entry.aliases));
        let likeness = |other: &String| {
            let whole = strsim::jaro_winkler(name, other);
            // A part of a name, such as "gperf", is near to it, too.
            if name.len() >= 3 && other.contains(name) {
                whole.max(0.9)
            } else {
                whole
            }
        };
        let mut near: Vec<_> = names.map(|other| (likeness(other), other)).collect();
        near.retain(|(likeness, _)| *likeness >= 0.75);
        near.sort_by(|one, two| two.0.total_cmp(&one.0));
        near.into_iter()
            .take(3)
            .map(|(_, name)| name.clone())
            .collect()
    }

    /// Whether an entry can run now.
    pub fn state(&self, entry: &Entry) -> State {
        if let Some(why) = self.unmet(entry) {
            let why = format!("not applicable here: {why}");
            return State::Unavailable { why };
        }
        if let Ok(Located { library, .. }) = self.locate(entry) {
            let version = self.version(entry, library.as_deref());
            return State::Installed {
                path: library.unwrap_or_default(),
                version,
            };
        }
        match &entry.source {
            Source::System(library) => State::NeedsPackage {
                apt: library.apt.clone(),
            },
            Source::Unavailable(why) => State::Unavailable { why: why.clone() },
            Source::User(path) => State::Unavailable {
                why: user_fault(path),
            },
            Source::Crate { recipe, .. } => buildable(recipe, Some("cargo")),
            Source::Debian { recipe, .. } => buildable(recipe, Some("apt-get")),
            Source::Own { recipe } => buildable(recipe, None),
            Source::Carried(_) => State::Buildable,
            Source::Libc => State::Unavailable {
                why: "there is no C library".to_owned(),
            },
        }
    }

    /// Why an entry's settings would change nothing here.
    fn unmet(&self, entry: &Entry) -> Option<String> {
        let requires = entry.requires.as_ref()?;
        let here = || Surroundings::here(&libc_version(&self.packages));
        requires.unmet(self.surroundings.get_or_init(here))
    }

    fn version(&self, entry: &Entry, library: Option<&Path>) -> String {
        match (&entry.source, library) {
            (Source::Libc, _) => libc_version(&self.packages),
            (Source::System(_) | Source::User(_), Some(path)) => {
                let unknown = || "unknown version".to_owned();
                self.packages.version_of(path).unwrap_or_else(unknown)
            }
            _ => entry.version.clone().unwrap_or_default(),
        }
    }

    /// Where an entry's library is, or why it is not here.
    fn locate(&self, entry: &Entry) -> Result<Located, RegistryError> {
        let name = || entry.name.clone();
        if let Some(why) = self.unmet(entry) {
            return Err(RegistryError::NotApplicable { name: name(), why });
        }
        let only = |path: PathBuf| Located {
            preload: vec![path.clone()],
            library: Some(path),
        };
        match &entry.source {
            Source::Libc => Ok(Located {
                library: None,
                preload: Vec::new(),
            }),
            Source::System(library) => {
                let found = self.loader.locate(library);
                let (path, also) = found.ok_or_else(|| RegistryError::NeedsPackage {
                    name: name(),
                    apt: library.apt.clone(),
                })?;
                let preload = std::iter::once(path.clone()).chain(also).collect();
                Ok(Located {
                    library: Some(path),
                    preload,
                })
            }
            Source::Crate { .. } | Source::Debian { .. } | Source::Own { .. } => {
                let found = build::installed(&self.cache, entry);
                found
                    .map(only)
                    .ok_or_else(|| RegistryError::NotInstalled { name: name() })
            }
            Source::Carried(file) => {
                let found = carried::installed(&self.cache, file);
                found
                    .map(only)
                    .ok_or_else(|| RegistryError::NotInstalled { name: name() })
            }
            Source::User(path) => {
                inspect(path)?;
                Ok(only(path.clone()))
            }
            Source::Unavailable(why) => Err(RegistryError::Unavailable {
                name: name(),
                why: why.clone(),
            }),
        }
    }

    /// The entrant of a name, or of a library's path: whatever has a `/` in it. Builds nothing.
    ///
    /// # Errors
    /// [`RegistryError::NotInstalled`] when `install` would help; else what is missing or wrong.
    pub fn entrant(&self, spec: &str) -> Result<Entrant, RegistryError> {
        if spec.contains('/') {
            return self.entrant_of_file(spec);
        }
        let entry = self.find(spec)?;
        let located = self.locate(entry).map_err(|error| match error {
            RegistryError::NotInstalled { .. } => self.why_not(entry),
            other => other,
        })?;
        if let Some(path) = &located.library {
            inspect(path)?;
        }
        Ok(Entrant {
            name: entry.name.clone(),
            role: Role::Rival,
            version: self.version(entry, located.library.as_deref()),
            sha256: located.library.as_deref().map(digest).transpose()?,
            library: located.library,
            preload: located.preload,
            settings: entry.settings.clone(),
            hardened: entry.hardened,
            known_faults: entry.known_faults.clone(),
            faults_of_new: entry.faults_of_new.clone(),
            as_is: false,
        })
    }

    fn entrant_of_file(&self, spec: &str) -> Result<Entrant, RegistryError> {
        let path = std::path::absolute(spec).map_err(FileError::of("find", spec))?;
        inspect(&path)?;
        let version = self.packages.version_of(&path);
        Ok(Entrant {
            name: spec.to_owned(),
            role: Role::Rival,
            version: version.unwrap_or_else(|| "unknown version".to_owned()),
            sha256: Some(digest(&path)?),
            library: Some(path.clone()),
            preload: vec![path],
            ..Entrant::default()
        })
    }

    fn why_not(&self, entry: &Entry) -> RegistryError {
        let name = entry.name.clone();
        match self.state(entry) {
            State::NeedsPackage { apt } => RegistryError::NeedsPackage { name, apt },
            State::Unavailable { why } => RegistryError::Unavailable { name, why },
            State::Buildable | State::Installed { .. } => RegistryError::NotInstalled { name },
        }
    }

    /// Builds an allocator into the cache, unless it is there. `observe` is told what happens. It
    /// ends early when the cache's interrupt is set. The build's log is kept.
    ///
    /// # Errors
    /// When the name is unknown, when something that the build needs is missing, or when it fails.
    pub fn install(
        &self,
        name: &str,
        observe: &mut dyn FnMut(BuildEvent),
    ) -> Result<Installed, RegistryError> {
        let entry = self.find(name)?;
        match self.state(entry) {
            State::Installed { path, version } => Ok(Installed {
                path,
                version,
                seconds: None,
            }),
            State::Buildable => {
                if let Source::Carried(file) = &entry.source {
                    return carried::install(&self.cache, entry, file);
                }
                let base = entry
                    .base
                    .as_deref()
                    .map_or(Ok(entry), |base| self.find(base))?;
                build::install(&self.cache, base, observe)
            }
            State::NeedsPackage { .. } | State::Unavailable { .. } => Err(self.why_not(entry)),
        }
    }
}

fn buildable(recipe: &Recipe, fetcher: Option<&str>) -> State {
    let needs = recipe.needs.iter().map(String::as_str).chain(["cc"]);
    let missing: Vec<_> = needs
        .filter(|program| !has_program(program))
        .map(package_of)
        .collect();
    if let Some(fetcher) = fetcher.filter(|fetcher| !has_program(fetcher)) {
        let why = format!("{fetcher}, which fetches its sources, was not found in PATH");
        State::Unavailable { why }
    } else if missing.is_empty() {
        State::Buildable
    } else {
        State::NeedsPackage {
            apt: missing.join(" "),
        }
    }
}

/// The Debian package that brings a program.
fn package_of(program: &str) -> &str {
    match program {
        "cc" => "gcc",
        "c++" => "g++",
        "ninja" => "ninja-build",
        other => other,
    }
}

fn user_fault(path: &Path) -> String {
    let fault = library::inspect(path).err();
    let fault = fault.map_or_else(
        || "it changed just now".to_owned(),
        |fault| fault.to_string(),
    );
    format!("{}: {fault}", path.display())
}

fn inspect(path: &Path) -> Result<(), RegistryError> {
    library::inspect(path).map_err(|fault| RegistryError::Library {
        path: path.to_owned(),
        fault,
    })
}

fn digest(path: &Path) -> Result<String, FileError> {
    sha256_of_file(path).map_err(FileError::of("read", path))
}

#[cfg(test)]
mod tests;
