//! Warns about names in braces that no sweep replaces. Such a name stays in the command, because
//! braces are legal there. Nevertheless, a user who writes `{items}` probably intends a sweep.

use std::path::Path;

use heapdrome_engine::workload::THREADS;
use heapdrome_schema::nearest_or_all;

use crate::arguments::RaceArguments;
use crate::output;

/// Programs that use words in braces for their own purposes.
const WITH_BRACES: [&str; 8] = [
    "awk", "gawk", "mawk", "nawk", "jq", "xargs", "parallel", "fd",
];

/// Shells, whose arguments may be command lines.
const SHELLS: [&str; 5] = ["sh", "bash", "dash", "ksh", "zsh"];

/// Prints hints about placeholders without a value.
pub fn hint(arguments: &RaceArguments) {
    for line in told(arguments) {
        output::tell(line);
    }
}

/// Returns a line for each name in braces that stays unchanged.
fn told(arguments: &RaceArguments) -> Vec<String> {
    let filled = filled(arguments);
    let mut found: Vec<(String, Vec<&str>)> = Vec::new();
    for (place, words) in places(arguments) {
        for name in unfilled(&words, &filled) {
            match found.iter_mut().find(|(known, _)| *known == name) {
                Some((_, places)) => places.push(place),
                None => found.push((name, vec![place])),
            }
        }
    }
    let line = |(name, places): (String, Vec<&str>)| {
        let get = if places.len() == 1 { "gets" } else { "get" };
        let places = places.join(" and ");
        let why = match filled.as_slice() {
            _ if arguments.workload.is_some() => "a race with -w fills no braces".to_owned(),
            [] => format!("no sweep has that name; to sweep it, add --sweep {name}=1,2"),
            filled => {
                let advice = nearest_or_all(&name, filled.iter().copied());
                format!("no sweep has that name; {advice}")
            }
        };
        format!("{places} {get} {{{name}}} unchanged, because {why}")
    };
    found.into_iter().map(line).collect()
}

/// Returns the placeholders that get values. A workload has parameters instead of placeholders.
fn filled(arguments: &RaceArguments) -> Vec<&str> {
    if arguments.workload.is_some() {
        return Vec::new();
    }
    let swept = arguments.sweeps.iter().map(|one| one.name.as_str());
    let threads = (!arguments.threads.is_empty()).then_some(THREADS);
    swept.chain(threads).collect()
}

/// Splits the raced command, and each command line in an option such as `--prepare`, into words.
/// Returns each with the name that messages use for it. Omits a command line with an unclosed
/// quote.
fn places(arguments: &RaceArguments) -> Vec<(&'static str, Vec<String>)> {
    let runs = &arguments.runs;
    let around = [
        ("--setup", &runs.setup),
        ("--prepare", &runs.prepare),
        ("--cleanup", &runs.cleanup),
        ("--check", &runs.check),
        ("--serve", &arguments.serve),
        ("--ready", &arguments.ready),
    ];
    let around = around.into_iter().filter_map(|(option, line)| {
        let line = shlex::split(line.as_deref()?)?;
        Some((option, words(&line)))
    });
    let is_command = arguments.workload.is_none();
    let command = is_command.then(|| ("the command", words(&arguments.command)));
    command.into_iter().chain(around).collect()
}

/// Returns each name that is in braces in `words` and not in `filled`, once. Returns no names if
/// one of the words is a program that uses braces itself.
fn unfilled(words: &[String], filled: &[&str]) -> Vec<String> {
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

/// Returns the words of a command. If its program is a shell, splits each argument into words,
/// because the argument may be a command line.
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

/// Returns the names in braces of a word that consists only of letters, digits and the characters
/// of paths and options. Any other word is regarded as code in another language, without
/// placeholders.
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
    use clap::Parser;

    use super::*;
    use crate::arguments::{Action, Arguments};

    fn found(line: &str, filled: &[&str]) -> Vec<String> {
        let command = shlex::split(line).expect("words");
        unfilled(&words(&command), filled)
    }

    #[test]
    fn a_placeholder_that_nothing_fills_is_found() {
        assert_eq!(found("./parse --items {items}", &[]), ["items"]);
        assert_eq!(found("make -j{jobs} O={opt} {opt}", &["jobs"]), ["opt"]);
        assert_eq!(found("./a data-{size}/in.txt", &["jobs"]), ["size"]);
        assert_eq!(found("sh -c './parse {items} | wc -l'", &[]), ["items"]);
        assert_eq!(found("make -j{jobs}", &["jobs"]), [""; 0]);
    }

    #[test]
    fn every_command_of_a_race_is_looked_at() {
        let lines = |line: &str| {
            let words = shlex::split(line).expect("words");
            let read = Arguments::try_parse_from(words).expect("a command line");
            let Action::Race(arguments) = read.action else {
                panic!("a race: {line}");
            };
            told(&arguments)
        };
        for option in ["setup", "prepare", "cleanup", "check"] {
            let line = format!("heapdrome race --sweep n=1,2 --{option} 'test {{m}}' -- ./a {{n}}");
            let lines = lines(&line);
            assert_eq!(lines.len(), 1, "{lines:?}");
            let expected = format!("--{option} gets {{m}} unchanged");
            assert!(lines[0].starts_with(&expected), "{lines:?}");
        }
        let shell = lines(r#"heapdrome race --prepare 'sh -c "rm -f {m}"' -- ./a"#);
        assert_eq!(shell.len(), 1, "{shell:?}");
        let server = lines("heapdrome race --serve './s {a}' --ready './r {b}' -- ./a {a}");
        assert_eq!(server.len(), 2, "{server:?}");
        assert!(server[0].starts_with("the command and --serve get {a}"));
        assert!(server[1].starts_with("--ready gets {b}") && server[1].ends_with("--sweep b=1,2"));
        let workload = lines("heapdrome race -w rptest -t 1,2 --check 'test {threads}'");
        let expected = "--check gets {threads} unchanged, because a race with -w fills no braces";
        assert_eq!(workload, [expected]);
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
            assert_eq!(found(line, &[]), [""; 0], "{line}");
        }
    }
}
