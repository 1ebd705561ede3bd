//! Descriptions of allocators as text: the list of all, and the details of one.

use std::fmt::Write as _;

use heapdrome_registry::{Entry, Registry, Source, State};
use heapdrome_system::sha256_of_file;

use crate::failure::Failure;
use crate::output;

/// Headings of the groups of allocators, indexed by [`group`].
const GROUPS: [&str; 4] = [
    "Here:",
    "Can be built (a race does so by itself, or heapdrome allocators install NAME):",
    "Need a package of the system (heapdrome allocators show NAME names it):",
    "Not available here (heapdrome allocators show NAME explains why):",
];

fn group(state: &State) -> usize {
    match state {
        State::Installed { .. } => 0,
        State::Buildable => 1,
        State::NeedsPackage { .. } => 2,
        State::Unavailable { .. } => 3,
    }
}

/// Prints all allocators, grouped by availability.
pub(super) fn list(registry: &Registry) -> Result<(), Failure> {
    let all = registry.list();
    let width = output::terminal().width;
    let mut text = String::new();
    for (place, heading) in GROUPS.iter().enumerate() {
        let members = all.iter().filter(|listed| group(&listed.state) == place);
        let rows: Vec<_> = members
            .map(|listed| row(listed.entry, &listed.state, registry))
            .collect();
        if !rows.is_empty() {
            let table =
                heapdrome_report::listing(["allocator", "version", "description"], &rows, width);
            let _ = writeln!(text, "{heading}\n\n{table}");
        }
    }
    text.push_str("Add your own: heapdrome allocators add NAME PATH\n");
    output::print(text.as_bytes())
}

fn row(entry: &Entry, state: &State, registry: &Registry) -> [String; 3] {
    let (version, lacking) = match state {
        State::Installed { version, .. } => (version.clone(), String::new()),
        State::Buildable => (version_of(entry), String::new()),
        State::NeedsPackage { apt } => (version_of(entry), format!("; apt install {apt}")),
        State::Unavailable { why } => (String::new(), format!("; {why}")),
    };
    let hardened = if entry.hardened { " (hardened)" } else { "" };
    let faults = faults(entry, registry);
    [
        entry.name.clone(),
        version,
        format!("{}{hardened}{lacking}{faults}", entry.summary),
    ]
}

/// Lists the faults of an entry. A variant names its base instead of repeating the base's faults.
fn faults(entry: &Entry, registry: &Registry) -> String {
    let base = entry
        .base
        .as_ref()
        .and_then(|name| registry.find(name).ok());
    let of_base: Vec<&String> = base.iter().flat_map(|base| base.faults()).collect();
    let mut own: Vec<String> = entry
        .faults()
        .filter(|fault| !of_base.contains(fault))
        .map(|fault| format!("; {fault}"))
        .collect();
    if let Some(base) = base.filter(|_| !of_base.is_empty()) {
        own.push(format!("; faults of {}", base.name));
    }
    own.concat()
}

fn version_of(entry: &Entry) -> String {
    entry.version.clone().unwrap_or_default()
}

/// Formats all details of an allocator.
pub(super) fn described(entry: &Entry, state: &State) -> String {
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
        State::Unavailable { why } => say("state", &format!("not available: {why}")),
    }
    for (key, value) in &entry.settings {
        say("setting", &format!("{key}={value}"));
    }
    for fault in entry.faults() {
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
