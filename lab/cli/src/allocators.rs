//! `heapdrome allocators`, and the names of allocators on other command lines.

use std::fmt::Write as _;
use std::path::PathBuf;

use heapdrome_catalogue::{
    BuildEvent, Catalogue, CatalogueError, CheckOutcome, CheckResult, Checks, Entry, Source, State,
};
use heapdrome_packages::{CacheError, FetchError, sha256_of_file};
use heapdrome_record::{Entrant, EntrantResult};
use heapdrome_report::adopt::{self, Adoption};
use indicatif::{ProgressBar, ProgressStyle};

use crate::arguments::{AllocatorsAction, AllocatorsArguments};
use crate::failure::Failure;
use crate::folders::Folders;
use crate::{interrupt, output};

/// The allocators that a first race should have: the ones that people choose among.
const DEFAULT: [&str; 8] = [
    "system",
    "jemalloc",
    "mimalloc2",
    "mimalloc3",
    "mimalloc3-secure",
    "snmalloc",
    "snmalloc-checks",
    "rpmalloc",
];

/// Does what was asked.
///
/// # Errors
/// When a name is unknown, a build fails, or a check shows a fault.
pub fn allocators(arguments: AllocatorsArguments) -> Result<(), Failure> {
    let interrupt = interrupt::flag()?;
    let folders = Folders::find()?.interrupted_by(&interrupt);
    let mut catalogue = Catalogue::load(&folders.cache, &folders.config).map_err(Failure::usage)?;
    match arguments.action.unwrap_or(AllocatorsAction::List) {
        AllocatorsAction::List => list(&catalogue),
        AllocatorsAction::Install { names } => install(&catalogue, &names),
        AllocatorsAction::Add {
            name,
            path,
            environment,
        } => {
            let before = catalogue.find(&name).map(|entry| entry.source.clone());
            let environment = environment.into_iter().collect();
            catalogue.add(&name, &path, &environment).map_err(failure)?;
            {
                let how = match before {
                    Ok(Source::User(old)) => format!("{name} replaces {}", old.display()),
                    _ => format!("{name} is known from now on"),
                };
                output::print(
                    format!(
                        "{how}: race it with -a {name}
"
                    )
                    .as_bytes(),
                )
            }
        }
        AllocatorsAction::Remove { name } => {
            let own = matches!(
                catalogue.find(&name).map_err(failure)?.source,
                Source::User(_)
            );
            let path = catalogue.remove(&name).map_err(failure)?;
            let told = match own {
                true => format!(
                    "{name} is forgotten; {} stays where it is\n",
                    path.display()
                ),
                false => format!("the build of {name} is removed: {}\n", path.display()),
            };
            output::print(told.as_bytes())
        }
        AllocatorsAction::Show { name } => {
            let entry = catalogue.find(&name).map_err(failure)?;
            output::print(described(entry, &catalogue.state(entry)).as_bytes())
        }
        AllocatorsAction::Check { names } => check(&catalogue, &folders, &names),
    }
}

/// Names on a command line, and what they stand for.
pub struct Names<'a> {
    catalogue: &'a Catalogue,
}

impl<'a> Names<'a> {
    /// Names are looked up in `catalogue`.
    pub fn new(catalogue: &'a Catalogue) -> Self {
        Self { catalogue }
    }

    /// The names of entries, with groups taken apart and duplicates left out. No names at all mean
    /// what was found on this machine, or the default group where nothing was.
    ///
    /// # Errors
    /// When a name is unknown.
    pub fn expand(&self, asked: &[String]) -> Result<Vec<String>, Failure> {
        let mut names = Vec::new();
        for name in asked {
            match name.as_str() {
                "" => {
                    return Err(Failure::usage(
                        "an allocator's name is empty; see -a in --help",
                    ));
                }
                "default" => names.extend(DEFAULT.map(str::to_owned)),
                "found" => names.extend(self.found()),
                "all" => names.extend(self.every()),
                path if path.contains('/') => names.push(path.to_owned()),
                name => names.push(self.catalogue.find(name).map_err(failure)?.name.clone()),
            }
        }
        if asked.is_empty() {
            names = self.found();
            if names.len() < 2 {
                output::tell("no other allocator was found here; building the usual ones");
                names = DEFAULT.map(str::to_owned).to_vec();
            }
        }
        let mut seen = std::collections::BTreeSet::new();
        names.retain(|name| seen.insert(name.clone()));
        Ok(names)
    }

    /// Entries of their own kind (no settings of another) whose library is here.
    pub fn found(&self) -> Vec<String> {
        let here = |entry: &Entry, state: &State| {
            entry.base.is_none() && entry.conforming && matches!(state, State::Installed { .. })
        };
        self.names(here)
    }

    /// All that is here, settings included.
    pub fn here(&self) -> Vec<String> {
        let here = |entry: &Entry, state: &State| {
            entry.conforming && matches!(state, State::Installed { .. })
        };
        self.names(here)
    }

    /// Everything that is here or can be built, settings included.
    fn every(&self) -> Vec<String> {
        let possible = |entry: &Entry, state: &State| {
            entry.conforming && matches!(state, State::Installed { .. } | State::Buildable)
        };
        self.names(possible)
    }

    fn names(&self, wanted: impl Fn(&Entry, &State) -> bool) -> Vec<String> {
        let listing = self.catalogue.list();
        let chosen = listing
            .iter()
            .filter(|listed| wanted(listed.entry, &listed.state));
        chosen.map(|listed| listed.entry.name.clone()).collect()
    }

    /// Whether `name` was written on the command line itself, and not only a group that holds it.
    pub fn asked_by_name(&self, asked: &[String], name: &str) -> bool {
        asked.iter().any(|word| self.same(word, name))
    }

    /// Whether two names mean the same entry.
    pub fn same(&self, one: &str, other: &str) -> bool {
        let entry = |name| self.catalogue.find(name).map(|entry| &entry.name).ok();
        one == other || (entry(one).is_some() && entry(one) == entry(other))
    }

    /// The entrant of this name or path; built, and said so, where it is not there yet.
    ///
    /// # Errors
    /// When there is no such allocator, or it cannot be built.
    pub fn ready(&self, name: &str) -> Result<Entrant, Failure> {
        match self.catalogue.entrant(name) {
            Err(CatalogueError::NotInstalled { .. }) => {
                build(self.catalogue, name)?;
                self.catalogue.entrant(name).map_err(failure)
            }
            other => other.map_err(failure),
        }
    }
}

/// A failure of the catalogue, by whose concern it is.
pub fn failure(error: CatalogueError) -> Failure {
    match error {
        CatalogueError::Interrupted { .. }
        | CatalogueError::Fetch(FetchError::Interrupted { .. })
        | CatalogueError::Fetch(FetchError::Cache(CacheError::Interrupted { .. }))
        | CatalogueError::Cache(CacheError::Interrupted { .. }) => Failure::Interrupted,
        CatalogueError::Fetch(_)
        | CatalogueError::Cache(_)
        | CatalogueError::Build { .. }
        | CatalogueError::File { .. } => Failure::machine(error),
        other => Failure::usage(other),
    }
}

/// Builds one allocator behind a progress bar.
fn build(catalogue: &Catalogue, name: &str) -> Result<(), Failure> {
    output::tell(format_args!("building {name}"));
    let bar = ProgressBar::new(1);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(std::time::Duration::from_millis(500));
    let mut observe = |event: BuildEvent| match event {
        BuildEvent::Step { n, of, what } => {
            bar.set_length(of as u64);
            bar.set_position(n as u64);
            bar.set_message(format!("{name}: {what}"));
        }
        BuildEvent::Fetching { package } => {
            bar.set_message(format!("{name}: fetching {package}"));
        }
        BuildEvent::Finished { .. } => {}
    };
    let built = catalogue.install(name, &mut observe);
    bar.finish_and_clear();
    let built = built.map_err(failure)?;
    if let Some(seconds) = built.seconds {
        output::tell(format_args!(
            "built {name} {} in {seconds} s",
            built.version
        ));
    }
    Ok(())
}

fn install(catalogue: &Catalogue, names: &[String]) -> Result<(), Failure> {
    let known = Names::new(catalogue);
    let all = names.iter().any(|name| name == "all");
    let mut failed = Vec::new();
    for name in known.expand(names)? {
        match build(catalogue, &name) {
            Err(Failure::Interrupted) => return Err(Failure::Interrupted),
            // One that cannot be built does not keep the others from being built.
            Err(error) => {
                output::tell(&error);
                failed.push(name);
            }
            Ok(()) => {}
        }
    }
    match failed.as_slice() {
        [] => output::print(b"All are ready.\n"),
        names if all => Err(Failure::Entrant(format!(
            "could not build: {}",
            names.join(", ")
        ))),
        names => Err(Failure::Machine(format!(
            "could not build: {}",
            names.join(", ")
        ))),
    }
}

/// The headings of the list, in the order of [`group`].
const GROUPS: [&str; 4] = [
    "Here:",
    "Can be built (a race does so by itself, or heapdrome allocators install NAME):",
    "Need a package of the system (heapdrome allocators show NAME tells which):",
    "Cannot be had here (heapdrome allocators show NAME tells why):",
];

fn group(state: &State) -> usize {
    match state {
        State::Installed { .. } => 0,
        State::Buildable => 1,
        State::NeedsPackage { .. } => 2,
        State::Unavailable { .. } => 3,
    }
}

fn list(catalogue: &Catalogue) -> Result<(), Failure> {
    let all = catalogue.list();
    let width = output::terminal().width;
    let mut text = String::new();
    for (place, heading) in GROUPS.iter().enumerate() {
        let members = all.iter().filter(|listed| group(&listed.state) == place);
        let rows: Vec<_> = members
            .map(|listed| row(listed.entry, &listed.state))
            .collect();
        if !rows.is_empty() {
            let table =
                heapdrome_report::listing(["allocator", "version", "what it is"], &rows, width);
            let _ = writeln!(text, "{heading}\n\n{table}");
        }
    }
    text.push_str("Add one of your own: heapdrome allocators add NAME PATH\n");
    output::print(text.as_bytes())
}

fn row(entry: &Entry, state: &State) -> [String; 3] {
    let (version, lacking) = match state {
        State::Installed { version, .. } => (version.clone(), String::new()),
        State::Buildable => (version_of(entry), String::new()),
        State::NeedsPackage { apt } => (version_of(entry), format!("; apt install {apt}")),
        State::Unavailable { why } => (String::new(), format!("; {why}")),
    };
    let hardened = if entry.hardened { " (hardened)" } else { "" };
    let faults: String = entry
        .known_faults
        .iter()
        .map(|fault| format!("; {fault}"))
        .collect();
    [
        entry.name.clone(),
        version,
        format!("{}{hardened}{lacking}{faults}", entry.summary),
    ]
}

fn version_of(entry: &Entry) -> String {
    entry.version.clone().unwrap_or_default()
}

/// All that is known of an entry.
fn described(entry: &Entry, state: &State) -> String {
    let mut text = format!("{}: {}\n", entry.name, entry.summary);
    let mut say = |what: &str, value: &str| {
        if !value.is_empty() {
            let _ = writeln!(text, "  {what:<14}{value}");
        }
    };
    say("family", &entry.family);
    say("version", &version_of(entry));
    say("also called", &entry.aliases.join(", "));
    say("licence", &entry.licence);
    say("home", &entry.homepage);
    say("hardened", if entry.hardened { "yes" } else { "no" });
    say("from", &origin(&entry.source));
    match state {
        State::Installed { path, version } => {
            say("library", &path.display().to_string());
            say("found version", version);
            if let Ok(digest) = sha256_of_file(path) {
                say("SHA-256", &digest);
            }
        }
        State::Buildable => say("state", "not built yet; race it, or use allocators install"),
        State::NeedsPackage { apt } => say("state", &format!("needs: apt install {apt}")),
        State::Unavailable { why } => say("state", &format!("cannot be had: {why}")),
    }
    for (key, value) in &entry.settings {
        say("setting", &format!("{key}={value}"));
    }
    for fault in &entry.known_faults {
        say("known fault", fault);
    }
    text
}

fn origin(source: &Source) -> String {
    match source {
        Source::Libc => "the C library".to_owned(),
        Source::System(library) => format!("Debian package {}", library.apt),
        Source::Crate { pin, .. } => {
            format!(
                "crate {} {} (SHA-256 {})",
                pin.name, pin.version, pin.sha256
            )
        }
        Source::Debian { pin, .. } => {
            format!(
                "Debian source package {} {}",
                pin.package, pin.upstream_version
            )
        }
        Source::Own { .. } | Source::Carried(_) => "heapdrome's own".to_owned(),
        Source::User(path) => format!("your own {}", path.display()),
        Source::Unavailable(_) => String::new(),
    }
}

fn check(catalogue: &Catalogue, folders: &Folders, names: &[String]) -> Result<(), Failure> {
    let known = Names::new(catalogue);
    let checks = Checks::prepare(&folders.cache).map_err(failure)?;
    let mut broken = Vec::new();
    for name in known.expand(names)? {
        let entrant = known.ready(&name)?;
        let results = checks.run(&entrant).map_err(failure)?;
        let mut text = format!("{name}\n");
        for result in &results {
            let _ = writeln!(text, "  {:<18}{}", result.program, outcome_words(result));
        }
        if results
            .iter()
            .any(|result| result.outcome != CheckOutcome::Passed)
        {
            broken.push(name);
        }
        output::print(text.as_bytes())?;
    }
    match broken.as_slice() {
        [] => Ok(()),
        names => Err(Failure::Entrant(format!(
            "a check failed under: {}",
            names.join(", ")
        ))),
    }
}

fn outcome_words(result: &CheckResult) -> String {
    let outcome = match &result.outcome {
        CheckOutcome::Passed => "passed".to_owned(),
        CheckOutcome::Broke(how) => format!("BROKE: {how}"),
        CheckOutcome::Hung(limit) => format!("HUNG: did not end within {} s", limit.as_secs()),
        CheckOutcome::NotServed(why) => format!("NOT SERVED: {why}"),
    };
    if result.notes.is_empty() {
        outcome
    } else {
        format!("{outcome} ({})", result.notes.join("; "))
    }
}

/// How to use the winner of a race from now on.
pub fn adoption(
    winner: &EntrantResult,
    preload: Vec<PathBuf>,
    command: &[String],
    folders: &Folders,
) -> String {
    let catalogue = Catalogue::load(&folders.cache, &folders.config).ok();
    let entry = catalogue
        .as_ref()
        .and_then(|catalogue| catalogue.find(&winner.allocator).ok());
    let package = match entry.map(|entry| &entry.source) {
        Some(Source::System(library)) => Some(library.apt.clone()),
        _ => None,
    };
    let cached = preload
        .iter()
        .all(|path| path.starts_with(folders.cache.root()));
    let adoption = Adoption {
        allocator: winner.allocator.clone(),
        preload,
        cached,
        settings: winner.settings.clone(),
        package,
        rust: entry.and_then(|entry| entry.adoption.rust.clone()),
        cmake: entry.and_then(|entry| entry.adoption.cmake.clone()),
        command: command.to_vec(),
    };
    adopt::text(&adoption, output::terminal().width)
}
