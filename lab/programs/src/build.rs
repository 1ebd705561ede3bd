//! Prepares a C++ build: package, sources, tools, and its folder in the cache.

mod description;
mod sources;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use heapdrome_packages::{Cache, CratePin, Lock, Shelf, fetch_crate, quoted};

use crate::definition::{Build, Pin};
use crate::settings::Values;
use crate::tools::{Tool, Wanted};
use crate::{Event, Prepared, Program, ProgramError};
use description::Description;

/// The programs of a build, with the lines that they print about their versions.
struct Tools {
    compiler: Tool,
    compiler_version: String,
    archiver: Tool,
    builder: Tool,
    builder_version: String,
    kind: Builder,
}

/// Program that runs a build. Some distributions name ninja `ninja-build`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Builder {
    Make,
    Ninja,
}

impl Builder {
    /// Returns the kind of builder, which the tool's name determines.
    fn of(tool: &Tool) -> Self {
        match tool.name == "make" {
            true => Self::Make,
            false => Self::Ninja,
        }
    }
}

/// Prepares a build; see [`Program::prepare`].
pub(crate) fn prepare(
    program: &Program,
    build: &Build,
    cache: &Cache,
    values: &Values<'_>,
    on_event: &mut dyn FnMut(Event),
) -> Result<Prepared, ProgramError> {
    let name = &program.name;
    let compiler = values.word("compiler");
    let tools = Tools::find(name, compiler, std::env::var_os("PATH").as_ref())?;
    let pin = CratePin::from(&build.package);
    on_event(Event::Fetching {
        package: pin.label(),
    });
    let package = fetch_crate(cache, &pin)?;
    let count = values.number("units") as usize;
    let units = sources::list(build, count, &package)?;
    let place = format!("{name}-{}-{count}", tools.compiler.name);
    on_event(Event::Locking {
        program: name.clone(),
    });
    let lock = cache.keep(&place)?;
    let directory = cache.shelf(Shelf::Workloads)?.join(&place);
    on_event(Event::Writing {
        directory: directory.clone(),
    });
    let description = Description {
        build,
        compiler: &tools.compiler.path,
        archiver: &tools.archiver.path,
        units: &units,
    };
    write_folder(&lock, &directory, &package, &description, tools.kind)?;
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    Ok(Prepared {
        command: tools.command(jobs),
        prepare: Some(tools.clean_command(&directory)),
        directory,
        notes: tools.notes(build, &values.in_words(), units.len(), jobs),
        environment: BTreeMap::new(),
        server: None,
        metrics: Vec::new(),
        success: vec![0],
        repeatable_output: tools.silent().is_some(),
        _lock: lock,
    })
}

/// Writes the complete folder in the staging area, then replaces the old folder, including its
/// object files.
fn write_folder(
    lock: &Lock,
    directory: &Path,
    package: &Path,
    description: &Description<'_>,
    builder: Builder,
) -> Result<(), ProgramError> {
    let staging = lock.staging()?;
    let folder = staging.path().join("build");
    let (file, text) = match builder {
        Builder::Make => ("Makefile", description.makefile()),
        Builder::Ninja => ("build.ninja", description.ninja()),
    };
    let failed = |source| ProgramError::Write {
        path: folder.join(file),
        source,
    };
    fs::create_dir_all(folder.join(description::OBJECTS)).map_err(failed)?;
    // Paths of sources and headers in the description begin with this link, so that they contain no
    // special characters.
    std::os::unix::fs::symlink(package, folder.join(description::PACKAGE)).map_err(failed)?;
    fs::write(folder.join(file), text).map_err(failed)?;
    for (header, text) in &description.build.generated {
        let path = folder.join(description::GENERATED).join(header);
        let failed = |source| ProgramError::Write {
            path: path.clone(),
            source,
        };
        fs::create_dir_all(path.parent().unwrap_or(&folder)).map_err(failed)?;
        fs::write(&path, text).map_err(failed)?;
    }
    Ok(lock.place(&folder, directory)?)
}

impl Tools {
    fn find(program: &str, compiler: &str, path: Option<&OsString>) -> Result<Self, ProgramError> {
        let (names, advice): (&[_], _) = match compiler {
            "any" => (
                &["g++", "clang++"],
                "install it, on Debian with `apt install g++`",
            ),
            "gcc" => (&["g++"], "install it, on Debian with `apt install g++`"),
            _ => (
                &["clang++"],
                "install it, on Debian with `apt install clang`",
            ),
        };
        let find = |what, names: &[&'static str], advice| {
            Wanted {
                program,
                what,
                names,
                advice,
            }
            .find_in(path)
        };
        let compiler = find("a C++ compiler", names, advice)?;
        let archiver = find(
            "an archiver",
            &["ar"],
            "install it, on Debian with `apt install binutils`",
        )?;
        let builder = find(
            "a program that runs a build",
            &["ninja", "ninja-build", "make"],
            "install one, on Debian with `apt install ninja-build`",
        )?;
        Ok(Self {
            compiler_version: compiler.version("--version")?,
            builder_version: builder.version("--version")?,
            compiler,
            archiver,
            kind: Builder::of(&builder),
            builder,
        })
    }

    /// Returns the command of the build, silent if possible, so that every run prints the same
    /// output.
    fn command(&self, jobs: usize) -> Vec<String> {
        let mut command = vec![self.builder.name.clone()];
        command.extend(self.silent().map(str::to_owned));
        command.extend(["-j".to_owned(), jobs.to_string()]);
        command
    }

    /// Returns the option that makes the builder silent; `None` for an older ninja. An older ninja
    /// prints each file when its compilation ends, in an order that differs from run to run.
    fn silent(&self) -> Option<&'static str> {
        match self.kind {
            Builder::Make => Some("--silent"),
            Builder::Ninja => is_at_least(&self.builder_version, 1, 11).then_some("--quiet"),
        }
    }

    /// Returns the shell command that cleans the build before each run. It works in any folder.
    fn clean_command(&self, directory: &Path) -> String {
        let name = &self.builder.name;
        let folder = quoted(&directory.to_string_lossy());
        match self.kind {
            Builder::Make => format!("{name} --silent -C {folder} clean"),
            Builder::Ninja => format!("{name} -C {folder} -t clean > /dev/null"),
        }
    }

    fn notes(&self, build: &Build, parameters: &str, units: usize, jobs: usize) -> Vec<String> {
        let pin = &build.package;
        let mut notes = vec![
            format!(
                "{units} translation units of {}, from the package {} {} (SHA-256 {})",
                build.project, pin.name, pin.version, pin.sha256
            ),
            format!(
                "compiled by {} with {}",
                self.compiler_version,
                build.flags.join(" ")
            ),
            format!(
                "run by {} {} with {jobs} jobs",
                self.builder.name, self.builder_version
            ),
            format!("parameters: {parameters}"),
        ];
        notes.extend(self.compiler.passed_over.iter().map(|wrapper| {
            let used = self.compiler.path.display();
            format!(
                "{} is a compiler cache and was skipped in favour of {used}",
                wrapper.display()
            )
        }));
        notes
    }
}

impl From<&Pin> for CratePin {
    fn from(pin: &Pin) -> Self {
        Self {
            name: pin.name.clone(),
            version: pin.version.clone(),
            sha256: pin.sha256.clone(),
        }
    }
}

/// Returns whether a version such as `1.11.1` is `major.minor` or later. A part that is not a
/// number counts as 0.
fn is_at_least(version: &str, major: u32, minor: u32) -> bool {
    let mut parts = version
        .split('.')
        .map(|part| part.parse::<u32>().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= (major, minor)
}

#[cfg(test)]
mod tests;
