//! The help of `heapdrome race`: `-h` shows the options that most races need, on one screen.
//! `--help` shows all options.

use clap::{Arg, Command, CommandFactory};

use crate::arguments::Arguments;
use crate::examples;

/// Options of a race in the short help, with their texts. Every other option appears only in the
/// long help.
const SHORT: [(&str, &str); 15] = [
    ("allocators", "Names, paths, or a group such as default"),
    ("baseline", "Compare the others with this one"),
    ("workload", "Race a workload instead of a command"),
    ("threads", "Race once for each number of threads"),
    ("quick", "Race briefly: a first impression"),
    ("max_time", "Stop after about this long"),
    ("rounds", "Run exactly this many rounds"),
    ("resume", "Continue an interrupted race"),
    ("prepare", "Run before each run, untimed"),
    ("environment", "Set a variable for every entrant"),
    ("serve", "Race this server; COMMAND is its load"),
    ("ready", "Succeeds once the server answers"),
    ("json", "Write the result as JSON"),
    ("markdown", "Write the result as Markdown"),
    ("command", "The command, with its arguments"),
];

/// Options of a race that the help shows under another heading than the other options of their
/// struct.
const HEADINGS: [(&str, &[&str]); 4] = [
    ("Replays of traces", &["trace", "speed", "touch", "process"]),
    ("Sweeps", &["threads", "sweeps", "work", "knee"]),
    ("When to stop", &["quick", "resume"]),
    (
        "Servers and figures",
        &["serve", "ready", "idle", "metrics", "judge"],
    ),
];

/// Returns the definition of heapdrome's command line. `race` has a short and a long help.
pub fn command() -> Command {
    Arguments::command().mut_subcommand("race", |race| {
        let placed = |arg: Arg| {
            let id = arg.get_id().as_str();
            let short = SHORT.iter().find(|(known, _)| *known == id);
            let heading = HEADINGS.iter().find(|(_, ids)| ids.contains(&id));
            let arg = match heading {
                Some((heading, _)) => arg.help_heading(*heading),
                None if arg.is_positional() => arg.help_heading(None::<&str>),
                None => arg,
            };
            match short {
                Some((_, text)) => shortened(arg, text),
                None => arg.hide_short_help(true),
            }
        };
        race.mut_args(placed)
            .after_help(examples::RACE_SHORT)
            .after_long_help(examples::RACE)
    })
}

/// Sets `text` as the option's short help. The option's full text becomes its long help.
fn shortened(arg: Arg, text: &'static str) -> Arg {
    let whole = arg.get_long_help().or(arg.get_help()).cloned();
    match whole {
        Some(whole) => arg.help(text).long_help(whole),
        None => arg.help(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn race() -> Command {
        let whole = command();
        let race = whole.find_subcommand("race").expect("it is there");
        race.clone().term_width(80)
    }

    #[test]
    fn the_short_help_of_a_race_fits_a_screen() {
        let help = race().render_help().to_string();
        let lines = help.lines().count();
        assert!((24..=40).contains(&lines), "{lines} lines:\n{help}");
        for line in help.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        assert!(help.contains("--help"), "{help}");
    }

    #[test]
    fn the_long_help_of_a_race_has_every_option_under_a_heading() {
        let race = race();
        let help = race.clone().render_long_help().to_string();
        for option in race.get_arguments().filter(|arg| !arg.is_positional()) {
            let name = option.get_long().unwrap_or_default();
            assert!(help.contains(&format!("--{name}")), "--{name}");
            let heading = option.get_help_heading();
            assert!(heading.is_some() || name == "help", "--{name}");
        }
    }

    #[test]
    fn the_short_help_names_options_that_there_are() {
        let race = race();
        for (name, _) in SHORT {
            let mut known = race.get_arguments();
            assert!(known.any(|arg| arg.get_id().as_str() == name), "{name}");
        }
    }
}
