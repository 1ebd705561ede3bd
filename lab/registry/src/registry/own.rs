//! Adds user-defined allocators, and removes user-defined ones and those in the cache.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use heapdrome_schema::Entrant;

use super::{Registry, inspect};
use heapdrome_system::FileError;

use crate::config::{self, Own};
use crate::entry::{Adoption, Entry, Source};
use crate::{RegistryError, build, carried};

/// Names of groups on the command line, which user-defined allocators cannot have.
const GROUPS: [&str; 4] = ["default", "found", "hardened", "all"];

impl Registry {
    /// Adds a user-defined library under a name, with environment variables to set for it. Replaces
    /// an entry of this name if that entry is user-defined or its allocator is unavailable.
    ///
    /// # Errors
    /// When another built-in entry has the name, the name or a variable is invalid, the library
    /// cannot be preloaded, or the user's file cannot be read or written.
    pub fn add(
        &mut self,
        name: &str,
        path: &Path,
        env: &BTreeMap<String, String>,
    ) -> Result<(), RegistryError> {
        self.check_name(name)?;
        check_settings(env)?;
        let path = std::path::absolute(path).map_err(FileError::of("find", path))?;
        inspect(&path)?;
        let own = Own {
            name: name.to_owned(),
            path,
            env: env.clone(),
        };
        let mut all = config::read(&self.config)?;
        all.retain(|other| other.name != name);
        all.push(own.clone());
        config::write(&self.config, all)?;
        self.entries.retain(|entry| entry.name != name);
        self.entries.push(own_entry(own));
        Ok(())
    }

    fn check_name(&self, name: &str) -> Result<(), RegistryError> {
        let bad = |why: &str| {
            Err(RegistryError::BadName {
                name: format!("{name:?}"),
                why: why.to_owned(),
            })
        };
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
        if name.is_empty() || name.starts_with('-') || !name.chars().all(is_plain) {
            return bad("use letters, digits, '-', '_', '.' and '+'");
        }
        if GROUPS.contains(&name) {
            return bad("it is the name of a group; choose another");
        }
        if name == Entrant::AS_IS {
            return bad("it is the name of the command as it runs today; choose another");
        }
        match self.find(name) {
            Err(_) => Ok(()),
            Ok(Entry {
                source: Source::User(_) | Source::Unavailable(_),
                ..
            }) => Ok(()),
            Ok(_) => bad("heapdrome's own registry has one of that name; choose another"),
        }
    }

    /// Removes a user-defined allocator from the user's list, or the folder of any other allocator
    /// from the cache. Keeps a user's library, and returns its path; otherwise returns the path of
    /// the removed folder.
    ///
    /// # Errors
    /// When the name is unknown, heapdrome may not remove the allocator, or the removal fails.
    pub fn remove(&mut self, name: &str) -> Result<PathBuf, RegistryError> {
        let entry = self.find(name)?.clone();
        let not_ours = |why: &str| {
            Err(RegistryError::NotRemovable {
                name: entry.name.clone(),
                why: why.to_owned(),
            })
        };
        if let Some(base) = &entry.base {
            return not_ours(&format!("it is a setting of {base}; remove that"));
        }
        match &entry.source {
            Source::User(path) => {
                let mut all = config::read(&self.config)?;
                all.retain(|other| other.name != entry.name);
                config::write(&self.config, all)?;
                self.entries = Self::load(&self.cache, &self.config)?.entries;
                Ok(path.clone())
            }
            Source::Crate { .. } | Source::Debian { .. } | Source::Own { .. } => {
                match build::folder_of(&self.cache, &entry) {
                    Some(folder) if self.cache.remove(&entry.name, &folder)? => Ok(folder),
                    _ => not_ours("it is not built"),
                }
            }
            Source::Carried(file) => match carried::folder_of(&self.cache, file) {
                Some(folder) if self.cache.remove(&entry.name, &folder)? => Ok(folder),
                _ => not_ours("it is not in the cache"),
            },
            Source::System(library) => not_ours(&format!(
                "it belongs to a system package; use `apt remove {}`",
                library.apt
            )),
            Source::Libc => not_ours("it is the system's own"),
            Source::Unavailable(_) => not_ours("it is not here"),
        }
    }
}

/// Converts a user-defined allocator into an entry.
pub(super) fn own_entry(own: Own) -> Entry {
    Entry {
        summary: format!("your own library {}", own.path.display()),
        family: own.name.clone(),
        name: own.name,
        aliases: Vec::new(),
        homepage: String::new(),
        version: None,
        licence: String::new(),
        hardened: false,
        conforming: true,
        known_faults: Vec::new(),
        faults_of_new: Vec::new(),
        settings: own.env,
        requires: None,
        base: None,
        source: Source::User(own.path),
        build_seconds: None,
        adoption: Adoption::default(),
    }
}

fn check_settings(env: &BTreeMap<String, String>) -> Result<(), RegistryError> {
    let is_bad = |(name, value): &(&String, &String)| {
        name.is_empty() || name.contains('=') || name.contains('\0') || value.contains('\0')
    };
    match env.iter().find(is_bad) {
        Some((name, value)) => Err(RegistryError::BadSetting {
            setting: format!("{name}={value}").escape_debug().to_string(),
        }),
        None => Ok(()),
    }
}
