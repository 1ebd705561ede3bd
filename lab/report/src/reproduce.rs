//! The command line that repeats a race or a collection, and its quoting.

use heapdrome_schema::{Collection, RaceResult};

use crate::foreign;

/// Returns the words of the command line that repeats the race of `result` with the same order of
/// runs, quoted for a shell.
pub(crate) fn command_line(result: &RaceResult) -> Vec<String> {
    seeded(&result.asked, result.seed, 1)
}

/// Returns the words of the command line that repeats a collection. If the collection has races,
/// the command line contains a seed: the one that was asked for, or else that of the first race.
pub(crate) fn collection_line(collection: &Collection) -> Vec<String> {
    match collection.races.first() {
        Some(race) => seeded(&collection.asked, race.result.seed, names(collection)),
        None => {
            let asked = collection.asked.iter().map(String::as_str);
            std::iter::once("heapdrome")
                .chain(asked)
                .map(quoted)
                .collect()
        }
    }
}

/// Returns the number of words that name the command of a collection: one, or two for
/// `trace check`.
fn names(collection: &Collection) -> usize {
    1 + usize::from(collection.fidelity().is_some())
}

/// Returns heapdrome's command line with these arguments and this seed, quoted for a shell. If the
/// arguments already contain a seed, keeps that one. The first `names` arguments name the command.
fn seeded(asked: &[String], seed: u64, names: usize) -> Vec<String> {
    let mut words = vec!["heapdrome".to_owned()];
    words.extend(asked.iter().cloned());
    let options = words.iter().take_while(|word| *word != "--");
    let seeded = options
        .into_iter()
        .any(|word| word == "--seed" || word.starts_with("--seed="));
    let place = 1 + names;
    if !seeded && words.len() >= place {
        words.splice(place..place, ["--seed".to_owned(), seed.to_string()]);
    }
    words.iter().map(|word| quoted(word)).collect()
}

/// Quotes a word for a shell. Control characters are written as `$'\x1b'`.
fn quoted(word: &str) -> String {
    if !word.chars().all(foreign::is_printable) {
        let escaped: String = word.chars().map(escape).collect();
        return format!("$'{escaped}'");
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./,:=+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    shlex::try_quote(word).map_or_else(|_| String::from("''"), std::borrow::Cow::into_owned)
}

/// Escapes one character inside `$'...'`.
fn escape(c: char) -> String {
    match c {
        '\'' | '\\' => format!("\\{c}"),
        '\n' => "\\n".to_owned(),
        '\t' => "\\t".to_owned(),
        c if c.is_ascii_control() => format!("\\x{:02x}", u32::from(c)),
        c if !foreign::is_printable(c) => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    }
}

/// Formats a command for display: quoted as in a shell, on one line.
pub(crate) fn for_the_eye(command: &[String]) -> String {
    command
        .iter()
        .map(|word| quoted(word))
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_so_that_a_shell_reads_them_back() {
        let words = ["a b", "it's", "$HOME", "plain"].map(str::to_owned);
        let line = for_the_eye(&words);
        assert_eq!(shlex::split(&line).as_deref(), Some(&words[..]));
    }

    #[test]
    fn a_shell_expands_no_pattern_and_no_home() {
        for word in ["*.c", "a?", "[ab].c", "~/c", "{a,b}", "a=~/c"] {
            assert_eq!(quoted(word), format!("'{word}'"));
        }
    }

    #[test]
    fn a_collection_without_races_is_asked_for_as_it_was() {
        let collection = Collection {
            schema: heapdrome_schema::SCHEMA,
            asked: ["paging", "random", "--quick"].map(str::to_owned).to_vec(),
            ..Collection::default()
        };
        let line = collection_line(&collection);
        assert_eq!(line, ["heapdrome", "paging", "random", "--quick"]);
    }

    #[test]
    fn control_characters_never_reach_the_terminal() {
        assert_eq!(quoted("\u{1b}[31m\n'"), "$'\\x1b[31m\\n\\''");
        assert!(!for_the_eye(&["\u{9b}2J".to_owned()]).contains('\u{9b}'));
    }
}
