//! Built-in workloads: lookup by name, checks, and conversion to commands.

mod catalog;
pub mod companion;
mod ready;
pub mod trace;

use heapdrome_programs::{Availability, Program, Settings};
use heapdrome_workloads::{Description, Parameters, Refusal};

use crate::failure::Failure;
use companion::Companion;
use heapdrome_schema::nearest_or_all;

pub use ready::Ready;

/// The parameter whose values `-t` sweeps.
pub const THREADS: &str = "threads";

/// A workload, by the kind of program that runs it.
#[derive(Clone, Copy)]
pub enum Workload {
    /// A built-in load, and the companion that runs it.
    Own(&'static Description, Companion),
    /// A program of the system, and a load that heapdrome prepares.
    Program(&'static Program),
}

impl Workload {
    /// Returns every workload except the replay of a trace, in display order.
    pub fn all() -> Vec<Self> {
        let synthetic = heapdrome_workloads::list().iter();
        let programs = heapdrome_programs::list().iter();
        synthetic
            .map(|one| Self::Own(one, Companion::Runner))
            .chain([Self::Own(
                &heapdrome_catalog_load::DESCRIPTION,
                Companion::Catalog,
            )])
            .chain(programs.map(Self::Program))
            .collect()
    }

    /// Returns the workload of this name.
    ///
    /// # Errors
    /// When there is no such workload; the message suggests the most similar name.
    pub fn find(name: &str) -> Result<Self, Failure> {
        let all = Self::all();
        if let Some(found) = all.iter().find(|workload| workload.name() == name) {
            return Ok(*found);
        }
        let names: Vec<_> = all.iter().map(Self::name).collect();
        let advice = nearest_or_all(name, names);
        Err(Failure::Usage(format!(
            "no such workload: {name} ({advice})"
        )))
    }

    /// Returns whether the workload's program is installed. Returns true for every built-in load,
    /// without checking its companion.
    pub fn is_installed(&self) -> bool {
        match self {
            Self::Program(program) => matches!(program.availability(), Availability::Available),
            Self::Own(..) => true,
        }
    }

    /// Returns the name under which the workload races.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Own(description, _) => description.name,
            Self::Program(program) => &program.name,
        }
    }
}

/// A workload with checked parameters.
pub struct Asked {
    what: What,
    quick: bool,
}

enum What {
    Own(Parameters, Companion),
    Program(&'static Program, Settings),
    Trace(trace::Replay),
}

/// Word that selects a workload's small form.
const QUICK: &str = "--quick";

impl Asked {
    /// Returns whether a race of the workload locks an entry of the cache.
    pub fn keeps_something(&self) -> bool {
        !matches!(self.what, What::Own(_, Companion::Runner))
    }

    /// Parses the parameters of the workload of this name. Builds and writes nothing.
    ///
    /// # Errors
    /// When the workload is unknown, or a parameter is invalid.
    pub fn parse(name: &str, words: &[String], quick: bool) -> Result<Self, Failure> {
        if name == trace::NAME {
            return trace::Replay::parse(words).map(Self::from);
        }
        let what = match Workload::find(name)? {
            Workload::Own(description, companion) => {
                let words = with_preset(description, words, quick);
                let parameters = that_fit(Parameters::parse(description, &words))?;
                What::Own(parameters, companion)
            }
            Workload::Program(program) => {
                let mut settings = program.settings(words).map_err(Failure::usage)?;
                if quick {
                    settings
                        .entry("quick".to_owned())
                        .or_insert("yes".to_owned());
                }
                What::Program(program, settings)
            }
        };
        Ok(Self { what, quick })
    }

    /// Parses the output of [`Asked::line`].
    ///
    /// # Errors
    /// When this version of heapdrome does not know a word.
    pub fn from_line(line: &str) -> Result<Self, Failure> {
        let wrong = || Failure::Usage(format!("the workload '{line}' cannot be read"));
        let words = shlex::split(line).ok_or_else(wrong)?;
        let (name, words) = words.split_first().ok_or_else(wrong)?;
        let quick = words.first().is_some_and(|word| word == QUICK);
        Self::parse(name, &words[usize::from(quick)..], quick)
    }

    /// Returns the name and the parameters, quoted for a shell, for [`Asked::from_line`].
    pub fn line(&self) -> String {
        let mut words = vec![self.name().to_owned()];
        if self.quick && matches!(self.what, What::Program(..)) {
            words.push(QUICK.to_owned());
        }
        words.extend(self.words());
        let words: Vec<_> = words.iter().map(|word| quoted(word)).collect();
        words.join(" ")
    }

    /// Returns the name of the workload.
    pub fn name(&self) -> &'static str {
        match &self.what {
            What::Own(parameters, _) => parameters.description().name,
            What::Program(program, _) => &program.name,
            What::Trace(_) => trace::NAME,
        }
    }

    /// Returns the parameters as `name=value` words: all parameters of a built-in load or a replay,
    /// but only the explicitly set ones of a program.
    pub fn words(&self) -> Vec<String> {
        match &self.what {
            What::Own(parameters, _) => parameters.words(),
            What::Trace(replay) => replay.words(),
            What::Program(_, settings) => settings
                .iter()
                .filter(|(name, _)| *name != "quick" || !self.quick)
                .map(|(name, value)| format!("{name}={value}"))
                .collect(),
        }
    }

    /// Returns the workload with another number of threads.
    ///
    /// # Errors
    /// When the workload has no such parameter, or cannot run with this number.
    pub fn with_threads(&self, threads: u64) -> Result<Self, Failure> {
        let what = match &self.what {
            What::Own(parameters, companion) if parameters.get(THREADS).is_some() => {
                let parameters = that_fit(parameters.clone().with(THREADS, threads))?;
                What::Own(parameters, *companion)
            }
            _ => {
                return Err(Failure::Usage(format!(
                    "-t: {} has no parameter '{THREADS}'",
                    self.name()
                )));
            }
        };
        Ok(Self { what, ..*self })
    }
}

impl From<trace::Replay> for Asked {
    fn from(replay: trace::Replay) -> Self {
        Self {
            what: What::Trace(replay),
            quick: false,
        }
    }
}

/// Returns valid parameters after checking that enough memory is available for them.
fn that_fit(parameters: Result<Parameters, Refusal>) -> Result<Parameters, Failure> {
    let parameters = parameters.map_err(Failure::usage)?;
    heapdrome_workloads::fits(&parameters).map_err(Failure::usage)?;
    Ok(parameters)
}

/// Quotes a word for a shell. A word of letters, digits and `_-./=` stays unchanged.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./=".contains(c);
    match shlex::try_quote(word) {
        Ok(quoted) if !word.chars().all(is_plain) => quoted.into_owned(),
        // A plain word needs no quotes. `try_quote` fails only for a word with a NUL, which cannot
        // come from a command line.
        _ => word.to_owned(),
    }
}

/// Returns the words, converted to the workload's small form if `quick`. A named preset becomes its
/// quick form, if it has one. Without a named preset, the first quick preset, if any, is added.
fn with_preset(description: &Description, words: &[String], quick: bool) -> Vec<String> {
    let known = |name: &str| description.presets.iter().find(|one| one.name == name);
    let (named, rest) = match words.split_first() {
        Some((first, rest)) if known(first).is_some() => (Some(first), rest),
        _ => (None, words),
    };
    let small = match named {
        _ if !quick => None,
        Some(name) => known(&format!("quick-{name}")),
        None => {
            let mut presets = description.presets.iter();
            presets.find(|one| one.name.starts_with("quick"))
        }
    };
    let preset = small.map(|one| one.name.to_owned()).or(named.cloned());
    preset.into_iter().chain(rest.iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, words: &[&str], quick: bool) -> String {
        let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
        let asked = Asked::parse(name, &words, quick).unwrap_or_else(|error| panic!("{error}"));
        asked.line()
    }

    #[test]
    fn a_line_is_read_back_as_it_was_written() {
        for workload in Workload::all() {
            for quick in [false, true] {
                let written = line(workload.name(), &[], quick);
                let read = Asked::from_line(&written).unwrap_or_else(|error| panic!("{error}"));
                assert_eq!(read.line(), written);
            }
        }
        assert!(line("build", &["units=10"], true).starts_with("build --quick"));
    }

    #[test]
    fn the_quick_form_is_a_preset_of_its_own() {
        let short = line("rptest", &["16-8000", "threads=2"], true);
        let whole = line("rptest", &["16-8000", "threads=2"], false);
        assert_eq!(
            short,
            line("rptest", &["quick-16-8000", "threads=2"], false)
        );
        assert_ne!(short, whole);
        assert_ne!(line("rptest", &[], true), line("rptest", &[], false));
    }

    #[test]
    fn only_what_has_threads_is_swept() {
        let asked = Asked::parse("rptest", &[], true).unwrap_or_else(|error| panic!("{error}"));
        let two = asked
            .with_threads(2)
            .unwrap_or_else(|error| panic!("{error}"));
        assert!(two.line().contains("threads=2"), "{}", two.line());
        assert!(asked.with_threads(1 << 40).is_err());
        let build = Asked::parse("build", &[], true).unwrap_or_else(|error| panic!("{error}"));
        assert!(build.with_threads(2).is_err());
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest() {
        let error = Workload::find("rptets")
            .err()
            .map(|error| error.to_string());
        let error = error.expect("unknown");
        assert!(error.contains("did you mean rptest?"), "{error}");
    }
}
