//! `heapdrome man` and `heapdrome completions`, generated from the definition of the command line.

mod markdown;

use clap::{Arg, Command, CommandFactory};
use clap_mangen::Man;
use heapdrome_schema::make_folder;
use heapdrome_schema::nearest_or_all;

use crate::arguments::{Arguments, CompletionsArguments, ManArguments};
use crate::destinations::refuse_stdout;
use crate::failure::Failure;
use crate::help;
use crate::output;

/// Text at the foot of each manual page.
const SOURCE: &str = concat!("heapdrome ", env!("CARGO_PKG_VERSION"));

/// Prints one manual page or the page of all options, or writes all manual pages into a folder.
///
/// # Errors
/// Returns an error if there is no such subcommand, or the output cannot be written.
pub fn man(arguments: &ManArguments) -> Result<(), Failure> {
    let whole = definition();
    if arguments.markdown {
        return output::print(options().as_bytes());
    }
    let Some(folder) = &arguments.dir else {
        let found = find(&whole, &arguments.subcommand)?;
        return output::print(&page(found)?.1);
    };
    refuse_stdout("--dir", folder)?;
    make_folder(folder).map_err(Failure::machine)?;
    for command in all(&whole) {
        let (name, page) = page(command)?;
        let path = folder.join(name);
        output::write(&path, &page)?;
        output::print(format!("{}\n", path.display()).as_bytes())?;
    }
    Ok(())
}

/// Prints the completions of a shell.
///
/// # Errors
/// Returns an error if the completions cannot be printed.
pub fn completions(arguments: &CompletionsArguments) -> Result<(), Failure> {
    let mut text = Vec::new();
    let mut whole = Arguments::command();
    clap_complete::generate(arguments.shell, &mut whole, "heapdrome", &mut text);
    output::print(&text)
}

/// Returns the definition of the command line, with the full name of every subcommand.
fn definition() -> Command {
    let mut whole = Arguments::command().disable_help_subcommand(true);
    whole.build();
    whole
}

/// Returns the Markdown page of all options, under the headings of `--help`.
fn options() -> String {
    let mut whole = help::command().disable_help_subcommand(true);
    whole.build();
    let mut commands = all(&whole);
    // Changing a subcommand moves it to the end, so this restores the order of definition, which
    // `--help` shows.
    let order = definition();
    let names: Vec<_> = all(&order).into_iter().map(Command::get_bin_name).collect();
    commands.sort_by_key(|command| {
        names
            .iter()
            .position(|name| *name == command.get_bin_name())
    });
    markdown::page(&commands)
}

/// Returns a command and, recursively, all its subcommands.
fn all(command: &Command) -> Vec<&Command> {
    let below = command.get_subcommands().flat_map(all);
    std::iter::once(command).chain(below).collect()
}

fn find<'a>(whole: &'a Command, words: &[String]) -> Result<&'a Command, Failure> {
    words.iter().try_fold(whole, |command, word| {
        command.find_subcommand(word).ok_or_else(|| {
            let known = command.get_subcommands().map(Command::get_name);
            let told = format!(
                "no such subcommand: {word} ({})",
                nearest_or_all(word, known)
            );
            Failure::Usage(told)
        })
    })
}

/// Returns the file name and the text of a command's manual page.
fn page(command: &Command) -> Result<(String, Vec<u8>), Failure> {
    let with_dashes = |arg: Arg| match (arg.is_last_set(), arg.is_trailing_var_arg_set()) {
        (true, _) => arg.value_name("-- COMMAND..."),
        (_, true) => arg.value_name("[--] COMMAND..."),
        _ => arg,
    };
    let man = Man::new(command.clone().mut_args(with_dashes)).source(SOURCE);
    let mut text = Vec::new();
    man.render(&mut text).map_err(Failure::machine)?;
    Ok((man.get_filename(), text))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use clap_complete::Shell;

    use super::*;

    /// Returns a manual page without backslashes, so that the hyphens of options are plain.
    fn plain(command: &Command) -> String {
        let (_, page) = page(command).unwrap_or_else(|error| panic!("{error}"));
        String::from_utf8(page).expect("UTF-8").replace('\\', "")
    }

    #[test]
    fn the_pages_name_every_subcommand_and_option() {
        let whole = definition();
        let commands = all(&whole);
        assert!(commands.len() > 20, "{}", commands.len());
        for command in commands {
            let page = plain(command);
            let name = command.get_name();
            for below in command.get_subcommands() {
                let below = below.get_display_name().unwrap_or(below.get_name());
                assert!(page.contains(below), "{name}: {below}");
            }
            for option in command.get_arguments().filter_map(clap::Arg::get_long) {
                assert!(page.contains(&format!("--{option}")), "{name}: --{option}");
            }
        }
    }

    #[test]
    fn a_page_says_what_it_is_of_and_where_the_command_goes() {
        let whole = definition();
        let race = plain(find(&whole, &["race".to_owned()]).expect("it is there"));
        assert!(race.contains(&format!("\"{SOURCE}\"")), "{race}");
        let synopsis = race.split(".SH SYNOPSIS").nth(1).unwrap_or_default();
        let synopsis = synopsis.split(".SH").next().unwrap_or_default();
        assert!(synopsis.contains("[--] COMMAND..."), "{synopsis}");
    }

    #[test]
    fn the_pages_have_names_of_their_own() {
        let whole = definition();
        let pages: std::collections::BTreeSet<_> = all(&whole)
            .into_iter()
            .map(|command| page(command).unwrap_or_else(|error| panic!("{error}")).0)
            .collect();
        assert_eq!(pages.len(), all(&whole).len());
        assert!(pages.contains("heapdrome.1") && pages.contains("heapdrome-paging-random.1"));
    }

    #[test]
    fn every_subcommand_has_examples_that_can_be_typed() {
        let whole = definition();
        for command in whole.get_subcommands() {
            let name = command.get_name();
            let help = command.get_after_help().map(ToString::to_string);
            let help = help.unwrap_or_default();
            let lines = help.lines().map(str::trim);
            let examples: Vec<_> = lines
                .filter(|line| line.starts_with("heapdrome "))
                .collect();
            let own = format!("heapdrome {name}");
            assert!(
                examples.iter().any(|line| line.starts_with(&own)),
                "{name}: {help}"
            );
            for example in examples {
                let words = shlex::split(example).unwrap_or_default();
                if let Err(error) = Arguments::try_parse_from(&words) {
                    panic!("{name}: {example}: {error}");
                }
            }
        }
    }

    /// `cargo run -p heapdrome -- man --markdown >docs/options.md` writes the page that this test
    /// compares.
    #[test]
    fn the_page_of_options_in_the_book_is_current() {
        let book = include_str!("../../../docs/options.md");
        let now = options();
        let differing = book.lines().zip(now.lines()).find(|(old, new)| old != new);
        assert!(
            book == now,
            "docs/options.md is not current: {differing:?}; write it anew: \
             cargo run -p heapdrome -- man --markdown >docs/options.md"
        );
    }

    /// Returns the command lines of heapdrome in the code blocks of the README, of CONTRIBUTING and
    /// of the book, each with the path of its page.
    fn commands_of_the_book() -> Vec<(String, String)> {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut pages = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
        for folder in ["docs", "docs/workloads"] {
            let entries = root.join(folder).read_dir().expect("a folder").flatten();
            pages.extend(entries.map(|entry| entry.path()));
        }
        let mut found = Vec::new();
        for page in pages
            .iter()
            .filter(|page| page.extension().is_some_and(|it| it == "md"))
        {
            let text = std::fs::read_to_string(page).expect("a text");
            let mut fenced = false;
            for line in text.lines() {
                fenced ^= line.starts_with("```");
                let code = if fenced {
                    Some(line)
                } else {
                    line.strip_prefix("    ")
                };
                let Some(code) = code else { continue };
                let code = code.strip_prefix("sudo ").unwrap_or(code);
                if code.starts_with("heapdrome ") {
                    found.push((page.display().to_string(), code.to_owned()));
                }
            }
        }
        found
    }

    #[test]
    fn the_commands_of_the_book_can_be_typed() {
        let found = commands_of_the_book();
        assert!(found.len() > 50, "{}", found.len());
        for (page, line) in found {
            // A line with an ellipsis is incomplete, and a usage line has placeholders, so neither
            // can be parsed.
            if line.contains(['<', '[']) || line.ends_with("...") {
                continue;
            }
            let words = shlex::split(&line).unwrap_or_default();
            if let Err(error) = Arguments::try_parse_from(&words) {
                panic!("{page}: {line}: {error}");
            }
        }
    }

    #[test]
    fn every_shell_completes_every_subcommand() {
        let whole = definition();
        for shell in [
            Shell::Bash,
            Shell::Zsh,
            Shell::Fish,
            Shell::Elvish,
            Shell::PowerShell,
        ] {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "heapdrome", &mut text);
            let text = String::from_utf8(text).expect("UTF-8");
            for command in whole.get_subcommands() {
                assert!(
                    text.contains(command.get_name()),
                    "{shell}: {}",
                    command.get_name()
                );
            }
        }
    }
}
