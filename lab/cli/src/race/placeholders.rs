//! Words in braces that no sweep fills. They are passed on as they stand, since braces are legal in a command, but
//! whoever wrote `{items}` probably meant to sweep it.

use std::path::Path;

use crate::arguments::RaceArguments;
use crate::output;
use crate::values::nearest;
use crate::workload::THREADS;

/// Programs that have such words in texts of their own, or fill them themselves.
const WITH_BRACES: [&str; 8] = [
    "awk", "gawk", "mawk", "nawk", "jq", "xargs", "parallel", "fd",
];

/// Programs whose arguments are lines of words.
const SHELLS: [&str; 5] = ["sh", "bash", "dash", "ksh", "zsh"];

/// Tells of placeholders that get no value.
pub fn hint(arguments: &RaceArguments) {
    if arguments.workload.is_some() {
        return;
    }
    let mut filled: Vec<&str> = arguments
        .sweeps
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    if !arguments.threads.is_empty() {
        filled.push(THREADS);
    }
    for name in unfilled(&arguments.command, &filled) {
        let advice = match filled.as_slice() {
            [] => format!("for values of its own, add --sweep {name}=1,2"),
            filled => nearest(&name, filled.iter().copied()),
        };
        output::tell(format_args!(
            "the command gets {{{name}}} as it stands, because nothing of that name is swept; {advice}"
        ));
    }
}

/// The names in braces of a command that are not among `filled`, each once.
fn unfilled(command: &[String], filled: &[&str]) -> Vec<String> {
    let words = words(command);
    let own = |word: &String| WITH_BRACES.contains(&file_name(word));
    if words.iter().any(own) {
        return Vec::new();
    }
    let mut names = Vec::new();
    for name in words.iter().flat_map(|word| in_braces(word)) {
        if !filled.contains(&name) && !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// The words of a command, with those of the lines that a shell runs.
fn words(command: &[String]) -> Vec<String> {
    let of_a_shell = command
        .first()
        .is_some_and(|program| SHELLS.contains(&file_name(program)));
    match of_a_shell {
        true => command
            .iter()
            .flat_map(|line| shlex::split(line).unwrap_or_default())
            .collect(),
        false => command.to_vec(),
    }
}

fn file_name(word: &str) -> &str {
    let name = Path::new(word).file_name().and_then(|name| name.to_str());
    name.unwrap_or_default()
}

/// The names in braces of a word, where the word is no text of another language: of letters, digits and what paths and
/// options are made of.
fn in_braces(word: &str) -> Vec<&str> {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,+%{}".contains(c);
    if !word.chars().all(plain) {
        return Vec::new();
    }
    let closed = word
        .split('{')
        .skip(1)
        .filter_map(|rest| rest.split_once('}'));
    closed
        .map(|(name, _)| name)
        .filter(|name| is_name(name))
        .collect()
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(line: &str, filled: &[&str]) -> Vec<String> {
        let command = shlex::split(line).expect("words");
        unfilled(&command, filled)
    }

    #[test]
    fn a_placeholder_that_nothing_fills_is_found() {
        assert_eq!(told("./parse --items {items}", &[]), ["items"]);
        assert_eq!(told("make -j{jobs} O={opt} {opt}", &["jobs"]), ["opt"]);
        assert_eq!(told("./a data-{size}/in.txt", &["jobs"]), ["size"]);
        assert_eq!(told("sh -c './parse {items} | wc -l'", &[]), ["items"]);
        assert_eq!(told("make -j{jobs}", &["jobs"]), [""; 0]);
    }

    #[test]
    fn braces_of_other_languages_are_left_alone() {
        for line in [
            r#"curl -d '{"items": 3}' localhost"#,
            "curl -d '{items: 3}' localhost",
            "awk '{print}' file",
            "sh -c 'awk {print} file'",
            "jq '{name}' file",
            "/usr/bin/xargs -I{x} echo {x}",
            "find . -exec cat {} +",
            "git log 'HEAD@{upstream}'",
            "sh -c 'echo ${HOME}'",
            "bash -c 'f() { true; }; f'",
            "cp file.{c,h} dir",
            "bash -c 'echo {1..3} {a..c}'",
            "grep -E 'a{3}' file",
            r#"python3 -c 'print(f"{items}")'"#,
            "python3 -c 'x = {items}'",
        ] {
            assert_eq!(told(line, &[]), [""; 0], "{line}");
        }
    }
}
