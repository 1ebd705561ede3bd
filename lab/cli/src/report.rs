//! `heapdrome report` and `heapdrome plot`: pages and plots of results.

mod site;

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use heapdrome_report::{Plot, Source, page, plots, stem};
use heapdrome_schema::{Redaction, Saved, is_stdin, make_folder};

use crate::arguments::{Form, PlotArguments, ReportArguments, is_stdout};
use crate::destinations::{Destinations, refuse_overwriting, refuse_stdout};
use crate::failure::Failure;
use crate::folders::Folders;
use crate::{output, sources};

/// Writes one page for all results. For a folder of results, writes a page for each, and an index.
///
/// # Errors
/// Returns an error if a result cannot be read or is empty, if a folder is named beside other
/// results, or if a page already exists (without `--force`) or cannot be written.
pub fn report(arguments: &ReportArguments) -> Result<(), Failure> {
    let mut folders = arguments.results.iter();
    match folders.find(|path| !is_stdin(path) && path.is_dir()) {
        None => one_page(arguments),
        Some(folder) if arguments.results.len() == 1 => site::write(folder, arguments),
        Some(folder) => Err(Failure::Usage(format!(
            "{} is a folder and cannot be combined with other results; name it alone",
            folder.display()
        ))),
    }
}

fn one_page(arguments: &ReportArguments) -> Result<(), Failure> {
    let path = &arguments.output;
    let printed = is_stdout(path);
    if !printed && path.is_dir() {
        let told = format!("{} is a folder; name a file for the page", path.display());
        return Err(Failure::Usage(told));
    }
    refuse_overwriting(path, arguments.force || printed)?;
    let results: Vec<&Path> = arguments.results.iter().map(PathBuf::as_path).collect();
    Destinations::one("--output", path).check(&results)?;
    let sources = read_all(&arguments.results, arguments.redact, sources::read)?;
    let page = page(&sources).map_err(Failure::machine)?;
    output::write(path, &page)?;
    if !printed {
        output::tell(format!("wrote {}", path.display()));
    }
    Ok(())
}

/// Draws the plots of all results, and prints the paths of the files.
///
/// # Errors
/// Returns an error if a result cannot be read or contains no measurement, if there is no plot, if
/// a word of `--only` is in no plot's name, or if a file already exists (without `--force`) or
/// cannot be written.
pub fn plot(arguments: &PlotArguments) -> Result<(), Failure> {
    let folder = &arguments.output;
    refuse_stdout("--output", folder)?;
    if folder.exists() && !folder.is_dir() {
        let told = format!(
            "{} is a file; name a folder for the plots",
            folder.display()
        );
        return Err(Failure::Usage(told));
    }
    let sources = read_all(&arguments.results, arguments.redact, sources::read_measured)?;
    let files = files(&sources, arguments)?;
    for (path, _, _) in &files {
        refuse_overwriting(path, arguments.force)?;
    }
    make_folder(folder).map_err(Failure::machine)?;
    for (path, plot, form) in files {
        let bytes = match form {
            Form::Svg => plot.svg(),
            Form::Png => plot.png().map_err(Failure::machine)?,
        };
        output::write(&path, &bytes)?;
        output::print(format!("{}\n", path.display()).as_bytes())?;
    }
    Ok(())
}

/// Returns the files to write: each wanted plot once in each format.
fn files(
    sources: &[Source],
    arguments: &PlotArguments,
) -> Result<Vec<(PathBuf, Plot, Form)>, Failure> {
    let drawn = drawn(sources);
    check_words(&drawn, &arguments.only)?;
    let forms = arguments.format.iter().enumerate();
    let once = forms.filter(|(place, form)| !arguments.format[..*place].contains(form));
    let once: Vec<Form> = once.map(|(_, form)| *form).collect();
    let wanted = |plot: &Plot| {
        let mut words = arguments.only.iter();
        arguments.only.is_empty() || words.any(|word| is_in_name(word, plot))
    };
    let mut files = Vec::new();
    let mut taken = HashSet::new();
    for (prefix, plot) in drawn.into_iter().filter(|(_, plot)| wanted(plot)) {
        let name = unique(format!("{prefix}{}", plot.name), &mut taken);
        for form in &once {
            let ending = if *form == Form::Svg { "svg" } else { "png" };
            let path = arguments.output.join(format!("{name}.{ending}"));
            files.push((path, plot.clone(), *form));
        }
    }
    Ok(files)
}

/// Returns all plots, each with the prefix of its file name.
fn drawn(sources: &[Source]) -> Vec<(String, Plot)> {
    let of_source = |source: &Source| {
        let prefix = match sources.len() {
            1 => String::new(),
            _ => format!("{}-", plain_name(source)),
        };
        let plots = plots(&source.saved).into_iter();
        plots.map(move |plot| (prefix.clone(), plot))
    };
    sources.iter().flat_map(of_source).collect()
}

/// Checks that there is a plot, and that each word of `--only` is in a plot's name.
fn check_words(drawn: &[(String, Plot)], only: &[String]) -> Result<(), Failure> {
    if drawn.is_empty() {
        return Err(Failure::usage(
            "there is nothing to draw: fewer than two allocators count",
        ));
    }
    let named = |word: &&String| drawn.iter().any(|(_, plot)| is_in_name(word, plot));
    let Some(word) = only.iter().find(|word| !named(word)) else {
        return Ok(());
    };
    let mut known: Vec<&str> = Vec::new();
    for (_, plot) in drawn {
        if !known.contains(&plot.name.as_str()) {
            known.push(&plot.name);
        }
    }
    Err(Failure::Usage(format!(
        "no such plot: {word} (there are: {})",
        known.join(", ")
    )))
}

/// Returns whether the plot's name contains the word; case and the kind of separators do not
/// matter.
fn is_in_name(word: &str, plot: &Plot) -> bool {
    plain(&plot.name).contains(&plain(word))
}

/// Returns the letters and digits of `text` in lower case. One dash replaces each sequence of other
/// characters.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    for c in text.chars().flat_map(char::to_lowercase) {
        match c.is_alphanumeric() {
            true => plain.push(c),
            false if plain.ends_with('-') => {}
            false => plain.push('-'),
        }
    }
    plain
}

/// Returns `name`, or the first unused name of `name-2`, `name-3`, ..., and adds it to `taken`.
fn unique(name: String, taken: &mut HashSet<String>) -> String {
    let numbered = (2_u32..).map(|number| format!("{name}-{number}"));
    let free = std::iter::once(name.clone())
        .chain(numbered)
        .find(|name| !taken.contains(name));
    let free = free.unwrap_or(name);
    taken.insert(free.clone());
    free
}

/// Returns the name of a result's file without its extension, shortened and reduced to characters
/// that are valid in file names.
fn plain_name(source: &Source) -> String {
    stem(source.name.strip_suffix(".json").unwrap_or(&source.name))
}

type Reading = fn(&Path) -> Result<Saved, Failure>;

fn read_all(paths: &[PathBuf], redact: bool, reading: Reading) -> Result<Vec<Source>, Failure> {
    let results: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    sources::refuse_stdin_twice(&results)?;
    let redaction = redaction(redact)?;
    let read = |path: &PathBuf| source(path, reading(path)?, redaction.as_ref());
    paths.iter().map(read).collect()
}

/// Returns the redaction of the user's folders, if `redact` is set.
fn redaction(redact: bool) -> Result<Option<Redaction>, Failure> {
    let found = redact.then(|| Folders::find().map(|folders| folders.redaction()));
    found.transpose()
}

/// Returns a result, redacted on request, with the file name under which the page offers its raw
/// data. The page contains raw data as plain JSON, so the name loses `.gz`.
fn source(path: &Path, saved: Saved, redaction: Option<&Redaction>) -> Result<Source, Failure> {
    let saved = match redaction {
        Some(redaction) => redacted(&saved, redaction)?,
        None => saved,
    };
    let name = match is_stdin(path) {
        true => OsStr::new("standard-input.json"),
        false => path.file_name().unwrap_or(path.as_os_str()),
    };
    let name = name.to_string_lossy();
    let name = name.strip_suffix(".gz").unwrap_or(&name).to_owned();
    Ok(Source {
        // The name of a stored race has no extension.
        name: match path.extension() {
            None if !is_stdin(path) => format!("{name}.json"),
            _ => name,
        },
        saved,
    })
}

/// Returns a saved result with the user's folders replaced by `$HOME` and `$CACHE`.
fn redacted(saved: &Saved, redaction: &Redaction) -> Result<Saved, Failure> {
    fn through<T: serde::Serialize + serde::de::DeserializeOwned>(
        value: &T,
        redaction: &Redaction,
    ) -> Result<Box<T>, Failure> {
        let text = serde_json::to_string(value).map_err(Failure::machine)?;
        let read = serde_json::from_str(&redaction.text(&text)).map_err(Failure::machine)?;
        Ok(Box::new(read))
    }
    Ok(match saved {
        Saved::Race(result) => Saved::Race(through(result.as_ref(), redaction)?),
        Saved::Collection(races) => Saved::Collection(through(races.as_ref(), redaction)?),
    })
}
