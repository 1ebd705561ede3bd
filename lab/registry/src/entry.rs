//! An allocator as data.

use std::collections::BTreeMap;
use std::path::PathBuf;

use heapdrome_packages::{CratePin, DebianPin};
use serde::Deserialize;

use crate::requires::Requires;

/// The optimisation flags of every allocator that heapdrome builds: the same for all, so that a
/// race compares allocators and not flags.
pub const OPTIMISATION: [&str; 2] = ["-O3", "-DNDEBUG"];

/// One allocator with one set of settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The name by which it is asked for.
    pub name: String,
    /// Other names for it.
    pub aliases: Vec<String>,
    /// The allocator that it is a version or a setting of.
    pub family: String,
    /// What it is, in one line.
    pub summary: String,
    /// Where its authors publish it; empty for one of the user's own, or of heapdrome's.
    pub homepage: String,
    /// The upstream version, where the source is pinned.
    pub version: Option<String>,
    /// Its licence as an SPDX expression; empty for one of the user's own.
    pub licence: String,
    /// Whether it is built to resist exploitation of memory errors.
    pub hardened: bool,
    /// Whether it keeps the contract of malloc; one that does not is raced only by its name.
    pub conforming: bool,
    /// Faults that were seen.
    pub known_faults: Vec<String>,
    /// Faults of its `operator new` that were seen; programs in C need not mind them.
    pub faults_of_new: Vec<String>,
    /// Environment variables that it is run with.
    pub settings: BTreeMap<String, String>,
    /// Without what these change nothing.
    pub requires: Option<Requires>,
    /// The entry whose library it runs with other settings, if it is such a variant.
    pub base: Option<String>,
    /// Where it comes from; a variant's is its base's.
    pub source: Source,
    /// About how many seconds its build takes, sources included, as docs/allocators.md tells; a
    /// variant's build is its base's.
    pub build_seconds: Option<u64>,
    /// How to use it for good.
    pub adoption: Adoption,
}

impl Entry {
    /// All faults that were seen, for whichever command.
    pub fn faults(&self) -> impl Iterator<Item = &String> {
        self.known_faults.iter().chain(&self.faults_of_new)
    }
}

/// Where an allocator comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// The C library that is there anyway.
    Libc,
    /// A library of the system.
    System(SystemLibrary),
    /// Built from a crate that carries the upstream sources.
    Crate {
        /// The crate.
        pin: CratePin,
        /// How it is built.
        recipe: Recipe,
    },
    /// Built from a Debian source package.
    Debian {
        /// The source package.
        pin: DebianPin,
        /// How it is built.
        recipe: Recipe,
    },
    /// Built from files of heapdrome's own.
    Own {
        /// How it is built.
        recipe: Recipe,
    },
    /// One of heapdrome's own libraries, which the binary carries, by its file name.
    Carried(String),
    /// A library of the user's own.
    User(PathBuf),
    /// It cannot be had, and this is why.
    Unavailable(String),
}

/// A library that a package of the system brings.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SystemLibrary {
    /// File names, the preferred first; `{arch}` stands for the machine.
    pub files: Vec<String>,
    /// Libraries to preload after it.
    #[serde(default)]
    pub preload_also: Vec<String>,
    /// The Debian package that brings it.
    pub apt: String,
}

/// How to use an allocator for good, besides preloading it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Adoption {
    /// What to write in a Rust program.
    pub rust: Option<String>,
    /// What to write in a CMake project.
    pub cmake: Option<String>,
}

/// How an allocator is built.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// Programs that the build needs, besides a C compiler.
    #[serde(default)]
    pub needs: Vec<String>,
    /// The library that the steps make, below the folder of the build.
    pub library: String,
    /// The steps, in order.
    pub steps: Vec<Step>,
}

/// One step of a build. `{source}` stands for the folder of the sources, `{glue}` for heapdrome's
/// own files, `{jobs}` for the number of processors, `{optimisation}` for the flags in one word.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Step {
    /// Copies a folder of the sources into the folder of the build.
    Copy {
        /// The folder to copy.
        from: String,
        /// The new folder.
        to: String,
    },
    /// Runs a program.
    Run {
        /// The program and its arguments.
        command: Vec<String>,
        /// The folder to run it in, below the folder of the build.
        #[serde(default)]
        folder: String,
    },
    /// Compiles files into objects that the next link step takes.
    Compile {
        /// The compiler.
        language: Language,
        /// The files.
        files: Vec<String>,
        /// Flags besides the common ones.
        #[serde(default)]
        flags: Vec<String>,
    },
    /// Links all objects into a shared object.
    Link {
        /// The compiler that links.
        language: Language,
        /// Flags besides `-shared`.
        #[serde(default)]
        flags: Vec<String>,
        /// The file to make.
        output: String,
    },
}

/// A language, and so a compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Language {
    /// C.
    #[serde(rename = "c")]
    C,
    /// C++.
    #[serde(rename = "c++")]
    Cpp,
}

/// The file of an entry, before it is checked and its base is looked up.
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

/// Reads one entry; `find` gives entries that were read before, for its base.
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

/// An entry that is its base with other settings.
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
