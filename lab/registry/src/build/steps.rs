//! Execution of the steps of a recipe.

use std::cell::RefCell;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use heapdrome_packages::{Cache, ChildError, Job, last_lines};

use super::BuildEvent;
use super::compile::{self, Unit};
use heapdrome_system::FileError;

use crate::entry::{Entry, Language, OPTIMISATION, Recipe, Step};
use crate::{RegistryError, embedded, library};

/// A build in a staging folder.
pub(super) struct Work<'a> {
    cache: &'a Cache,
    name: &'a str,
    recipe: &'a Recipe,
    source: &'a Path,
    folder: PathBuf,
    glue: PathBuf,
    log: &'a Path,
    objects: RefCell<Vec<PathBuf>>,
}

/// Counter that reports each step to the observer.
struct Progress<'a> {
    observe: &'a mut dyn FnMut(BuildEvent),
    done: usize,
    of: usize,
}

impl Progress<'_> {
    fn step(&mut self, what: String) {
        self.done += 1;
        (self.observe)(BuildEvent::Step {
            n: self.done,
            of: self.of,
            what,
        });
    }
}

impl<'a> Work<'a> {
    pub(super) fn new(
        cache: &'a Cache,
        entry: &'a Entry,
        recipe: &'a Recipe,
        source: &'a Path,
        staging: &Path,
        log: &'a Path,
    ) -> Result<Self, RegistryError> {
        let folder = staging.join("build");
        let glue = staging.join("glue");
        for path in [&folder, &glue] {
            std::fs::create_dir(path).map_err(FileError::of("make the folder", path))?;
        }
        for (name, text) in embedded::glue_files() {
            let path = glue.join(name);
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)
                    .map_err(FileError::of("make the folder", parent))?;
            }
            std::fs::write(&path, text).map_err(FileError::of("write", &path))?;
        }
        let objects = RefCell::new(Vec::new());
        Ok(Self {
            cache,
            name: &entry.name,
            recipe,
            source,
            folder,
            glue,
            log,
            objects,
        })
    }

    pub(super) fn run(&self, observe: &mut dyn FnMut(BuildEvent)) -> Result<(), RegistryError> {
        let count = |step: &Step| match step {
            Step::Compile { files, .. } => files.len(),
            _ => 1,
        };
        let of = self.recipe.steps.iter().map(count).sum();
        let mut progress = Progress {
            observe,
            done: 0,
            of,
        };
        self.recipe
            .steps
            .iter()
            .try_for_each(|step| self.step(step, &mut progress))
    }

    fn step(&self, step: &Step, progress: &mut Progress<'_>) -> Result<(), RegistryError> {
        match step {
            Step::Copy { from, to } => {
                progress.step("copying the sources".to_owned());
                copy_folder(Path::new(&self.fill(from)), &self.folder.join(to))
            }
            Step::Run { command, folder } => {
                progress.step(
                    command
                        .iter()
                        .take(2)
                        .cloned()
                        .collect::<Vec<_>>()
                        .join(" "),
                );
                self.run_command(command, folder)
            }
            Step::Compile {
                language,
                files,
                flags,
            } => self.compile(*language, files, flags, progress),
            Step::Link {
                language,
                flags,
                output,
            } => {
                progress.step(format!("linking {output}"));
                self.link(*language, flags, output)
            }
        }
    }

    /// Replaces the placeholders in a word of a recipe.
    fn fill(&self, word: &str) -> String {
        if !word.contains('{') {
            return word.to_owned();
        }
        word.replace("{source}", &self.source.to_string_lossy())
            .replace("{glue}", &self.glue.to_string_lossy())
            .replace("{jobs}", &compile::jobs().to_string())
            .replace("{optimisation}", &OPTIMISATION.join(" "))
    }

    fn run_command(&self, command: &[String], folder: &str) -> Result<(), RegistryError> {
        let Some((program, arguments)) = command.split_first() else {
            return Ok(());
        };
        let mut job = Job::new(self.fill(program), self.log);
        clean_environment(&mut job);
        job.command()
            .args(arguments.iter().map(|word| self.fill(word)));
        job.command().current_dir(self.folder.join(folder));
        job.run(self.cache.interrupt())
            .map_err(|error| self.failure(error))
    }

    fn compile(
        &self,
        language: Language,
        files: &[String],
        flags: &[String],
        progress: &mut Progress<'_>,
    ) -> Result<(), RegistryError> {
        let mut units = Vec::new();
        for file in files {
            let object = self
                .folder
                .join(format!("{}.o", units.len() + self.objects.borrow().len()));
            let mut arguments: Vec<String> =
                OPTIMISATION.iter().map(|&flag| flag.to_owned()).collect();
            arguments.push("-fPIC".to_owned());
            arguments.extend(flags.iter().map(|flag| self.fill(flag)));
            let file = self.fill(file);
            units.push(Unit {
                compiler: compiler(language),
                arguments,
                file,
                object,
            });
        }
        let objects = units.iter().map(|unit| unit.object.clone());
        self.objects.borrow_mut().extend(objects);
        let mut tell = |what| progress.step(what);
        compile::run(
            &units,
            &self.folder,
            self.log,
            self.cache.interrupt(),
            &mut tell,
        )
        .map_err(|error| self.failure(error))
    }

    fn link(
        &self,
        language: Language,
        flags: &[String],
        output: &str,
    ) -> Result<(), RegistryError> {
        let mut job = Job::new(compiler(language), self.log);
        clean_environment(&mut job);
        let command = job.command();
        command
            .current_dir(&self.folder)
            .args(OPTIMISATION)
            .args(["-fPIC", "-shared"]);
        command.args(self.objects.borrow().iter());
        command.args(flags.iter().map(|flag| self.fill(flag)));
        command.arg("-o").arg(self.folder.join(output));
        job.run(self.cache.interrupt())
            .map_err(|error| self.failure(error))
    }

    /// Returns the path of the library that the steps created. Fails if the library cannot be
    /// preloaded; the message calls it `name`.
    pub(super) fn finished_library(&self, name: &str) -> Result<PathBuf, RegistryError> {
        let path = self.folder.join(&self.recipe.library);
        library::inspect(&path).map_err(|fault| RegistryError::Build {
            name: self.name.to_owned(),
            reason: format!("the build left no usable {name}"),
            last: fault.to_string(),
            log: self.log.to_owned(),
        })?;
        Ok(path)
    }

    fn failure(&self, error: ChildError) -> RegistryError {
        let name = self.name.to_owned();
        match error {
            ChildError::Interrupted => RegistryError::Interrupted { name },
            error => RegistryError::Build {
                name,
                reason: error.to_string(),
                last: telling_line(&last_lines(self.log, 60)),
                log: self.log.to_owned(),
            },
        }
    }
}

/// Removes variables that the user sets for other builds, because they must not affect this build.
fn clean_environment(job: &mut Job<'_>) {
    let names = [
        "CFLAGS",
        "CXXFLAGS",
        "CPPFLAGS",
        "LDFLAGS",
        "LIBS",
        "MAKEFLAGS",
        "CC",
        "CXX",
    ];
    for name in names {
        job.command().env_remove(name);
    }
}

pub(super) fn compiler(language: Language) -> &'static str {
    match language {
        Language::C => "cc",
        Language::Cpp => "c++",
    }
}

/// Returns the first line that reports an error of a compiler or make; if there is none, the last
/// line.
pub(crate) fn telling_line(lines: &[String]) -> String {
    let is_error = |line: &&String| line.contains("error:") || line.contains("Error ");
    let line = lines.iter().find(is_error).or(lines.last());
    line.map_or_else(|| "no output".to_owned(), |line| line.trim().to_owned())
}

/// Copies a folder with its contents. Copies of read-only files are writable, too, because
/// configure and make change them.
fn copy_folder(from: &Path, to: &Path) -> Result<(), RegistryError> {
    std::fs::create_dir_all(to).map_err(FileError::of("make the folder", to))?;
    let entries = std::fs::read_dir(from).map_err(FileError::of("read", from))?;
    for entry in entries {
        let entry = entry.map_err(FileError::of("read", from))?;
        let (path, copy) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy_folder(&path, &copy)?;
        } else {
            std::fs::copy(&path, &copy).map_err(FileError::of("copy", &path))?;
            make_writable(&copy).map_err(FileError::of("make writable", &copy))?;
        }
    }
    Ok(())
}

fn make_writable(file: &Path) -> std::io::Result<()> {
    let mut permissions = std::fs::metadata(file)?.permissions();
    permissions.set_mode(permissions.mode() | 0o200);
    std::fs::set_permissions(file, permissions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_is_told() {
        let lines = [
            "cc -c a.c",
            "a.c:1:1: error: what",
            "make: *** [a.o] Error 1",
        ];
        let lines: Vec<_> = lines.iter().map(|&line| line.to_owned()).collect();
        assert_eq!(telling_line(&lines), "a.c:1:1: error: what");
        assert_eq!(telling_line(&lines[..1]), "cc -c a.c");
    }

    #[test]
    fn a_folder_is_copied_whole() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let from = folder.path().join("from here");
        std::fs::create_dir_all(from.join("a/b")).expect("writable");
        std::fs::write(from.join("a/b/c"), "text").expect("writable");
        let to = folder.path().join("to");
        copy_folder(&from, &to).expect("can be copied");
        assert_eq!(
            std::fs::read_to_string(to.join("a/b/c")).expect("readable"),
            "text"
        );
    }

    #[test]
    fn a_copy_of_a_read_only_file_is_writable_and_stays_executable() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let from = folder.path().join("from");
        std::fs::create_dir(&from).expect("writable");
        std::fs::write(from.join("configure"), "text").expect("writable");
        let set = |mode| {
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(from.join("configure"), mode)
        };
        set(0o555).expect("its mode can be set");
        let to = folder.path().join("to");
        copy_folder(&from, &to).expect("can be copied");
        let copied = std::fs::metadata(to.join("configure")).expect("a copy");
        assert_eq!(copied.permissions().mode() & 0o777, 0o755);
    }
}
