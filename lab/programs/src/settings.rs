//! Parameters from a command line, checked against those of a program.

use std::collections::BTreeMap;

use crate::definition::{Parameter, QUICK};
use crate::{Program, ProgramError};

/// Values of the parameters that the user set, by name.
pub type Settings = BTreeMap<String, String>;

/// Every parameter of a program with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Values<'a> {
    values: Vec<(&'a str, String)>,
}

impl Program {
    /// Parses words of the form `key=value`.
    ///
    /// # Errors
    /// Returns an error if a word has another form, if the program has no such parameter, if the
    /// value is invalid, or if a parameter is given twice.
    pub fn settings<W: AsRef<str>>(&self, words: &[W]) -> Result<Settings, ProgramError> {
        let mut settings = Settings::new();
        for word in words {
            let word = word.as_ref();
            let (key, value) = word
                .split_once('=')
                .ok_or_else(|| ProgramError::NotASetting {
                    word: word.to_owned(),
                    program: self.name.clone(),
                    known: self.known(),
                })?;
            self.check(key, value)?;
            if settings.insert(key.to_owned(), value.to_owned()).is_some() {
                return Err(ProgramError::SettingTwice {
                    setting: key.to_owned(),
                });
            }
        }
        Ok(settings)
    }

    /// Returns every parameter with its value: the one from `settings`, or the default of the quick
    /// or the full form.
    pub(crate) fn values(&self, settings: &Settings) -> Result<Values<'_>, ProgramError> {
        for (key, value) in settings {
            self.check(key, value)?;
        }
        let is_quick = settings.get(QUICK).is_some_and(|value| value == "yes");
        let value = |parameter: &Parameter| {
            let quick = parameter.quick.as_ref().filter(|_| is_quick);
            let set = settings.get(&parameter.name);
            set.or(quick).unwrap_or(&parameter.default).clone()
        };
        let all = self.parameters.iter();
        Ok(Values {
            values: all.map(|it| (it.name.as_str(), value(it))).collect(),
        })
    }

    fn check(&self, key: &str, value: &str) -> Result<(), ProgramError> {
        let known = self.parameters.iter().find(|it| it.name == key);
        let parameter = known.ok_or_else(|| ProgramError::UnknownSetting {
            program: self.name.clone(),
            setting: key.to_owned(),
            known: self.known(),
        })?;
        let bad = |possible: String| ProgramError::BadValue {
            setting: key.to_owned(),
            value: value.to_owned(),
            possible,
        };
        let Some((least, most)) = parameter.range else {
            let fits = parameter.choices.iter().any(|choice| choice == value);
            return fits
                .then_some(())
                .ok_or_else(|| bad(parameter.choices.join(", ")));
        };
        // Rust parses `+5` as 5, but the text `+5` would yield a different folder name.
        let digits = value.bytes().all(|byte| byte.is_ascii_digit());
        let number = value.parse::<u64>().ok().filter(|_| digits);
        match number {
            Some(number) if (least..=most).contains(&number) => Ok(()),
            _ => Err(bad(format!("a whole number from {least} to {most}"))),
        }
    }

    fn known(&self) -> String {
        let names: Vec<_> = self.parameters.iter().map(|it| it.name.as_str()).collect();
        names.join(", ")
    }
}

impl Values<'_> {
    /// Returns the value of a parameter, or an empty string if the program has no such parameter.
    pub(crate) fn word(&self, name: &str) -> &str {
        let found = self.values.iter().find(|(key, _)| *key == name);
        found.map_or("", |(_, value)| value)
    }

    /// Returns the value of a numeric parameter, or 0 for any other.
    pub(crate) fn number(&self, name: &str) -> u64 {
        self.word(name).parse().unwrap_or(0)
    }

    /// Formats all parameters as `key=value` words, except `quick`, which only selects other
    /// defaults.
    pub(crate) fn in_words(&self) -> String {
        let shown = self.values.iter().filter(|(key, _)| *key != QUICK);
        let words: Vec<_> = shown.map(|(key, value)| format!("{key}={value}")).collect();
        words.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find;

    fn read(words: &[&str]) -> Result<Settings, String> {
        let program = find("build").expect("the program is there");
        program.settings(words).map_err(|error| error.to_string())
    }

    #[test]
    fn words_become_settings() {
        let settings = read(&["compiler=clang", "quick=yes"]).expect("right");
        assert_eq!(settings["compiler"], "clang");
        let program = find("build").expect("the program is there");
        let values = program.values(&settings).expect("right");
        assert_eq!(values.in_words(), "compiler=clang units=10");
        let whole = program.values(&Settings::new()).expect("right");
        assert_eq!(whole.number("units"), 104);
        let both = program.values(&read(&["units=104", "quick=yes"]).expect("right"));
        assert_eq!(
            both.expect("right").number("units"),
            104,
            "an explicit value takes precedence"
        );
    }

    #[test]
    fn a_wrong_word_names_the_right_ones() {
        let wrong = |word: &str| read(&[word]).expect_err("wrong");
        assert_eq!(
            wrong("compiler=tcc"),
            "the parameter compiler cannot be tcc; it can be: any, gcc, clang"
        );
        assert_eq!(
            wrong("jobs=3"),
            "build has no parameter jobs; it has: quick, compiler, units"
        );
        assert_eq!(
            wrong("--quick"),
            "build cannot parse --quick: write KEY=VALUE with one of the keys quick, \
             compiler, units"
        );
        let twice = read(&["units=10", "units=104"]).expect_err("twice");
        assert_eq!(twice, "the parameter units is given twice");
    }
}
