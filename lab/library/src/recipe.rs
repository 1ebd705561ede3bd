//! Recipes, which describe how to run the program of each trace. They come from a data file that is
//! compiled in.

use std::sync::LazyLock;

use heapdrome_schema::nearest_or_all;
use serde::{Deserialize, Serialize};

use crate::LibraryError;

const FILE: &str = include_str!("../data/recipes.toml");

/// Names and contents of the files that the scripts of recipes use.
const FILES: [(&str, &str); 3] = [
    ("unit.cpp", include_str!("../data/unit.cpp")),
    ("load.js", include_str!("../data/load.js")),
    ("bank.sql", include_str!("../data/bank.sql")),
];

/// Length of the run that is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Size {
    /// A run of about a second. Its trace ends before any process exceeds [`MOST_OPERATIONS`].
    #[default]
    Small,
    /// A complete run of seconds or minutes.
    Full,
}

/// Maximum number of operations of each process in a small trace. The limit keeps the heapdrome
/// executable small, because it embeds small traces, in which an operation takes about one byte.
pub(crate) const MOST_OPERATIONS: u64 = 200_000;

/// Recipe of a trace, which describes the run that is recorded.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// Name of the trace, by which users select the recipe.
    pub name: String,
    /// Description of the program's allocations, in one line.
    pub summary: String,
    /// The Debian package that contains the program, if the recipe is a script.
    pub(crate) package: Option<String>,
    /// Program with a load that heapdrome prepares, if the recipe is not a script.
    pub(crate) program: Option<OfProgram>,
    /// Shell lines, if the recipe is a script.
    pub(crate) script: Option<Script>,
}

/// A program of `lab/programs`, with the parameters of the small and the full run.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OfProgram {
    /// Name of the program in `lab/programs`.
    pub name: String,
    /// Parameters of the small run, as `name=value`.
    pub small: Vec<String>,
    /// Parameters of the full run, as `name=value`.
    pub full: Vec<String>,
}

/// Recipe as shell lines, which run in a separate folder.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Script {
    /// Command whose first line of output is the version of the program. It fails if the program is
    /// not installed.
    pub version: String,
    /// Names of the entries of [`FILES`] that are written into the script's folder.
    #[serde(default)]
    pub files: Vec<String>,
    /// Whether the program refuses to run as root. If heapdrome runs as root, an unprivileged user
    /// then runs the preparation and the server.
    #[serde(default)]
    pub refuses_root: bool,
    /// Command that prepares the run, and is not recorded.
    pub prepare: Option<String>,
    /// Command of the small run. If there is a server, this is the load of the small run.
    pub small: String,
    /// Command of the full run. If there is a server, this is the load of the full run.
    pub full: String,
    /// The server that is recorded in place of the load.
    pub server: Option<Service>,
}

/// A server of a script.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Service {
    /// Command that becomes the server by `exec`, and stays in the foreground.
    pub serve: String,
    /// Command that succeeds as soon as the server answers.
    pub ready: String,
}

impl OfProgram {
    pub(crate) fn words(&self, size: Size) -> &[String] {
        match size {
            Size::Small => &self.small,
            Size::Full => &self.full,
        }
    }
}

impl Script {
    pub(crate) fn run(&self, size: Size) -> &str {
        match size {
            Size::Small => &self.small,
            Size::Full => &self.full,
        }
    }

    /// Returns the names and contents of the files that are written into the script's folder.
    pub(crate) fn contents(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let wanted = |(name, _): &(&str, &str)| self.files.iter().any(|file| file == name);
        FILES.into_iter().filter(wanted)
    }
}

impl Size {
    /// Returns the size's name in a manifest, such as `small`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Full => "full",
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Recipes {
    recipe: Vec<Recipe>,
}

static RECIPES: LazyLock<Vec<Recipe>> = LazyLock::new(|| {
    let recipes: Recipes = toml::from_str(FILE).expect("the library's own data file is right");
    recipes.recipe
});

/// Returns every recipe.
#[must_use]
pub fn recipes() -> &'static [Recipe] {
    &RECIPES
}

/// Returns the recipe of this name.
///
/// # Errors
/// If no recipe has this name. The error suggests the most similar name, or lists all names.
pub fn find(name: &str) -> Result<&'static Recipe, LibraryError> {
    let found = recipes().iter().find(|recipe| recipe.name == name);
    found.ok_or_else(|| LibraryError::Unknown {
        name: name.to_owned(),
        advice: nearest_or_all(name, recipes().iter().map(|recipe| recipe.name.as_str())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_recipe_is_a_program_or_a_script_whose_files_are_there() {
        assert!(recipes().len() >= 8);
        for recipe in recipes() {
            let name = &recipe.name;
            assert!(
                recipe.program.is_some() != recipe.script.is_some(),
                "{name}"
            );
            assert!(!recipe.summary.contains('\n'), "{name}");
            if let Some(program) = &recipe.program {
                let found = heapdrome_programs::find(&program.name);
                let found = found.unwrap_or_else(|error| panic!("{name}: {error}"));
                for words in [&program.small, &program.full] {
                    assert!(found.settings(words).is_ok(), "{name}: {words:?}");
                }
            }
            if let Some(script) = &recipe.script {
                assert_eq!(script.contents().count(), script.files.len(), "{name}");
                assert!(recipe.package.is_some(), "{name}");
            }
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest() {
        let error = find("sqlit").expect_err("unknown").to_string();
        assert!(error.contains("did you mean sqlite?"), "{error}");
    }
}
