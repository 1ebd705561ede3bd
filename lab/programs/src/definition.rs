//! Definitions of programs, parsed from data files.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// Registry package, pinned by its checksum.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pin {
    pub name: String,
    /// Full version of the package.
    pub version: String,
    /// SHA-256 of the package in hexadecimal.
    pub sha256: String,
}

/// Program with its load, as its data file describes it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// The name on the command line.
    pub name: String,
    /// Description of the program, in one line.
    pub summary: String,
    /// Kind of program that this one models, and the reason for the choice.
    pub models: String,
    /// The source of the program and of its input.
    pub origin: String,
    /// Meaning of the program's figures.
    pub figures: String,
    /// Questions that the program does not answer.
    pub silence: String,
    /// Parameters of the load.
    #[serde(default)]
    pub parameters: Vec<Parameter>,
    /// The programs that must be installed.
    pub(crate) needs: Vec<Need>,
    /// The sources that are compiled, if the load is a build.
    pub(crate) build: Option<Build>,
}

/// Parameter of a program's load.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// The key in `key=value`.
    pub name: String,
    /// Property of the load that the parameter sets.
    pub meaning: String,
    /// The possible values; empty for a number.
    #[serde(default)]
    pub choices: Vec<String>,
    /// The minimum and maximum of a number.
    pub range: Option<(u64, u64)>,
    /// Default value.
    pub default: String,
    /// Default value in the quick form, if different.
    pub quick: Option<String>,
}

/// Program of the system that a load needs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Need {
    /// Kind of program as messages name it, such as `a C++ compiler`.
    pub what: String,
    /// Names of the program, best first, or its path.
    pub names: Vec<String>,
    /// Debian package that contains the program.
    pub package: String,
    /// Option that makes the program print its version.
    #[serde(default = "version_option")]
    pub version: String,
}

fn version_option() -> String {
    "--version".to_owned()
}

/// C++ library that is compiled file by file and archived.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Build {
    /// The registry package that contains the sources.
    pub package: Pin,
    /// The upstream name of the project.
    pub project: String,
    /// The file name of the static library.
    pub archive: String,
    /// Folders of the package that the compiler searches for headers.
    pub include: Vec<String>,
    /// Contents of the headers that upstream's own build generates, by path.
    #[serde(default)]
    pub generated: BTreeMap<String, String>,
    /// Flags of every compilation.
    pub flags: Vec<String>,
    /// The folder of the package that contains the translation units.
    pub folder: String,
    /// The file extension of the translation units.
    pub extension: String,
    /// Number of all translation units in the folder and its subfolders.
    pub all_units: usize,
    /// Translation units of the default form: paths in the folder without the file extension,
    /// sorted.
    pub units: Vec<String>,
    /// Translation units of the quick form, a part of `units`.
    pub quick_units: Vec<String>,
}

const FILES: [&str; 16] = [
    include_str!("../data/build.toml"),
    include_str!("../data/python.toml"),
    include_str!("../data/sqlite.toml"),
    include_str!("../data/lua.toml"),
    include_str!("../data/perl.toml"),
    include_str!("../data/jq.toml"),
    include_str!("../data/xmllint.toml"),
    include_str!("../data/z3.toml"),
    include_str!("../data/cppcheck.toml"),
    include_str!("../data/graphviz.toml"),
    include_str!("../data/graphicsmagick.toml"),
    include_str!("../data/rustc.toml"),
    include_str!("../data/git.toml"),
    include_str!("../data/redis.toml"),
    include_str!("../data/rocksdb.toml"),
    include_str!("../data/ghostscript.toml"),
];

/// Name of the parameter that every program has.
pub(crate) const QUICK: &str = "quick";

static PROGRAMS: LazyLock<Vec<Program>> = LazyLock::new(all);

/// Returns every program, in the order in which lists show them.
pub fn list() -> &'static [Program] {
    &PROGRAMS
}

/// Parses the data files, which are embedded in the binary, and adds the parameter `quick` to each
/// program. A test checks that the files are valid.
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
        meaning: "the small form, which takes about a second".to_owned(),
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
