//! Description of an allocator, as data.

use std::collections::BTreeMap;
use std::path::PathBuf;

use heapdrome_packages::{CratePin, DebianPin};
use serde::Deserialize;

use crate::requires::Requires;

/// Optimisation flags of every allocator that heapdrome builds by a recipe. Recipes set no other
/// optimisation flags, so that a race compares allocators and not flags.
pub const OPTIMISATION: [&str; 2] = ["-O3", "-DNDEBUG"];

/// An allocator with its settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Name under which the entry is requested.
    pub name: String,
    /// Alternative names.
    pub aliases: Vec<String>,
    /// Name of the allocator of which this entry is a version or setting.
    pub family: String,
    /// Description, in one line.
    pub summary: String,
    /// Website of the authors; empty for user-defined allocators and heapdrome's own.
    pub homepage: String,
    /// Version of the pinned sources or of heapdrome's own library; `None` for a library of the
    /// system or of the user, and for an unavailable allocator.
    pub version: Option<String>,
    /// Licence as an SPDX expression; empty for user-defined allocators.
    pub licence: String,
    /// Whether the allocator is built to resist the exploitation of memory errors.
    pub hardened: bool,
    /// Whether the allocator conforms to the contract of malloc. Otherwise it races only if it is
    /// requested by name.
    pub conforming: bool,
    /// Observed faults, except those of the allocator's `operator new`.
    pub known_faults: Vec<String>,
    /// Observed faults of the allocator's `operator new`, which do not affect C programs.
    pub faults_of_new: Vec<String>,
    /// Environment variables to set for the allocator.
    pub settings: BTreeMap<String, String>,
    /// Conditions without which the settings have no effect.
    pub requires: Option<Requires>,
    /// Name of the base: the entry whose library this variant uses with other settings.
    pub base: Option<String>,
    /// Source of the library; for a variant, the source of its base.
    pub source: Source,
    /// Approximate duration of the build in seconds, including fetching, as in docs/allocators.md.
    /// For a variant, the duration of its base's build.
    pub build_seconds: Option<u64>,
    /// Instructions for permanent use of the allocator.
    pub adoption: Adoption,
}

impl Entry {
    /// Returns all observed faults, regardless of the commands that they affect.
    pub fn faults(&self) -> impl Iterator<Item = &String> {
        self.known_faults.iter().chain(&self.faults_of_new)
    }
}

/// Source of an allocator.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// The C library of the system.
    Libc,
    /// A library from a system package.
    System(SystemLibrary),
    /// Built from a crate that carries the upstream sources.
    Crate {
        /// Name, version and checksum of the crate.
        pin: CratePin,
        /// Build recipe.
        recipe: Recipe,
    },
    /// Built from a Debian source package.
    Debian {
        /// Name, version and checksum of the source package.
        pin: DebianPin,
        /// Build recipe.
        recipe: Recipe,
    },
    /// Built from heapdrome's own files.
    Own {
        /// Build recipe.
        recipe: Recipe,
    },
    /// One of heapdrome's own libraries, embedded in the binary, by its file name.
    Carried(String),
    /// A user-defined library.
    User(PathBuf),
    /// The allocator is unavailable, for the reason in the text.
    Unavailable(String),
}

/// A library from a system package.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SystemLibrary {
    /// File names in order of preference. `{arch}` is replaced by the name of the processor's
    /// architecture.
    pub files: Vec<String>,
    /// Libraries to preload after this one.
    #[serde(default)]
    pub preload_also: Vec<String>,
    /// Debian package that contains the library.
    pub apt: String,
}

/// Instructions for permanent use, other than preloading.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Adoption {
    /// Instruction for a Rust program.
    pub rust: Option<String>,
    /// Instruction for a CMake project.
    pub cmake: Option<String>,
}

/// Build recipe of an allocator.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// Programs that the build needs in addition to a C compiler and the program that fetches the
    /// sources.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Path of the library that the steps create, relative to the build folder.
    pub library: String,
    /// Steps, in order.
    pub steps: Vec<Step>,
}

/// A step of a build. Placeholders are replaced: `{source}` by the folder of the sources, `{glue}`
/// by the folder of heapdrome's own files, `{jobs}` by the number of processors, and
/// `{optimisation}` by the flags as one word. Only paths within the build folder (`to`, `folder`
/// and `output`) take no placeholders.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Step {
    /// Copies a folder, such as that of the sources, into the build folder.
    Copy {
        /// Path of the folder to copy.
        from: String,
        /// Path of the copy, relative to the build folder.
        to: String,
    },
    /// Runs a program.
    Run {
        /// Program and its arguments.
        command: Vec<String>,
        /// Working folder, relative to the build folder.
        #[serde(default)]
        folder: String,
    },
    /// Compiles files into objects for later link steps.
    Compile {
        /// Language, which selects the compiler.
        language: Language,
        /// Paths of the files. Relative paths are in the build folder.
        files: Vec<String>,
        /// Flags in addition to the common ones.
        #[serde(default)]
        flags: Vec<String>,
    },
    /// Links all objects so far into a shared object.
    Link {
        /// Compiler used for linking.
        language: Language,
        /// Flags in addition to the common ones.
        #[serde(default)]
        flags: Vec<String>,
        /// Path of the file to create, relative to the build folder.
        output: String,
    },
}

/// Language, which selects the compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Language {
    /// C.
    #[serde(rename = "c")]
    C,
    /// C++.
    #[serde(rename = "c++")]
    Cpp,
}

/// File of an entry as parsed, before the checks and the lookup of its base.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryFile {
    name: String,
    #[serde(default)]
    aliases: Vec<String>,
    family: Option<String>,
    summary: String,
    homepage: Option<String>,
    version: Option<String>,
    licence: Option<String>,
    hardened: Option<bool>,
    conforming: Option<bool>,
    #[serde(default)]
    known_faults: Vec<String>,
    #[serde(default)]
    faults_of_new: Vec<String>,
    #[serde(default)]
    settings: BTreeMap<String, String>,
    requires: Option<Requires>,
    base: Option<String>,
    unavailable: Option<String>,
    build_seconds: Option<u64>,
    #[serde(default)]
    libc: bool,
    #[serde(default)]
    own: bool,
    carried: Option<String>,
    system: Option<SystemLibrary>,
    #[serde(rename = "crate")]
    from_crate: Option<CrateSource>,
    debian: Option<DebianSource>,
    build: Option<Recipe>,
    adoption: Option<Adoption>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CrateSource {
    name: String,
    version: String,
    sha256: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DebianSource {
    package: String,
    upstream_version: String,
    archive: String,
    sha256: String,
}

/// Parses an entry. `find` returns earlier entries, one of which may be its base.
pub(crate) fn parse(text: &str, find: &dyn Fn(&str) -> Option<Entry>) -> Result<Entry, String> {
    let mut file: EntryFile = toml::from_str(text).map_err(|error| error.to_string())?;
    if let Some(base) = file.base.take() {
        let base = find(&base).ok_or_else(|| format!("its base {base} is not known"))?;
        return variant(file, base);
    }
    let source = source_of(&mut file)?;
    let missing = |what: &str| format!("{what} is missing");
    Ok(Entry {
        family: file.family.ok_or_else(|| missing("family"))?,
        homepage: file.homepage.ok_or_else(|| missing("homepage"))?,
        licence: file.licence.ok_or_else(|| missing("licence"))?,
        hardened: file.hardened.ok_or_else(|| missing("hardened"))?,
        conforming: file.conforming.unwrap_or(true),
        name: file.name,
        aliases: file.aliases,
        summary: file.summary,
        version: file.version,
        known_faults: file.known_faults,
        faults_of_new: file.faults_of_new,
        settings: file.settings,
        requires: file.requires,
        base: None,
        source,
        build_seconds: file.build_seconds,
        adoption: file.adoption.unwrap_or_default(),
    })
}

/// Creates a variant: an entry that uses the library of its base with other settings.
fn variant(file: EntryFile, base: Entry) -> Result<Entry, String> {
    if file.settings.is_empty() {
        return Err("a variant needs settings".to_owned());
    }
    let mut settings = base.settings.clone();
    settings.extend(file.settings);
    let mut known_faults = base.known_faults.clone();
    known_faults.extend(file.known_faults);
    let mut faults_of_new = base.faults_of_new.clone();
    faults_of_new.extend(file.faults_of_new);
    Ok(Entry {
        base: Some(base.name.clone()),
        name: file.name,
        aliases: file.aliases,
        summary: file.summary,
        hardened: file.hardened.unwrap_or(base.hardened),
        known_faults,
        faults_of_new,
        settings,
        requires: file.requires.or(base.requires),
        ..base
    })
}

fn source_of(file: &mut EntryFile) -> Result<Source, String> {
    let mut sources = Vec::new();
    if file.libc {
        sources.push(Source::Libc);
    }
    if file.own {
        let recipe = file.build.take().ok_or("the build is missing")?;
        sources.push(Source::Own { recipe });
    }
    sources.extend(file.carried.take().map(Source::Carried));
    sources.extend(file.unavailable.take().map(Source::Unavailable));
    sources.extend(file.system.take().map(Source::System));
    if let Some(CrateSource {
        name,
        version,
        sha256,
    }) = file.from_crate.take()
    {
        let recipe = file.build.take().ok_or("the build is missing")?;
        sources.push(Source::Crate {
            pin: CratePin {
                name,
                version,
                sha256,
            },
            recipe,
        });
    }
    if let Some(DebianSource {
        package,
        upstream_version,
        archive,
        sha256,
    }) = file.debian.take()
    {
        let recipe = file.build.take().ok_or("the build is missing")?;
        let pin = DebianPin {
            package,
            upstream_version,
            archive,
            sha256,
        };
        sources.push(Source::Debian { pin, recipe });
    }
    match (sources.pop(), sources.len()) {
        (Some(source), 0) => Ok(source),
        _ => Err("it needs exactly one source".to_owned()),
    }
}
