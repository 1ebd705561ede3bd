//! Differences in the setup of two races, and the resulting basis of their comparison.

use heapdrome_schema::{Changes, Machine, Options, RaceResult};

use super::pairs::{Both, Pair, Pairs};

/// Returns the differences between the setups of the two races.
pub fn differs(pair: &Pair<'_>) -> Vec<String> {
    let (old, new) = (pair.old, pair.new);
    let mut told = Vec::new();
    let mut tell = |what: &str, old: String, new: String| {
        if old != new {
            let known = |text: String| {
                if text.is_empty() {
                    "none".to_owned()
                } else {
                    text
                }
            };
            told.push(format!("{what}: {}, then {}", known(old), known(new)));
        }
    };
    tell("baseline", old.baseline.clone(), new.baseline.clone());
    for (what, of) in OPTIONS {
        tell(what, of(&old.options), of(&new.options));
    }
    tell("program", program(old), program(new));
    for both in &pair.compared(true) {
        let name = &both.new.allocator;
        tell(
            &format!("{name}, version"),
            both.old.version.clone(),
            both.new.version.clone(),
        );
        tell(
            &format!("{name}, settings"),
            settings(both).0,
            settings(both).1,
        );
        if both.old.version == both.new.version && !both.is_same_library() {
            let hashes = [&both.old.sha256, &both.new.sha256];
            let [old, new] = hashes.map(|hash| hash.clone().unwrap_or_default());
            tell(&format!("{name}, SHA-256"), brief(&old), brief(&new));
        }
    }
    told
}

/// An option's name, with a function that formats its value.
type Told = (&'static str, fn(&Options) -> String);

/// Options whose differences are reported, because they affect the figures.
const OPTIONS: [Told; 7] = [
    ("environment", |options| {
        let pairs = options.environment.iter();
        let pairs: Vec<_> = pairs.map(|(key, value)| format!("{key}={value}")).collect();
        pairs.join(" ")
    }),
    ("processors", |options| {
        let list: Vec<_> = options.pin.iter().map(usize::to_string).collect();
        list.join(",")
    }),
    ("prepare", |options| {
        options.prepare.clone().unwrap_or_default()
    }),
    ("setup", |options| options.setup.clone().unwrap_or_default()),
    ("standard input", |options| {
        let file = options.stdin.as_ref();
        file.map(|file| file.display().to_string())
            .unwrap_or_default()
    }),
    ("server", |options| {
        let server = options.server.as_ref();
        server
            .map(|server| server.serve.clone())
            .unwrap_or_default()
    }),
    ("warm-up rounds", |options| {
        options.warmup_rounds.to_string()
    }),
];

/// Returns the first word of a user's command; empty for a workload.
fn program(result: &RaceResult) -> String {
    match &result.options.workload {
        Some(_) => String::new(),
        None => result.command.first().cloned().unwrap_or_default(),
    }
}

fn settings(both: &Both<'_>) -> (String, String) {
    let words = |settings: &std::collections::BTreeMap<String, String>| {
        let pairs = settings.iter().map(|(key, value)| format!("{key}={value}"));
        pairs.collect::<Vec<_>>().join(" ")
    };
    (words(&both.old.settings), words(&both.new.settings))
}

/// Returns the first digits of a hash, which are enough to distinguish two files for a reader.
fn brief(hash: &str) -> String {
    hash.chars().take(12).collect()
}

/// Returns the assumptions behind the verdicts, and reasons to doubt them.
pub fn rests_on(changes: &Changes, pairs: &Pairs<'_>) -> Vec<String> {
    let mut told = Vec::new();
    let machines = differing_machines(&changes.old.machine, &changes.new.machine);
    let baseline = pairs
        .pairs
        .first()
        .map_or("", |pair| pair.new.baseline.as_str());
    if changes.same_machine {
        told.push(format!(
            "Both results describe the same machine, so each figure is compared directly. This assumes \
             that the machine ran at the same speed in both races, which no interval covers. Therefore \
             a change is shown only if the ratio to {baseline} shows it, too, except for memory, which \
             does not depend on speed."
        ));
    } else {
        told.push(format!(
            "The machines differ, or count as different, so ratios to {baseline} are compared: the gain \
             or loss of each allocator relative to {baseline}. If a machine affects an allocator \
             differently from {baseline}, that counts as a change."
        ));
    }
    if !machines.is_empty() {
        told.push(format!("The machines: {}.", machines.join("; ")));
    }
    let changed = pairs
        .pairs
        .iter()
        .any(|pair| pair.baseline().is_some_and(|both| !both.is_same_library()));
    if changed {
        told.push(format!(
            "{baseline} differs between the results in library or settings: part of a change relative to \
             it may be its own."
        ));
    }
    told.extend(drifted(changes, pairs));
    told
}

/// Returns the differences between the descriptions of two machines.
fn differing_machines(old: &Machine, new: &Machine) -> Vec<String> {
    let gib = |machine: &Machine| heapdrome_schema::Bytes(machine.memory_bytes).to_string();
    let parts = [
        ("processor", old.processor.clone(), new.processor.clone()),
        (
            "processors",
            old.processors.to_string(),
            new.processors.to_string(),
        ),
        ("memory", gib(old), gib(new)),
        ("kernel", old.kernel.clone(), new.kernel.clone()),
        ("C library", old.libc.clone(), new.libc.clone()),
        (
            "distribution",
            old.distribution.clone(),
            new.distribution.clone(),
        ),
    ];
    let parts = parts.into_iter().filter(|(_, old, new)| old != new);
    parts
        .map(|(what, old, new)| format!("{what} {old}, then {new}"))
        .collect()
}

/// Returns remarks on baselines whose wall time changed although their library did not. Then the
/// machine, the command or its input has changed.
fn drifted(changes: &Changes, pairs: &Pairs<'_>) -> Vec<String> {
    let mut told = Vec::new();
    for (pair, compared) in pairs.pairs.iter().zip(&changes.pairs) {
        let Some(baseline) = pair.new.baseline_row() else {
            continue;
        };
        let wall = compared
            .changes
            .iter()
            .find(|change| change.allocator == baseline.allocator && change.figure == "wall_s");
        let Some(factor) = wall
            .and_then(|change| change.itself)
            .filter(|factor| factor.low > 1.0 || factor.high < 1.0)
            .filter(|_| pair.same_baseline())
        else {
            continue;
        };
        let place = pair
            .cell
            .as_ref()
            .map_or(String::new(), |cell| format!(" in {cell}"));
        told.push(format!(
            "{}, the same library in both, took {:.3} times as long{place} ({:.3} to {:.3}): the \
             machine, the command or its input changed, too.",
            baseline.allocator, factor.ratio, factor.low, factor.high
        ));
    }
    told
}
