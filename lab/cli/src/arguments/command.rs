//! Parses the command of a race, which is one shell line or several words, with or without `--`
//! before it.

use std::path::Path;

use super::RaceArguments;
use crate::failure::Failure;
use crate::program;

impl RaceArguments {
    /// Splits the command into words if it was given as one shell line.
    ///
    /// # Errors
    /// Returns an error if that line has an unclosed quote or needs a shell. If it needs a shell,
    /// the message contains the command line to type.
    pub fn settled(mut self) -> Result<Self, Failure> {
        self.typed = self.command.len();
        let [line] = self.command.as_slice() else {
            return Ok(self);
        };
        let folder = self.runs.directory.as_deref().unwrap_or(Path::new("."));
        let is_line = line.contains(char::is_whitespace) && self.workload.is_none();
        if is_line && program::find(line, folder).is_none() {
            let own = own_words(&words(), self.typed);
            self.command = split(line, &own)?;
        }
        Ok(self)
    }

    /// Returns heapdrome's arguments, with `--` before the command, which is split into words.
    pub fn asked(&self) -> Vec<String> {
        asked(&words(), self.typed, &self.command)
    }
}

/// Returns the arguments of heapdrome, without the program's name.
fn words() -> Vec<String> {
    std::env::args().skip(1).collect()
}

/// Returns the words before a command of `typed` words, without the `--` that may separate them.
fn own_words(words: &[String], typed: usize) -> Vec<String> {
    let own = &words[..words.len().saturating_sub(typed)];
    match own.split_last() {
        Some((last, before)) if last == "--" => before.to_vec(),
        _ => own.to_vec(),
    }
}

fn asked(words: &[String], typed: usize, command: &[String]) -> Vec<String> {
    if typed == 0 {
        return words.to_vec();
    }
    let mut asked = own_words(words, typed);
    asked.push("--".to_owned());
    asked.extend_from_slice(command);
    asked
}

/// Splits a shell line into words. If the line needs a shell, returns an error that shows the
/// command line to type. In that command line, `own` are heapdrome's own arguments.
fn split(line: &str, own: &[String]) -> Result<Vec<String>, Failure> {
    if let Some(found) = shell_syntax(line) {
        let words = ["heapdrome"]
            .into_iter()
            .chain(own.iter().map(String::as_str));
        // An error message is a single line, so `LINES` replaces several lines.
        let shown = if line.contains('\n') { "LINES" } else { line };
        let words = words.chain(["--", "sh", "-c", shown]);
        let typed = shlex::try_join(words).unwrap_or_else(|_| "sh -c LINE".to_owned());
        return Err(Failure::Usage(format!(
            "the command has shell syntax ({found}), but heapdrome starts no shell; write: {typed}"
        )));
    }
    shlex::split(line).ok_or_else(|| {
        Failure::Usage(format!(
            "the command {} has an unclosed quote",
            program::one_line(line)
        ))
    })
}

/// Returns the first syntax in `line` that needs a shell. Inside single quotes and after a
/// backslash, no character needs a shell; inside double quotes, only `$` and the backquote do. A
/// variable assignment before the program also needs a shell, but is returned only if nothing else
/// does.
fn shell_syntax(line: &str) -> Option<String> {
    let mut quote = None;
    let mut at_start = true;
    let mut characters = line.chars().peekable();
    while let Some(c) = characters.next() {
        match (quote, c) {
            (Some('\''), '\'') | (Some('"'), '"') => quote = None,
            (Some('\''), _) => {}
            (_, '\\') => {
                characters.next();
            }
            (_, '$' | '`') => return Some(c.to_string()),
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '&' | '|') if characters.peek() == Some(&c) => return Some(format!("{c}{c}")),
            (None, '\n') => return Some("a second line".to_owned()),
            (None, '|' | '&' | ';' | '<' | '>' | '(' | ')' | '*' | '?' | '[') => {
                return Some(c.to_string());
            }
            (None, '~' | '#') if at_start => return Some(c.to_string()),
            (None, _) => {}
        }
        at_start = c.is_whitespace();
    }
    assignment(line)
}

/// Returns the beginning of a variable assignment that precedes the program, such as `A=` of
/// `A=1 program`.
fn assignment(line: &str) -> Option<String> {
    let word = line.split_whitespace().next()?;
    let (name, _) = word.split_once('=')?;
    let is_name = |c: char| c == '_' || c.is_ascii_alphanumeric();
    (!name.is_empty() && name.chars().all(is_name)).then(|| format!("{name}="))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::arguments::{Action, Arguments};

    fn words_of(line: &str) -> Vec<String> {
        shlex::split(line).expect("words")
    }

    type Words = Vec<String>;

    /// Returns three parts of a command line: the command, the allocators, and heapdrome's
    /// arguments as a result records them.
    fn race(line: &str) -> Result<(Words, Words, Words), String> {
        let words = words_of(line);
        let parsed = Arguments::try_parse_from(["heapdrome".to_owned()].iter().chain(&words));
        let parsed = parsed.map_err(|error| error.to_string())?;
        let Action::Race(arguments) = parsed.action else {
            panic!("{line}");
        };
        let settled = arguments.settled().map_err(|error| error.to_string())?;
        let asked = asked(&words, settled.typed, &settled.command);
        Ok((settled.command, settled.allocators, asked))
    }

    #[test]
    fn every_form_of_a_command_is_read_and_recorded_in_one_way() {
        for line in [
            "race -a system,x -- jq -c '.a | .b' f",
            "race -a system,x jq -c '.a | .b' f",
            "race -a system,x \"jq -c '.a | .b' f\"",
            "race -a system,x -- \"jq -c '.a | .b' f\"",
        ] {
            let (command, allocators, asked) = race(line).expect(line);
            assert_eq!(command, ["jq", "-c", ".a | .b", "f"], "{line}");
            assert_eq!(allocators, ["system", "x"], "{line}");
            let recorded = words_of("race -a system,x -- jq -c '.a | .b' f");
            assert_eq!(asked, recorded, "{line}");
        }
    }

    #[test]
    fn options_after_the_command_are_the_commands_own() {
        let (command, allocators, _) = race("race ls -a --quick").expect("a race");
        assert_eq!(command, ["ls", "-a", "--quick"]);
        assert!(allocators.is_empty());
        let unknown = race("race --no-such-option jq .").expect_err("no option");
        assert!(unknown.contains("--no-such-option"), "{unknown}");
    }

    #[test]
    fn a_command_line_that_needs_a_shell_is_told_how_to_be_typed() {
        for (line, found) in [
            ("a | b", "|"),
            ("a && b", "&&"),
            ("a; b", ";"),
            ("a > f", ">"),
            ("echo $HOME", "$"),
            ("echo \"$(date)\"", "$"),
            ("ls *.c", "*"),
            ("ls [ab].c", "["),
            ("ls ~/c", "~"),
            ("A=1 b c", "A="),
            ("a\nb", "a second line"),
        ] {
            let told = split(line, &words_of("race -a x"))
                .expect_err(line)
                .to_string();
            assert!(told.contains(&format!("shell syntax ({found})")), "{told}");
            let (_, typed) = told.split_once("write: ").expect("what to type");
            assert_eq!(
                words_of(typed),
                [
                    "heapdrome",
                    "race",
                    "-a",
                    "x",
                    "--",
                    "sh",
                    "-c",
                    &line.replace("a\nb", "LINES")
                ]
            );
        }
    }

    #[test]
    fn quoted_signs_need_no_shell() {
        for (line, words) in [
            ("jq '.a | .b' f", vec!["jq", ".a | .b", "f"]),
            ("jq \".a;.b\" f", vec!["jq", ".a;.b", "f"]),
            ("a b\\;c", vec!["a", "b;c"]),
            ("p --x=1 a~", vec!["p", "--x=1", "a~"]),
        ] {
            assert_eq!(split(line, &[]).expect(line), words, "{line}");
        }
        let open = split("jq '.a", &[]).expect_err("an open quote").to_string();
        assert!(open.contains("unclosed quote"), "{open}");
    }

    #[test]
    fn parameters_of_a_workload_are_left_as_they_are() {
        let (command, _, asked) = race("race -w rptest 16-1000 threads=2").expect("a race");
        assert_eq!(command, ["16-1000", "threads=2"]);
        assert_eq!(asked, words_of("race -w rptest -- 16-1000 threads=2"));
        let (command, _, asked) = race("race -w rptest").expect("a race");
        assert!(command.is_empty());
        assert_eq!(asked, words_of("race -w rptest"));
    }
}
