//! Libraries of this system: their locations and versions.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::entry::SystemLibrary;

/// Returns the path of this process's C library; `None` if it cannot be determined.
pub fn system_libc() -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let paths = maps
        .lines()
        .filter_map(|line| line.find('/').map(|at| &line[at..]));
    let is_libc = |path: &&str| {
        let name = path.rsplit('/').next().unwrap_or_default();
        name == "libc.so.6" || (name.starts_with("libc-") && name.ends_with(".so"))
    };
    let mut found: Vec<_> = paths.filter(is_libc).collect();
    found.dedup();
    found.first().map(PathBuf::from)
}

/// Returns the version of glibc, with the name and version of its package if known.
pub(crate) fn libc_version(packages: &Packages) -> String {
    // SAFETY: gnu_get_libc_version has no arguments. It returns a pointer to a static,
    // zero-terminated string that glibc never changes.
    let version = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) };
    let version = version.to_string_lossy();
    let path = system_libc();
    match path.and_then(|path| packages.version_of(&path)) {
        Some(package) => format!("glibc {version} ({package})"),
        None => format!("glibc {version}"),
    }
}

/// Returns the name and version of the Debian package that contains a library; `None` if dpkg is
/// missing or knows none.
pub fn package_of(library: &Path) -> Option<String> {
    ask_dpkg(library)
}

/// Content of the dynamic loader's cache, read once.
#[derive(Debug, Default)]
pub(crate) struct Loader {
    known: OnceLock<BTreeMap<String, PathBuf>>,
}

impl Loader {
    /// Returns the path of a system library, and the paths of the libraries to preload after it.
    /// Returns `None` if one of them is missing.
    pub(crate) fn locate(&self, library: &SystemLibrary) -> Option<(PathBuf, Vec<PathBuf>)> {
        let arch = std::env::consts::ARCH;
        let mut files = library
            .files
            .iter()
            .map(|file| file.replace("{arch}", arch));
        let main = files.find_map(|file| self.find(&file))?;
        let also: Option<Vec<_>> = library
            .preload_also
            .iter()
            .map(|name| self.find(name))
            .collect();
        Some((main, also?))
    }

    fn find(&self, file: &str) -> Option<PathBuf> {
        let known = self.known.get_or_init(loader_cache);
        let listed = known.get(file).filter(|path| path.is_file()).cloned();
        listed
            .or_else(|| in_folders(&standard_folders(), file))
            .or_else(|| in_llvm(file))
    }
}

/// Returns the names and paths that `ldconfig -p` prints for this machine.
fn loader_cache() -> BTreeMap<String, PathBuf> {
    // Users other than root often lack the sbin folders in `PATH`, so try the full paths first.
    let programs = ["/sbin/ldconfig", "/usr/sbin/ldconfig", "ldconfig"];
    let output = programs.iter().find_map(|program| {
        let mut command = Command::new(program);
        command
            .arg("-p")
            .env("LC_ALL", "C")
            .env_remove("LD_PRELOAD")
            .stderr(Stdio::null());
        command
            .output()
            .ok()
            .filter(|output| output.status.success())
    });
    let Some(output) = output else {
        return BTreeMap::new();
    };
    parse_loader_cache(&String::from_utf8_lossy(&output.stdout))
}

/// Parses lines such as `libjemalloc.so.2 (libc6,x86-64) =>
/// /lib/x86_64-linux-gnu/libjemalloc.so.2`. Uses the first of several lines for one name, and skips
/// libraries for other machines.
fn parse_loader_cache(text: &str) -> BTreeMap<String, PathBuf> {
    let machine = if cfg!(target_arch = "aarch64") {
        "AArch64"
    } else {
        "x86-64"
    };
    let mut known = BTreeMap::new();
    for line in text.lines() {
        let Some((left, path)) = line.split_once(" => ") else {
            continue;
        };
        let Some((name, kind)) = left.trim().split_once(" (") else {
            continue;
        };
        if kind.contains(machine) && !kind.contains("x32") {
            known
                .entry(name.to_owned())
                .or_insert_with(|| PathBuf::from(path.trim()));
        }
    }
    known
}

fn standard_folders() -> Vec<PathBuf> {
    let triplet = format!("{}-linux-gnu", std::env::consts::ARCH);
    let folders = [
        format!("/usr/lib/{triplet}"),
        format!("/lib/{triplet}"),
        "/usr/local/lib".to_owned(),
        "/usr/lib64".to_owned(),
        "/lib64".to_owned(),
        "/usr/lib".to_owned(),
    ];
    folders.into_iter().map(PathBuf::from).collect()
}

fn in_folders(folders: &[PathBuf], file: &str) -> Option<PathBuf> {
    folders
        .iter()
        .map(|folder| folder.join(file))
        .find(|path| path.is_file())
}

/// Finds a compiler runtime below `/usr/lib/llvm-*/lib/clang/*/lib`. Uses the newest installed
/// version of LLVM that contains it.
fn in_llvm(file: &str) -> Option<PathBuf> {
    let number = |path: &Path| -> u32 {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let digits = name
            .trim_start_matches("llvm-")
            .split('.')
            .next()
            .unwrap_or_default();
        digits.parse().unwrap_or(0)
    };
    let mut releases = children(Path::new("/usr/lib"), "llvm-");
    releases.sort_by_key(|path| std::cmp::Reverse(number(path)));
    releases.iter().find_map(|release| {
        let mut versions = children(&release.join("lib/clang"), "");
        versions.sort_by_key(|path| std::cmp::Reverse(number(path)));
        versions.iter().find_map(|version| {
            let triplet = format!("lib/{}-unknown-linux-gnu", std::env::consts::ARCH);
            in_folders(&[version.join("lib/linux"), version.join(triplet)], file)
        })
    })
}

fn children(folder: &Path, start: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(start));
    named.map(|entry| entry.path()).collect()
}

/// Lookup of the Debian packages that contain files. Each file is looked up once.
#[derive(Debug, Default)]
pub(crate) struct Packages {
    known: std::sync::Mutex<BTreeMap<PathBuf, Option<String>>>,
}

impl Packages {
    /// Returns the name and version of the package that contains `path`; `None` if dpkg is missing
    /// or knows none.
    pub(crate) fn version_of(&self, path: &Path) -> Option<String> {
        let mut known = self
            .known
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        known
            .entry(path.to_owned())
            .or_insert_with(|| ask_dpkg(path))
            .clone()
    }
}

fn ask_dpkg(path: &Path) -> Option<String> {
    let package = spellings(path).iter().find_map(|path| {
        let line = dpkg_query(&["-S", "--", path.to_str()?])?;
        let owners = line.lines().find(|line| !line.starts_with("diversion "))?;
        Some(owners.split_once(": ")?.0.split(", ").next()?.to_owned())
    })?;
    let version = dpkg_query(&["-W", "-f", "${Version}", "--", &package])?;
    let name = package.split(':').next().unwrap_or(&package);
    Some(format!("{name} {}", version.trim()))
}

/// Returns a file's real path, and that path with the prefix `/usr` removed or added. If `/lib` is
/// a link to `/usr/lib`, dpkg finds a file only by the path in its package.
fn spellings(path: &Path) -> Vec<PathBuf> {
    let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let other = match real.strip_prefix("/usr") {
        Ok(rest) => Path::new("/").join(rest),
        Err(_) => Path::new("/usr").join(real.strip_prefix("/").unwrap_or(&real)),
    };
    vec![real, other]
}

fn dpkg_query(arguments: &[&str]) -> Option<String> {
    let mut command = Command::new("dpkg-query");
    command
        .args(arguments)
        .env("LC_ALL", "C")
        .env_remove("LD_PRELOAD")
        .stderr(Stdio::null());
    let output = command
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok()
}

/// Returns whether a program is in `PATH`.
pub(crate) fn has_program(name: &str) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| {
        let data = std::fs::metadata(folder.join(name));
        data.is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loaders_cache_is_read_for_this_machine_only() {
        let machine = if cfg!(target_arch = "aarch64") {
            "AArch64"
        } else {
            "x86-64"
        };
        let text = format!(
            "2 libs found in cache\n\tliba.so.1 (libc6) => /lib/i386/liba.so.1\n\
             \tliba.so.1 (libc6,{machine}) => /lib/one/liba.so.1\n\
             \tliba.so.1 (libc6,{machine}, OS ABI: Linux 3.2.0) => /lib/two/liba.so.1\n"
        );
        let known = parse_loader_cache(&text);
        assert_eq!(
            known.get("liba.so.1"),
            Some(&PathBuf::from("/lib/one/liba.so.1"))
        );
    }

    #[test]
    fn the_c_library_is_found_and_has_a_version() {
        let path = system_libc().expect("a C library is loaded");
        assert!(path.is_file());
        assert!(libc_version(&Packages::default()).starts_with("glibc 2."));
    }

    #[test]
    fn both_spellings_of_a_merged_folder_are_asked() {
        let paths = spellings(Path::new("/lib/no/such.so"));
        assert_eq!(
            paths,
            [
                Path::new("/lib/no/such.so"),
                Path::new("/usr/lib/no/such.so")
            ]
        );
    }

    #[test]
    fn programs_are_looked_up_in_the_path() {
        assert!(has_program("sh"));
        assert!(!has_program("no-such-program-here"));
    }
}
