//! Programs as data files.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// A registry package, pinned so that nothing else can come in its place.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pin {
    /// The package's name.
    pub name: String,
    /// Its full version.
    pub version: String,
    /// SHA-256 of the package in hexadecimal.
    pub sha256: String,
}

/// One program with its load, as its data file tells it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// The name by which it is asked for.
    pub name: String,
    /// What it does, in one line.
    pub summary: String,
    /// What it stands for, and why it was chosen.
    pub models: String,
    /// Where program and input come from.
    pub origin: String,
    /// What its figures mean.
    pub figures: String,
    /// What it does not say.
    pub silence: String,
    /// How it can be changed.
    #[serde(default)]
    pub parameters: Vec<Parameter>,
    /// What must be installed.
    pub(crate) needs: Vec<Need>,
    /// The sources that are compiled, if that is its load.
    pub(crate) build: Option<Build>,
}

/// One way to change a program's load.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// The key in `key=value`.
    pub name: String,
    /// What it changes.
    pub meaning: String,
    /// The values that it can have; empty for a number.
    #[serde(default)]
    pub choices: Vec<String>,
    /// The least and the greatest number that it can be, where it is one.
    pub range: Option<(u64, u64)>,
    /// Its value when nothing is said.
    pub default: String,
    /// Its value in the quick form, where that is another.
    pub quick: Option<String>,
}

/// A program of the system that is needed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Need {
    /// What kind of program, with its article.
    pub what: String,
    /// The names that it goes by, best first, or its path.
    pub names: Vec<String>,
    /// The Debian package that brings it.
    pub package: String,
    /// The option that makes it print its version.
    #[serde(default = "version_option")]
    pub version: String,
}

fn version_option() -> String {
    "--version".to_owned()
}

/// A C++ library that is compiled file by file and archived.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Build {
    /// The registry package that carries the sources.
    pub package: Pin,
    /// What is built, as upstream names it.
    pub project: String,
    /// The file name of the static library.
    pub archive: String,
    /// Folders of the package that the compiler searches for headers.
    pub include: Vec<String>,
    /// Headers that upstream's own build would make, by their paths.
    #[serde(default)]
    pub generated: BTreeMap<String, String>,
    /// Flags of every compilation.
    pub flags: Vec<String>,
    /// The folder of the package in which the translation units are.
    pub folder: String,
    /// What their names end with.
    pub extension: String,
    /// How many there are in the folder.
    pub all_units: usize,
    /// The translation units, by their paths in the folder.
    pub units: Vec<String>,
    /// Those of the small form.
    pub quick_units: Vec<String>,
}

const FILES: [&str; 9] = [
    include_str!("../data/build.toml"),
    include_str!("../data/python.toml"),
    include_str!("../data/sqlite.toml"),
    include_str!("../data/lua.toml"),
    include_str!("../data/z3.toml"),
    include_str!("../data/git.toml"),
    include_str!("../data/redis.toml"),
    include_str!("../data/rocksdb.toml"),
    include_str!("../data/ghostscript.toml"),
];

/// The parameter that every program has.
pub(crate) const QUICK: &str = "quick";

static PROGRAMS: LazyLock<Vec<Program>> = LazyLock::new(all);

/// Every program, in the order in which a reader should meet them.
pub fn list() -> &'static [Program] {
    &PROGRAMS
}

/// Reads the data files, which are part of the program: a test holds them to be right.
fn all() -> Vec<Program> {
    let read = |text: &&str| {
        let mut program: Program =
            toml::from_str(text).expect("the program's own data files are right");
        program.parameters.insert(0, quick());
        program
    };
    FILES.iter().map(read).collect()
}

fn quick() -> Parameter {
    Parameter {
        name: QUICK.to_owned(),
        meaning: "the small form, which is done in about a second".to_owned(),
        choices: vec!["no".to_owned(), "yes".to_owned()],
        range: None,
        default: "no".to_owned(),
        quick: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_files_are_whole() {
        for program in list() {
            let name = &program.name;
            assert!(!program.summary.contains('\n'), "{name}");
            for text in [
                &program.models,
                &program.origin,
                &program.figures,
                &program.silence,
            ] {
                assert!(text.len() > 20, "{name} is described");
            }
            assert!(!program.needs.is_empty(), "{name}");
            for parameter in &program.parameters {
                assert!(
                    parameter.choices.is_empty() == parameter.range.is_some(),
                    "{name}: {} is a choice or a number",
                    parameter.name
                );
            }
        }
    }

    #[test]
    fn the_units_of_a_build_are_whole() {
        for program in list() {
            let Some(build) = &program.build else {
                continue;
            };
            assert_eq!(build.package.sha256.len(), 64, "{}", program.name);
            assert!(build.units.len() >= 100, "{}", program.name);
            assert!(
                build.units.is_sorted_by(|one, next| one < next),
                "each unit once"
            );
            assert!(
                (5..20).contains(&build.quick_units.len()),
                "{}",
                program.name
            );
            for unit in &build.quick_units {
                assert!(build.units.contains(unit), "{unit} is part of the whole");
            }
            let units = program.parameters.iter().find(|it| it.name == "units");
            let counts = [build.quick_units.len(), build.units.len(), build.all_units];
            let units = units.expect("a build has units");
            assert_eq!(units.choices, counts.map(|count| count.to_string()));
        }
    }

    #[test]
    fn every_program_is_a_build_or_has_a_load() {
        for program in list() {
            let load = crate::loads::find(&program.name);
            assert!(
                program.build.is_some() != load.is_some(),
                "{}",
                program.name
            );
        }
    }

    #[test]
    fn every_default_is_a_value_that_can_be_asked_for() {
        for program in list() {
            for parameter in &program.parameters {
                for value in [Some(&parameter.default), parameter.quick.as_ref()] {
                    let word = value.map(|value| format!("{}={value}", parameter.name));
                    let read = program.settings(word.as_slice());
                    assert!(read.is_ok(), "{}: {word:?}", program.name);
                }
            }
        }
    }

    #[test]
    fn an_unknown_field_is_refused() {
        let text = FILES[0].replace("[build]", "[build]\nspeed = 3");
        assert!(toml::from_str::<Program>(&text).is_err());
    }
}
