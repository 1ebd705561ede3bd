//! `heapdrome report` and `heapdrome plot`: results to look at.

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

/// Writes one page for all results, or for a folder of results one for each and an index.
///
/// # Errors
/// When a result cannot be read or holds nothing, or a page is there already or cannot be written.
pub fn report(arguments: &ReportArguments) -> Result<(), Failure> {
    let mut folders = arguments.results.iter();
    match folders.find(|path| !is_stdin(path) && path.is_dir()) {
        None => one_page(arguments),
        Some(folder) if arguments.results.len() == 1 => site::write(folder, arguments),
        Some(folder) => Err(Failure::Usage(format!(
            "{} is a folder, and other results are named beside it; name it alone",
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
/// As [`report`]; and when no plot has a name that was asked for.
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

/// Which files are to be written: each plot that is wanted in each form, once.
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

/// All plots, with what their names begin with in the folder.
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

/// Each word of `--only` must be in a name.
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
        "no plot is called {word}; there are {}",
        known.join(", ")
    )))
}

/// Whether a part of the plot's name, or of the title that it is made of, is this.
fn is_in_name(word: &str, plot: &Plot) -> bool {
    plain(&plot.name).contains(&plain(word))
}

/// Letters and digits, all small, and one dash for whatever stands between them.
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

/// `name`, or the first of `name-2`, `name-3`, ... that is not taken yet.
fn unique(name: String, taken: &mut HashSet<String>) -> String {
    let numbered = (2_u32..).map(|number| format!("{name}-{number}"));
    let free = std::iter::once(name.clone())
        .chain(numbered)
        .find(|name| !taken.contains(name));
    let free = free.unwrap_or(name);
    taken.insert(free.clone());
    free
}

/// The name of a result's file, fit for the names of others.
fn plain_name(source: &Source) -> String {
    stem(source.name.strip_suffix(".json").unwrap_or(&source.name))
}

/// Reads a saved result.
type Reading = fn(&Path) -> Result<Saved, Failure>;

fn read_all(paths: &[PathBuf], redact: bool, reading: Reading) -> Result<Vec<Source>, Failure> {
    let results: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    sources::refuse_stdin_twice(&results)?;
    let redaction = redaction(redact)?;
    let read = |path: &PathBuf| source(path, reading(path)?, redaction.as_ref());
    paths.iter().map(read).collect()
}

/// Texts that `--redact` replaces, if it was given.
fn redaction(redact: bool) -> Result<Option<Redaction>, Failure> {
    let found = redact.then(|| Folders::find().map(|folders| folders.redaction()));
    found.transpose()
}

/// A result with the name under which its page hands the raw data out: as plain JSON, however it
/// was read.
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
    Ok(Source {
        name: name.strip_suffix(".gz").unwrap_or(&name).to_owned(),
        saved,
    })
}

/// A saved result with the user's folders named `$HOME` and `$CACHE`.
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
