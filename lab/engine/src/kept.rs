//! A growing collection and its file. The file keeps finished work even if heapdrome is killed.

use std::path::{Path, PathBuf};

use heapdrome_schema::{
    Collection, Purpose, SCHEMA, compressed_if_named, to_json, write_atomically,
};

use crate::engine::Engine;
use crate::event::Event;
use crate::failure::Failure;

/// Returns an empty collection that starts now.
#[must_use]
pub fn started(name: &str, purpose: Purpose, asked: Vec<String>) -> Collection {
    let now = std::time::SystemTime::now();
    Collection {
        schema: SCHEMA,
        heapdrome: env!("CARGO_PKG_VERSION").to_owned(),
        started: humantime::format_rfc3339_seconds(now).to_string(),
        asked,
        name: name.to_owned(),
        purpose,
        ..Collection::default()
    }
}

/// Growing collection, with the file that stores it.
pub struct Kept<'a> {
    /// The collection so far.
    pub collection: Collection,
    engine: &'a Engine,
    /// File that stores the collection, if it can be resumed.
    file: Option<PathBuf>,
    redacted: bool,
}

impl<'a> Kept<'a> {
    /// Creates a collection that is stored in `file`; `None` means a new file in heapdrome's own
    /// folder. With `redacted`, variables replace folder names in the file.
    ///
    /// # Errors
    /// When `file` is `None`, and heapdrome's own folder for it cannot be created.
    pub fn in_file(
        collection: Collection,
        file: Option<PathBuf>,
        redacted: bool,
        engine: &'a Engine,
    ) -> Result<Self, Failure> {
        let file = match file {
            Some(path) => path,
            None => own_file(engine, &collection)?,
        };
        Ok(Self {
            file: Some(file),
            redacted,
            ..Self::unnamed(collection, engine)
        })
    }

    /// Creates a collection without a file. Such a collection cannot be resumed.
    pub fn unnamed(collection: Collection, engine: &'a Engine) -> Self {
        Self {
            collection,
            engine,
            file: None,
            redacted: false,
        }
    }

    /// Returns the engine that runs the collection.
    pub fn engine(&self) -> &'a Engine {
        self.engine
    }

    /// Returns the path of the collection's file; empty if there is none.
    pub fn file(&self) -> &Path {
        self.file.as_deref().unwrap_or(Path::new(""))
    }

    /// Adds a remark, unless it already exists.
    pub fn remark(&mut self, remark: String) {
        if !self.collection.remarks.contains(&remark) {
            self.collection.remarks.push(remark);
        }
    }

    /// Reports a remark on a subject, and replaces earlier remarks on that subject.
    pub fn remark_on(&mut self, subject: &str, what: &str) {
        self.forget(subject);
        let remark = format!("{subject}: {what}");
        self.engine.tell(Event::Remark(&remark));
        self.collection.remarks.push(remark);
    }

    /// Removes all remarks on a subject.
    pub fn forget(&mut self, subject: &str) {
        let about = |remark: &String| {
            let rest = remark.strip_prefix(subject);
            rest.is_some_and(|rest| rest.starts_with(": "))
        };
        self.collection.remarks.retain(|remark| !about(remark));
    }

    /// If the collection has a file, evaluates the collection and writes it to that file.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&mut self, evaluate: impl FnOnce(&mut Collection)) -> Result<(), Failure> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        evaluate(&mut self.collection);
        let mut bytes = to_json(&self.collection).map_err(Failure::machine)?;
        if self.redacted {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            bytes = self.engine.folders.redaction().text(&text).into_bytes();
        }
        let bytes = compressed_if_named(file, bytes).map_err(Failure::machine)?;
        write_atomically(file, &bytes).map_err(Failure::machine)
    }

    /// Reports how to resume the collection if it has a file, and returns [`Failure::Interrupted`].
    pub fn interrupted(&self) -> Failure {
        if let Some(file) = &self.file {
            let file = file.to_string_lossy();
            self.engine.tell(Event::SuiteInterrupted {
                arguments: &again(&self.collection.asked),
                file: &shlex::try_quote(&file).unwrap_or_default(),
            });
        }
        Failure::Interrupted
    }
}

/// Options of a suite that name a file and are replaced by `--resume`.
const REPLACED: [&str; 2] = ["--resume", "--json"];

/// Returns heapdrome's own arguments, except the options that `--resume` replaces.
fn again(asked: &[String]) -> String {
    let mut words: Vec<&str> = Vec::new();
    let mut all = asked.iter().map(String::as_str);
    while let Some(word) = all.next() {
        let (name, value) = word.split_once('=').unzip();
        match REPLACED.contains(&name.unwrap_or(word)) {
            false => words.push(word),
            // The next word is the value of this option.
            true if value.is_none() => _ = all.next(),
            true => {}
        }
    }
    shlex::try_join(words).unwrap_or_default()
}

/// Returns the path of a new file for the collection. No other suite uses that file.
fn own_file(engine: &Engine, collection: &Collection) -> Result<PathBuf, Failure> {
    let folder = engine.folders.races.with_file_name("suites");
    std::fs::create_dir_all(&folder).map_err(|error| {
        Failure::Machine(format!(
            "cannot make {}: {error}; name a file with --json",
            folder.display()
        ))
    })?;
    let name = Path::new(&collection.name).file_stem().unwrap_or_default();
    let started = collection.started.replace(':', "-");
    let process = std::process::id();
    let name = name.to_string_lossy();
    Ok(folder.join(format!("{name}-{started}-{process}.json")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_to_go_on_names_the_kept_file_alone() {
        let asked = [
            "suite", "lgalloc", "--json", "r.json", "--quick", "--json=x",
        ];
        let asked = asked.map(str::to_owned);
        assert_eq!(again(&asked), "suite lgalloc --quick");
    }

    #[test]
    fn a_suite_that_is_taken_up_twice_names_one_file() {
        let asked = [
            "suite",
            "real",
            "--resume",
            "a b.json",
            "--quick",
            "--resume=x",
        ];
        let asked = asked.map(str::to_owned);
        assert_eq!(again(&asked), "suite real --quick");
    }
}
