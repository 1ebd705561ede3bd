//! The registry: entries, and their availability on this system.

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

/// Availability of an allocator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// The allocator's library is installed.
    Installed {
        /// Path of the library; empty for the C library.
        path: PathBuf,
        /// Version of the library.
        version: String,
    },
    /// The allocator can be built by [`Registry::install`].
    Buildable,
    /// Packages of the system are missing.
    NeedsPackage {
        /// Names of the packages, as arguments for `apt install`.
        apt: String,
    },
    /// The allocator is unavailable on this system.
    Unavailable {
        /// Reason and remedy.
        why: String,
    },
}

/// An entry with its state.
#[derive(Clone, Debug, PartialEq)]
pub struct Listing<'a> {
    /// The entry.
    pub entry: &'a Entry,
    /// Availability of the entry's allocator.
    pub state: State,
}

/// All allocators known to heapdrome.
#[derive(Debug)]
pub struct Registry {
    cache: Cache,
    config: PathBuf,
    entries: Vec<Entry>,
    loader: Loader,
    packages: Packages,
    /// Properties of this system that decide whether settings have an effect, determined once.
    surroundings: OnceLock<Surroundings>,
}

/// Library of an entry, and the files to preload with it.
struct Located {
    library: Option<PathBuf>,
    preload: Vec<PathBuf>,
}

impl Registry {
    /// Reads the built-in entries, and the user's own from `allocators.toml` in `config_dir`,
    /// usually `$XDG_CONFIG_HOME/heapdrome`. A user-defined entry replaces a built-in one of the
    /// same name.
    ///
    /// # Errors
    /// When the user's file is unreadable or invalid, or a built-in entry is invalid.
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

    /// Returns every entry with its state, in the order of the registry.
    pub fn list(&self) -> Vec<Listing<'_>> {
        self.entries
            .iter()
            .map(|entry| Listing {
                entry,
                state: self.state(entry),
            })
            .collect()
    }

    /// Returns the entry with this name or alias.
    ///
    /// # Errors
    /// [`RegistryError::Unknown`] with the most similar names, if no entry has this name or alias.
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

    /// Returns up to three names that are similar to `name`.
    fn nearest(&self, name: &str) -> Vec<String> {
        let names = self
            .entries
            .iter()
            .flat_map(|entry| std::iter::once(&entry.name).chain(&entry.aliases));
        let likeness = |other: &String| {
            let whole = strsim::jaro_winkler(name, other);
            // A longer name that contains `name` counts as similar, too: "gperf" finds
            // "tcmalloc-gperftools".
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

    /// Returns the availability of an entry's allocator.
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

    /// Returns the reason why an entry's settings have no effect on this system; `None` if they
    /// take effect.
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

    /// Returns an entry's library with the files to preload, or the reason why the library is
    /// missing or not applicable.
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

    /// Returns the entrant for the name of an allocator or the path of a library. A text with a `/`
    /// is a path. Builds nothing.
    ///
    /// # Errors
    /// [`RegistryError::NotInstalled`] when `install` would help. Otherwise the error names the
    /// missing or invalid item.
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

    /// Builds an allocator, or writes heapdrome's own library, into the cache. Does nothing if the
    /// allocator is already installed. `observe` receives the progress of a build. When the cache's
    /// interrupt flag is set, the build ends early. The log of the build is kept.
    ///
    /// # Errors
    /// When the name is unknown, a requirement of the build is missing, or the build fails or is
    /// interrupted.
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

/// Returns the Debian package that contains a program.
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
