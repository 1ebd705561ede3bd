//! The companion process, which runs a program and prints one line of figures.

use std::collections::BTreeMap;
use std::fs::File;
use std::process::ExitCode;

use heapdrome_schema::WorkloadReport;
use heapdrome_system::companion;

use crate::engine::{Libc, Outcome, replay};
use crate::options::Touch;

/// Name of the companion's executable.
pub const NAME: &str = "heapdrome-replay";

/// Names of the figures that a replay reports in addition to those of every workload. Each name
/// comes with whether a higher value is better.
pub const FIGURES: [(&str, bool); 7] = [
    ("ns_per_operation", false),
    ("growth_bytes", false),
    ("growth_over_floor", false),
    ("end_resident_bytes", false),
    (TABLES, false),
    (FAULTS, false),
    ("behind_s", false),
];

/// Name of the figure for the engine's memory that stays resident throughout.
pub const TABLES: &str = "tables_bytes";

/// Name of the figure for minor page faults during the operations, excluding those of the engine
/// itself.
pub const FAULTS: &str = "operation_faults";

const USAGE: &str = "write: heapdrome-replay PROGRAM [--touch none|first|pages|all|check], where heapdrome \
                     has compiled PROGRAM of a trace";

/// Main function of the companion: `heapdrome-replay PROGRAM [--touch HOW]`.
///
/// Prints the [`WorkloadReport`] as one line of JSON and returns 0. On failure, prints one line on
/// standard error. The exit status is then 1 if the allocator failed, and 2 for every other
/// failure.
pub fn main() -> ExitCode {
    let line = report(&companion::words());
    let printed = line.and_then(|line| {
        companion::print(&line).map_err(|error| format!("cannot write the result: {error}"))
    });
    companion::end(NAME, printed.map_err(|line| (2, line)))
}

fn report(words: &[String]) -> Result<String, String> {
    let (path, touch) = match words {
        [path] => (path, Touch::default()),
        [path, option, touch] if option == "--touch" => (path, Touch::find(touch).ok_or(USAGE)?),
        _ => return Err(USAGE.to_owned()),
    };
    let failed = |why: &dyn std::fmt::Display| format!("{path}: {why}");
    let file = File::open(path).map_err(|error| failed(&error))?;
    // SAFETY: `replay` accepts only a file whose header has the right checksum, so `compile` wrote
    // the file. heapdrome gives it a name only once it is complete, and does not change it.
    let outcome = unsafe { replay(&file, touch, &Libc) };
    let outcome = outcome.map_err(|error| failed(&error))?;
    serde_json::to_string(&told(&outcome, touch)).map_err(|error| error.to_string())
}

/// Converts the outcome of a replay into a report.
fn told(outcome: &Outcome, touch: Touch) -> WorkloadReport {
    let header = &outcome.header;
    let (operations, floor) = (header.operations as f64, header.floor as f64);
    let cpu = outcome.elapsed.cpu.as_secs_f64();
    let wall = outcome.elapsed.wall.as_secs_f64();
    let net = outcome.after.peak_resident.saturating_sub(outcome.own) as f64;
    let growth = outcome.growth() as f64;
    let mut figures = vec![
        ("wall_s", wall),
        ("cpu_s", cpu),
        ("peak_requested_bytes", floor),
        ("peak_resident_bytes", net),
        ("end_resident_bytes", outcome.after.resident as f64),
        ("growth_bytes", growth),
        ("own_bytes", outcome.own as f64),
        (TABLES, outcome.tables as f64),
        (FAULTS, outcome.faults as f64),
        ("behind_s", outcome.late as f64 / 1e9),
    ];
    if operations > 0.0 {
        figures.push(("ns_per_operation", wall * 1e9 / operations));
    }
    if cpu > 0.0 {
        figures.push(("operations_per_cpu_s", operations / cpu));
    }
    if floor > 0.0 {
        figures.push(("overhead", net / floor));
        figures.push(("growth_over_floor", growth / floor));
    }
    let named = figures
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value));
    WorkloadReport {
        workload: "replay".to_owned(),
        parameters: format!(
            "process={} speed={} touch={touch}",
            header.process, header.speed
        ),
        operations: header.operations,
        checksum: format!("{:016x}", header.digest),
        figures: named.collect::<BTreeMap<_, _>>(),
    }
}
