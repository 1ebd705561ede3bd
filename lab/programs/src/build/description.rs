//! Formats the description of a build for ninja and for make.

use std::fmt::Write as _;
use std::path::Path;

use heapdrome_packages::quoted;

use crate::definition::Build;

/// Name of the link to the package in the folder of the build.
pub(crate) const PACKAGE: &str = "package";
/// Name of the folder of the objects in the folder of the build.
pub(crate) const OBJECTS: &str = "objects";
/// Name of the folder of the generated headers in the folder of the build.
pub(crate) const GENERATED: &str = "generated";

const HEADER: &str = "# Written by heapdrome for its workload; rewritten for each race.\n";

/// Sources, flags and tools of a build.
pub(crate) struct Description<'a> {
    pub build: &'a Build,
    pub compiler: &'a Path,
    pub archiver: &'a Path,
    /// Paths of the translation units within the package.
    pub units: &'a [String],
}

impl Description<'_> {
    /// Formats the build as a `build.ninja`.
    pub(crate) fn ninja(&self) -> String {
        let mut text = format!(
            "{HEADER}rule compile\n  command = {} -c $in -o $out\n\
             rule archive\n  command = {} crs $out $in\n",
            self.compilation(),
            escaped(self.archiver),
        );
        for unit in self.units {
            // Writing into a String cannot fail.
            let _ = writeln!(text, "build {}: compile {PACKAGE}/{unit}", object_of(unit));
        }
        let archive = &self.build.archive;
        let _ = writeln!(text, "build {archive}: archive {}", self.objects());
        let _ = writeln!(text, "default {archive}");
        text
    }

    /// Formats the build as a `Makefile`.
    pub(crate) fn makefile(&self) -> String {
        let archive = &self.build.archive;
        let mut text = format!(
            "{HEADER}{archive}: {objects}\n\t{archiver} crs $@ $^\n",
            objects = self.objects(),
            archiver = escaped(self.archiver),
        );
        for unit in self.units {
            let object = object_of(unit);
            let compilation = self.compilation();
            let _ = writeln!(
                text,
                "{object}: {PACKAGE}/{unit}\n\t{compilation} -c $< -o $@"
            );
        }
        let _ = writeln!(
            text,
            ".PHONY: clean\nclean:\n\trm -f {archive} {}",
            self.objects()
        );
        text
    }

    /// Returns the compiler, its flags and the header folders as the beginning of a command.
    fn compilation(&self) -> String {
        let mut words = vec![escaped(self.compiler)];
        words.extend(self.build.flags.iter().cloned());
        words.push(format!("-I{GENERATED}"));
        words.extend(
            self.build
                .include
                .iter()
                .map(|folder| format!("-I{PACKAGE}/{folder}")),
        );
        words.join(" ")
    }

    fn objects(&self) -> String {
        self.units
            .iter()
            .map(|unit| object_of(unit))
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// Returns the object file of a translation unit. The object's name contains the unit's folder, so
/// that units with equal names in different folders get different objects.
fn object_of(unit: &str) -> String {
    let stem = Path::new(unit).with_extension("o");
    format!("{OBJECTS}/{}", stem.to_string_lossy().replace('/', "_"))
}

/// Formats a path as one word of a shell command in a description. Doubles each `$`, because both
/// builders read `$$` as `$`.
fn escaped(path: &Path) -> String {
    quoted(&path.to_string_lossy()).replace('$', "$$")
}
