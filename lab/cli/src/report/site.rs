//! `heapdrome report FOLDER`: writes a page for each result in a folder, and an index of the pages.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use heapdrome_report::{Entry, Source, index, page};
use heapdrome_schema::make_folder;

use super::{plain_name, redaction, source, unique};
use crate::arguments::ReportArguments;
use crate::destinations::{refuse_overwriting, refuse_stdout};
use crate::failure::Failure;
use crate::{output, sources};

/// Name of the file that lists the pages that heapdrome wrote into a folder. heapdrome writes into
/// a folder with other files only if this file exists.
const LIST: &str = ".heapdrome-pages";

/// Name of the page that links to all others, without its extension.
const INDEX: &str = "index";

/// Writes a page for each result of `results`, and an index, into the output folder of `arguments`.
///
/// # Errors
/// Returns an error if there is no result or one is damaged, or if a page cannot be written. Also
/// returns an error if the output folder contains files but no list of heapdrome's pages, or if a
/// page would replace another file and `--force` is not set.
pub fn write(results: &Path, arguments: &ReportArguments) -> Result<(), Failure> {
    let site = arguments.output.as_path();
    refuse_stdout("--output", site)?;
    let old = written_before(site)?;
    let sources = read(results, arguments.redact)?;
    let pages = names(&sources);
    let index_page = format!("{INDEX}.html");
    let new: Vec<&String> = pages.iter().chain([&index_page]).collect();
    for name in new.iter().filter(|name| !old.contains(**name)) {
        refuse_overwriting(&site.join(name), arguments.force)?;
    }
    make_folder(site).map_err(Failure::machine)?;
    // Write the list before the pages, so that heapdrome recognises an incomplete folder as its
    // own.
    write_list(site, new.iter().copied().chain(&old))?;
    for (name, source) in pages.iter().zip(&sources) {
        let page = page(std::slice::from_ref(source)).map_err(Failure::machine)?;
        output::write(&site.join(name), &page)?;
    }
    let entries = pages.iter().zip(&sources);
    let entries = entries.map(|(name, source)| Entry::new(name.clone(), &source.saved));
    let entries: Vec<Entry> = entries.collect();
    output::write(&site.join(&index_page), &index(&entries))?;
    remove(site, old.iter().filter(|name| !new.contains(name)))?;
    write_list(site, new.iter().copied())?;
    let (index_page, count) = (site.join(index_page), pages.len());
    output::tell(format!(
        "wrote {}; pages beside it: {count}",
        index_page.display()
    ));
    Ok(())
}

/// Returns the names of the pages that an earlier report wrote into the folder; none if the folder
/// is missing or empty. Fails if the folder has files, but no list of pages.
fn written_before(site: &Path) -> Result<HashSet<String>, Failure> {
    if !site.exists() {
        return Ok(HashSet::new());
    }
    if !site.is_dir() {
        let told = format!("{} is a file; name a folder for the pages", site.display());
        return Err(Failure::Usage(told));
    }
    match std::fs::read_to_string(site.join(LIST)) {
        Ok(list) => Ok(list
            .lines()
            .filter(|name| is_page(name))
            .map(str::to_owned)
            .collect()),
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(unreadable(&site.join(LIST), &error))
        }
        Err(_) if files_of(site)?.is_empty() => Ok(HashSet::new()),
        Err(_) => Err(Failure::Usage(format!(
            "{} holds files that heapdrome did not write; name another folder, or an empty one",
            site.display()
        ))),
    }
}

/// Returns whether a line of the list is the plain name of a page, so that nothing outside the
/// folder is removed.
fn is_page(name: &str) -> bool {
    name.ends_with(".html") && !name.contains('/')
}

/// Reads every result in the folder, in the order of their file names.
fn read(folder: &Path, redact: bool) -> Result<Vec<Source>, Failure> {
    let redaction = redaction(redact)?;
    let mut sources = Vec::new();
    for path in files_of(folder)?.iter().filter(|path| is_json(path)) {
        if let Some(saved) = sources::read_among_others(path)? {
            sources.push(source(path, saved, redaction.as_ref())?);
        }
    }
    if sources.is_empty() {
        return Err(Failure::Usage(format!(
            "there is no result in {}; race with --json {}",
            folder.display(),
            folder.join("result.json").display()
        )));
    }
    Ok(sources)
}

/// Returns whether the path is a file whose extension is that of a result.
fn is_json(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.is_file() && (name.ends_with(".json") || name.ends_with(".json.gz"))
}

fn files_of(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = folder.read_dir().and_then(|entries| {
        let paths = entries.map(|entry| entry.map(|entry| entry.path()));
        paths.collect::<std::io::Result<Vec<_>>>()
    });
    let mut files = entries.map_err(|error| unreadable(folder, &error))?;
    files.sort();
    Ok(files)
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Usage(format!("cannot read {}: {error}", path.display()))
}

/// Returns the file name of each source's page; all names differ.
fn names(sources: &[Source]) -> Vec<String> {
    let mut taken = HashSet::from([INDEX.to_owned()]);
    let name = |source| format!("{}.html", unique(plain_name(source), &mut taken));
    sources.iter().map(name).collect()
}

fn write_list<'a>(site: &Path, names: impl Iterator<Item = &'a String>) -> Result<(), Failure> {
    let mut list =
        "Pages that `heapdrome report` wrote, and removes when their results are gone:\n"
            .to_owned();
    for name in names {
        list.push_str(name);
        list.push('\n');
    }
    output::write(&site.join(LIST), list.as_bytes())
}

/// Removes the pages of these names, whose results no longer exist. A missing page is not an error.
fn remove<'a>(site: &Path, names: impl Iterator<Item = &'a String>) -> Result<(), Failure> {
    for name in names {
        let path = site.join(name);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                let told = format!("cannot remove {}: {error}", path.display());
                return Err(Failure::Machine(told));
            }
            _ => {}
        }
    }
    Ok(())
}
