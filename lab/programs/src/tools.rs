//! Finds the programs that a load needs, and their versions.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::ProgramError;

/// Programs that answer a compilation from a cache or another machine. With such a wrapper, the
/// race would not measure the compiler.
const WRAPPERS: [&str; 4] = ["ccache", "sccache", "distcc", "icecc"];

/// Program that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tool {
    /// Name under which the program was found.
    pub name: String,
    pub path: PathBuf,
    /// First wrapper with this name that the search skipped, if any.
    pub passed_over: Option<PathBuf>,
}

/// Program to find, and the advice to print if it is missing.
pub(crate) struct Wanted<'a> {
    /// Name of the benchmark program that needs the tool, such as `build`.
    pub program: &'a str,
    /// Kind of program as messages name it, such as `a C++ compiler`.
    pub what: &'static str,
    /// Names of the program to find, best first.
    pub names: &'a [&'static str],
    /// Instruction for installing the program.
    pub advice: &'static str,
}

impl Wanted<'_> {
    /// Finds a program under the first of the names that exists in `path`, a list like `PATH`.
    pub(crate) fn find_in(&self, path: Option<&OsString>) -> Result<Tool, ProgramError> {
        let found = self.names.iter().find_map(|name| find_program(name, path));
        found.ok_or_else(|| ProgramError::ProgramMissing {
            program: self.program.to_owned(),
            what: self.what.to_owned(),
            looked_for: self.names.join(" or "),
            advice: self.advice.to_owned(),
        })
    }
}

/// Returns the first program of this name in `path`, a list like `PATH`. Skips wrappers and
/// relative folders. A name with a `/` is itself a path.
pub(crate) fn find_program(name: &str, path: Option<&OsString>) -> Option<Tool> {
    if name.contains('/') {
        return is_program(Path::new(name)).then(|| Tool {
            name: name.to_owned(),
            path: PathBuf::from(name),
            passed_over: None,
        });
    }
    let mut passed_over = None;
    for folder in std::env::split_paths(path?) {
        // A relative folder in PATH would be resolved against the build's working directory.
        let candidate = folder.join(name);
        if !folder.is_absolute() || !is_program(&candidate) {
            continue;
        }
        if is_wrapper(&candidate) {
            passed_over.get_or_insert(candidate);
            continue;
        }
        return Some(Tool {
            name: name.to_owned(),
            path: candidate,
            passed_over,
        });
    }
    None
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path)
        .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// Returns whether the file is a wrapper or a link to one, as in `/usr/lib/ccache`.
fn is_wrapper(path: &Path) -> bool {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    real.file_name()
        .is_some_and(|name| WRAPPERS.iter().any(|wrapper| name == *wrapper))
}

impl Tool {
    /// Returns the first nonempty line that the program prints about its version: on standard
    /// output or, if there is none, on standard error.
    pub(crate) fn version(&self, option: &str) -> Result<String, ProgramError> {
        let broken = |reason: String| ProgramError::ProgramBroken {
            path: self.path.clone(),
            reason,
        };
        let mut command = Command::new(&self.path);
        command.arg(option).env("LC_ALL", "C").stdin(Stdio::null());
        let output = command
            .output()
            .map_err(|error| broken(error.to_string()))?;
        let texts = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        let mut lines = texts.iter().flat_map(|text| text.lines()).map(str::trim);
        match lines.find(|line| !line.is_empty()) {
            Some(line) if output.status.success() => Ok(line.to_owned()),
            _ if output.status.success() => {
                Err(broken(format!("{} {option} printed no version", self.name)))
            }
            _ => Err(broken(format!(
                "{} {option} ended with {}",
                self.name, output.status
            ))),
        }
    }

    /// Returns the path, followed by a version line. Does not repeat the path if the line already
    /// begins with it, as that of `xmllint` does.
    pub(crate) fn with_path(&self, version: &str) -> String {
        let path = self.path.display().to_string();
        let rest = version.strip_prefix(&path).unwrap_or(version);
        let rest = rest.trim_start_matches([':', ',', ' ']);
        format!("{path}: {rest}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    const WANTED: Wanted<'static> = Wanted {
        program: "build",
        what: "a C++ compiler",
        names: &["g++", "clang++"],
        advice: "install g++",
    };

    fn program(path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().expect("in a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(path, mode).expect("made executable");
    }

    fn find(folders: &[PathBuf]) -> Result<Tool, ProgramError> {
        WANTED.find_in(Some(
            &std::env::join_paths(folders).expect("no colon in the folders"),
        ))
    }

    #[test]
    fn a_missing_program_is_told_in_one_line_with_advice() {
        for path in [None, Some(OsString::from("/nowhere"))] {
            let error = WANTED
                .find_in(path.as_ref())
                .expect_err("nothing there")
                .to_string();
            assert_eq!(
                error,
                "build needs a C++ compiler, and g++ or clang++ was not found in \
                 PATH; install g++"
            );
        }
    }

    #[test]
    fn a_compiler_cache_is_passed_over_and_told() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (links, bin) = (folder.path().join("links"), folder.path().join("bin"));
        program(&bin.join("ccache"), "#!/bin/sh\n");
        program(&bin.join("g++"), "#!/bin/sh\n");
        std::fs::create_dir(&links).expect("a folder");
        symlink(bin.join("ccache"), links.join("g++")).expect("a link");
        let tool = find(&[links.clone(), bin.clone()]).expect("the real one");
        assert_eq!(tool.path, bin.join("g++"));
        assert_eq!(tool.passed_over, Some(links.join("g++")));
    }

    #[test]
    fn a_file_that_is_no_program_does_not_count() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("g++"), "text").expect("a file");
        std::fs::create_dir(folder.path().join("clang++")).expect("a folder");
        assert!(find(&[folder.path().to_owned()]).is_err());
        program(&folder.path().join("sub").join("clang++"), "#!/bin/sh\n");
        let tool = find(&[folder.path().to_owned(), folder.path().join("sub")]);
        assert_eq!(tool.expect("the second name").name, "clang++");
    }

    #[test]
    fn a_program_that_does_not_start_is_told() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        program(&folder.path().join("g++"), "#!/bin/sh\nexit 7\n");
        let tool = find(&[folder.path().to_owned()]).expect("it is there");
        let message = tool.version("--version").expect_err("it fails").to_string();
        assert!(message.contains("exit status: 7"), "{message}");
        program(&folder.path().join("g++"), "#!/bin/sh\n");
        let message = tool.version("--version").expect_err("silent").to_string();
        assert!(
            message.contains("g++ --version printed no version"),
            "{message}"
        );
        program(
            &folder.path().join("g++"),
            "#!/bin/sh\necho g++ 1.2\necho more\n",
        );
        assert_eq!(tool.version("--version").expect("it answers"), "g++ 1.2");
        let path = tool.path.display().to_string();
        for version in ["g++ 1.2".to_owned(), format!("{path}: g++ 1.2")] {
            assert_eq!(tool.with_path(&version), format!("{path}: g++ 1.2"));
        }
    }
}
