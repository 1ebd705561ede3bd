//! The whole command line as one page of Markdown, which the book contains as `docs/options.md`.

use std::fmt::Write;

use clap::{Arg, Command};

/// Text at the head of the page.
const HEAD: &str = "\
# Every option

For readers who look up an option. `heapdrome COMMAND --help` prints the same texts, and
[Commands](commands.md) introduces each command by examples. `heapdrome man --markdown` prints
this page.
";

/// Heading for options without a heading of their own.
const UNNAMED: &str = "Options";

/// Returns the page of these commands, each with its full name.
pub fn page(commands: &[&Command]) -> String {
    let mut page = HEAD.to_owned();
    for command in commands {
        section(command, &mut page);
    }
    page
}

/// Appends the section of one command.
fn section(command: &Command, page: &mut String) {
    let title = command.get_bin_name().unwrap_or(command.get_name());
    let about = command.get_long_about().or(command.get_about());
    let about = about.map(ToString::to_string).unwrap_or_default();
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    // Writing to a string cannot fail.
    let _ = write!(page, "\n## {title}\n\n{}\n\n    {usage}\n", escaped(&about));
    for (heading, rows) in tables(command) {
        let _ = write!(page, "\n| {heading} | meaning |\n|---|---|\n{rows}");
    }
    let after = command.get_after_long_help().or(command.get_after_help());
    if let Some(after) = after {
        let _ = write!(page, "\n```text\n{after}\n```\n");
    }
}

/// Returns the headings of a command's arguments, each with the rows of its table. The headings
/// have the order of their first arguments.
fn tables(command: &Command) -> Vec<(&str, String)> {
    let mut tables: Vec<(&str, String)> = Vec::new();
    let shown = |arg: &&Arg| !arg.is_hide_set() && !matches!(arg.get_id().as_str(), "help");
    for arg in command.get_arguments().filter(shown) {
        let unnamed = if arg.is_positional() {
            "Arguments"
        } else {
            UNNAMED
        };
        let heading = arg.get_help_heading().unwrap_or(unnamed);
        let row = row(arg);
        match tables.iter_mut().find(|(known, _)| *known == heading) {
            Some((_, rows)) => rows.push_str(&row),
            None => tables.push((heading, row)),
        }
    }
    tables
}

/// Returns the row of an argument or option.
fn row(arg: &Arg) -> String {
    let help = arg.get_long_help().or(arg.get_help());
    let mut meaning = escaped(&help.map(ToString::to_string).unwrap_or_default());
    let defaults = arg.get_default_values().iter();
    let defaults: Vec<_> = defaults.map(|value| value.to_string_lossy()).collect();
    let is_flag = !arg.get_action().takes_values();
    if !defaults.is_empty() && !is_flag {
        let _ = write!(meaning, " (default: `{}`)", defaults.join(" "));
    }
    for value in arg.get_possible_values() {
        if value.is_hide_set() || is_flag {
            continue;
        }
        let help = value.get_help().map(ToString::to_string);
        let help = help.map_or(String::new(), |help| format!(": {}", escaped(&help)));
        let _ = write!(meaning, "<br>`{}`{help}", value.get_name());
    }
    format!("| `{}` | {meaning} |\n", spelling(arg).replace('|', "\\|"))
}

/// Returns an option's names and value names, such as `-a, --allocator <NAME>`. For an argument
/// without a name, returns only its value names.
fn spelling(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default();
    let values: Vec<String> = names.iter().map(|name| format!("<{name}>")).collect();
    let value = values.join(" ");
    let value = if arg.get_action().takes_values() {
        value
    } else {
        String::new()
    };
    let short = arg.get_short().map(|short| format!("-{short}"));
    let long = arg.get_long().map(|long| format!("--{long}"));
    let names: Vec<String> = [short, long].into_iter().flatten().collect();
    let spelling = format!("{} {value}", names.join(", "));
    spelling.trim().to_owned()
}

/// Returns a help text on one line, with `<br>` between its paragraphs, and escaped as in
/// [`one_line`].
fn escaped(text: &str) -> String {
    let paragraphs: Vec<String> = text.split("\n\n").map(one_line).collect();
    paragraphs.join("<br>")
}

/// Returns a paragraph on one line. Escapes vertical bars everywhere and, outside code, angle
/// brackets, square brackets, asterisks and underscores.
fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut escaped = String::new();
    let mut code = false;
    for character in words.join(" ").chars() {
        code ^= character == '`';
        let special = matches!(character, '<' | '>' | '*' | '[' | ']' | '_') && !code;
        if special || character == '|' {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}
