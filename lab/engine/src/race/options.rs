//! Default settings of a race's runs, and checks of its judged figures and its command.

use std::path::Path;

use heapdrome_schema::{CPU, Options, PEAK_RSS, WALL};

use crate::failure::Failure;
use crate::program;
use heapdrome_schema::nearest_or_all;

/// Returns the default options: output compared, one memory run for each entrant, status 0 as
/// success, wall time judged.
pub fn usual_options() -> Options {
    Options {
        compare_output: true,
        judged: vec![WALL.to_owned()],
        memory_runs: 1,
        success: vec![0],
        ..Options::default()
    }
}

/// Figures that `--judge` accepts in every race, each with its short name and its name in a result.
pub const JUDGED: [(&str, &str); 3] = [("wall", WALL), ("cpu", CPU), ("memory", PEAK_RSS)];

/// Checks that the race has every judged figure. `metrics` are the names of the race's figures in
/// addition to [`JUDGED`].
///
/// # Errors
/// When a figure is missing. The message suggests existing names.
pub fn check_judged(
    judged: &[String],
    metrics: impl Iterator<Item = String>,
) -> Result<(), Failure> {
    let short = JUDGED.map(|(short, _)| short.to_owned());
    let known: Vec<String> = short.into_iter().chain(metrics).collect();
    let is_known =
        |name: &String| JUDGED.iter().any(|(_, figure)| figure == name) || known.contains(name);
    match judged.iter().find(|name| !is_known(name)) {
        None => Ok(()),
        Some(unknown) => {
            let near = nearest_or_all(unknown, known.iter().map(String::as_str));
            Err(Failure::Usage(format!(
                "--judge {unknown}: no such figure ({near}); a figure that the command prints needs --metric"
            )))
        }
    }
}

/// Checks that the command exists and that every run can read its input. This check precedes all
/// builds.
///
/// # Errors
/// When the command does not exist or may not be executed, or when it reads from a pipe, which only
/// the first run could read.
pub fn check_command(command: &[String], options: &Options) -> Result<(), Failure> {
    let Some(name) = command.first() else {
        return Ok(());
    };
    let stdin = options.stdin.as_ref().map(|path| path.to_string_lossy());
    program::check_repeatable(command.iter().map(String::as_str).chain(stdin.as_deref()))?;
    let folder = options.directory.as_deref().unwrap_or(Path::new("."));
    if program::find(name, folder).is_some() {
        return Ok(());
    }
    let path = folder.join(name);
    let what = if name.contains('/') && path.is_dir() {
        format!("cannot run {name}: it is a folder")
    } else if name.contains('/') && path.exists() {
        format!("cannot run {name}: the file exists, but is not executable; see chmod +x")
    } else if name.contains([' ', '|', '&', ';', '>']) {
        format!("cannot find the command {name}; for a shell write: -- sh -c 'COMMAND LINE'")
    } else {
        format!("cannot find the command {name}; check its name and PATH")
    };
    Err(Failure::Usage(what))
}
