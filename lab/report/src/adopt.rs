//! Instructions for permanently running a program under an allocator.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use heapdrome_schema::{EntrantResult, RaceResult, merged_setting};

use crate::foreign;
use crate::reproduce;

/// Facts from which the instructions for adopting an allocator are made.
#[derive(Clone, Debug, Default)]
pub struct Adoption {
    /// Name of the entrant.
    pub allocator: String,
    /// Libraries for `LD_PRELOAD`, in load order; empty if the entrant needs none.
    pub preload: Vec<PathBuf>,
    /// Whether every library is in heapdrome's cache, which may be cleaned at any time.
    pub cached: bool,
    /// Environment variables of the entrant's runs: the allocator's own, and those that the race
    /// sets for the command.
    pub settings: BTreeMap<String, String>,
    /// The Debian package that contains the library, if there is one.
    pub package: Option<String>,
    /// Instructions for using the allocator in a Rust program without preloading, in one or more
    /// lines.
    pub rust: Option<String>,
    /// Instructions for a CMakeLists.txt that links the allocator, in one or more lines.
    pub cmake: Option<String>,
    /// The command of the race; empty if it is unknown.
    pub command: Vec<String>,
}

/// Returns the environment variables that are set for an entrant's runs, except `LD_PRELOAD`: those
/// that the race sets for every entrant, and the entrant's own.
pub fn settings(result: &RaceResult, entrant: &EntrantResult) -> BTreeMap<String, String> {
    let mut settings = result.options.environment.clone();
    for (name, own) in &entrant.settings {
        let merged = merged_setting(name, own, settings.get(name).map(String::as_str));
        settings.insert(name.clone(), merged);
    }
    settings
}

/// Formats the ways to adopt an allocator. Prose is wrapped at `width` characters (at least 40),
/// but lines to copy are not.
pub fn text(adoption: &Adoption, width: usize) -> String {
    let moved = settled(adoption);
    let copies = copies(adoption, &moved);
    let adoption = &moved;
    let name = foreign::line(&adoption.allocator);
    let variables = variables(adoption);
    if variables.is_empty() {
        return format!("the program already runs on {name}: nothing to do\n");
    }
    let mut blocks = Vec::new();
    if !copies.is_empty() {
        let told =
            "First copy the library out of heapdrome's cache, because the cache may be cleaned:";
        blocks.push((told.to_owned(), copies));
    }
    blocks.push((
        format!("To run a program under {name}:"),
        shell(adoption, &variables),
    ));
    blocks.extend(unusable_path(adoption).map(|warning| (warning, Vec::new())));
    blocks.push((
        "A systemd service (systemctl edit NAME):".into(),
        systemd(&variables),
    ));
    blocks.push(("A Dockerfile:".into(), dockerfile(adoption, &variables)));
    let linked = [
        ("A Rust program", &adoption.rust),
        ("A program built by CMake", &adoption.cmake),
    ];
    for (what, lines) in linked {
        if let Some(lines) = lines {
            blocks.push((
                format!("{what}, without preloading:"),
                foreign::lines(lines),
            ));
        }
    }
    let told: Vec<_> = blocks
        .iter()
        .map(|(heading, lines)| block(heading, lines, width))
        .collect();
    told.join("\n")
}

/// Returns a warning if `LD_PRELOAD` would split the path of a library.
fn unusable_path(adoption: &Adoption) -> Option<String> {
    let mut paths = adoption.preload.iter().map(|path| path.to_string_lossy());
    let path = paths.find(|path| path.contains([' ', ':']))?;
    Some(format!(
        "Warning: LD_PRELOAD splits paths at spaces and colons; copy {} to a path without them.",
        foreign::line(&path)
    ))
}

/// Formats a heading, followed by indented lines to copy.
fn block(heading: &str, lines: &[String], width: usize) -> String {
    let heading = textwrap::fill(heading, width.max(40));
    let lines: String = lines.iter().map(|line| format!("\n    {line}")).collect();
    format!("{heading}{lines}\n")
}

/// Returns the adoption with the path of each cached library replaced by the path to which the user
/// should copy it.
fn settled(adoption: &Adoption) -> Adoption {
    let mut moved = adoption.clone();
    if adoption.cached {
        for path in &mut moved.preload {
            if let Some(name) = path.file_name() {
                *path = Path::new("/usr/local/lib").join(name);
            }
        }
    }
    moved
}

/// Returns the commands that copy the cached libraries to their new folder.
fn copies(adoption: &Adoption, moved: &Adoption) -> Vec<String> {
    let pairs = adoption
        .preload
        .iter()
        .zip(&moved.preload)
        .filter(|(from, to)| from != to);
    let words = pairs.map(|(from, to)| {
        let words = [from, to].map(|path| path.to_string_lossy().into_owned());
        format!("sudo cp {}", reproduce::for_the_eye(&words))
    });
    words.collect()
}

/// Returns the environment variables to set: `LD_PRELOAD` if there are libraries, then the
/// settings.
fn variables(adoption: &Adoption) -> Vec<(String, String)> {
    let paths: Vec<_> = adoption
        .preload
        .iter()
        .map(|path| path.to_string_lossy())
        .collect();
    let preload = (!paths.is_empty()).then(|| ("LD_PRELOAD".to_owned(), paths.join(":")));
    let settings = adoption
        .settings
        .iter()
        .map(|(key, value)| (key.clone(), value.clone()));
    preload.into_iter().chain(settings).collect()
}

/// Returns a shell line that sets `variables` for the race's command. If the command is unknown,
/// `./my-program` replaces it.
fn shell(adoption: &Adoption, variables: &[(String, String)]) -> Vec<String> {
    let settings = variables.iter().map(|(key, value)| {
        format!(
            "{key}={}",
            reproduce::for_the_eye(std::slice::from_ref(value))
        )
    });
    let example = ["./my-program".to_owned()];
    let command = if adoption.command.is_empty() {
        &example[..]
    } else {
        &adoption.command[..]
    };
    let settings: Vec<_> = settings.collect();
    vec![format!(
        "{} {}",
        settings.join(" "),
        reproduce::for_the_eye(command)
    )]
}

/// Returns the lines of a systemd drop-in. Each `%` is doubled, because it begins a specifier
/// there.
fn systemd(variables: &[(String, String)]) -> Vec<String> {
    let lines = variables.iter().map(|(key, value)| {
        format!(
            "Environment=\"{key}={}\"",
            double_quoted(value).replace('%', "%%")
        )
    });
    std::iter::once("[Service]".to_owned())
        .chain(lines)
        .collect()
}

/// Returns the lines of a Dockerfile. Each `$` in a value is escaped, because it begins a variable
/// there.
fn dockerfile(adoption: &Adoption, variables: &[(String, String)]) -> Vec<String> {
    let get = match &adoption.package {
        Some(package) => vec![format!(
            "RUN apt-get update && apt-get install -y --no-install-recommends {}",
            foreign::line(package)
        )],
        None => adoption
            .preload
            .iter()
            .flat_map(|path| copied(path))
            .collect(),
    };
    let set = variables
        .iter()
        .map(|(key, value)| format!("ENV {key}=\"{}\"", double_quoted(value).replace('$', "\\$")));
    get.into_iter().chain(set).collect()
}

/// Returns the lines of a Dockerfile that copy a library into the image, with the conditions for
/// it as comments.
fn copied(path: &Path) -> [String; 3] {
    let path = double_quoted(&path.to_string_lossy());
    let file = path.rsplit('/').next().unwrap_or(&path);
    [
        format!("# {file} must be in the build context (the folder of `docker build`);"),
        "# the image's glibc must be at least as new as the one it was built with".to_owned(),
        format!("COPY [\"{file}\", \"{path}\"]"),
    ]
}

/// Formats text for use inside double quotes, on one line.
fn double_quoted(value: &str) -> String {
    foreign::line(value)
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adoption() -> Adoption {
        Adoption {
            allocator: "mimalloc3".to_owned(),
            preload: vec![PathBuf::from("/usr/lib/libmimalloc.so")],
            cached: false,
            settings: BTreeMap::from([("MIMALLOC_PURGE_DELAY".into(), "50% $x \"y\"".into())]),
            package: None,
            rust: Some("add the crate mimalloc".into()),
            cmake: Some(
                "find_package(mimalloc REQUIRED)\ntarget_link_libraries(app mimalloc)".into(),
            ),
            command: vec!["ninja".into(), "-C".into(), "my build".into()],
        }
    }

    const EXPECTED: &str = "\
To run a program under mimalloc3:
    LD_PRELOAD=/usr/lib/libmimalloc.so MIMALLOC_PURGE_DELAY='50% $x \"y\"' ninja -C 'my build'

A systemd service (systemctl edit NAME):
    [Service]
    Environment=\"LD_PRELOAD=/usr/lib/libmimalloc.so\"
    Environment=\"MIMALLOC_PURGE_DELAY=50%% $x \\\"y\\\"\"

A Dockerfile:
    # libmimalloc.so must be in the build context (the folder of `docker build`);
    # the image's glibc must be at least as new as the one it was built with
    COPY [\"libmimalloc.so\", \"/usr/lib/libmimalloc.so\"]
    ENV LD_PRELOAD=\"/usr/lib/libmimalloc.so\"
    ENV MIMALLOC_PURGE_DELAY=\"50% \\$x \\\"y\\\"\"

A Rust program, without preloading:
    add the crate mimalloc

A program built by CMake, without preloading:
    find_package(mimalloc REQUIRED)
    target_link_libraries(app mimalloc)
";

    #[test]
    fn every_way_is_quoted_as_its_reader_expects() {
        assert_eq!(text(&adoption(), 80), EXPECTED);
    }

    #[test]
    fn a_library_in_the_cache_is_copied_first() {
        let preload = vec![PathBuf::from("/cache/libx.so")];
        let told = text(
            &Adoption {
                preload,
                cached: true,
                ..adoption()
            },
            80,
        );
        assert!(
            told.contains("    sudo cp /cache/libx.so /usr/local/lib/libx.so\n"),
            "{told}"
        );
        assert!(
            told.contains("LD_PRELOAD=/usr/local/lib/libx.so "),
            "{told}"
        );
    }

    #[test]
    fn the_systems_own_needs_nothing() {
        let system = Adoption {
            allocator: "system".into(),
            ..Adoption::default()
        };
        assert!(text(&system, 80).contains("nothing to do"));
    }

    #[test]
    fn a_path_that_the_loader_would_split_is_told() {
        let preload = vec![PathBuf::from("/my libs/a.so")];
        assert!(
            text(
                &Adoption {
                    preload,
                    ..adoption()
                },
                80
            )
            .contains("Warning: LD_PRELOAD")
        );
    }

    #[test]
    fn a_debian_package_is_installed_and_not_copied() {
        let with_package = Adoption {
            package: Some("libmimalloc2.0".into()),
            ..adoption()
        };
        let told = text(&with_package, 80);
        assert!(told.contains("apt-get install -y --no-install-recommends libmimalloc2.0"));
        assert!(!told.contains("COPY"));
    }
}
