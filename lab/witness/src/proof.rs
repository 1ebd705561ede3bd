//! Combines the findings on each program into the proof.

use std::collections::{BTreeMap, HashMap};

use heapdrome_schema::{Coverage, Nanoseconds, Proof, Unserved, UnservedReason};

use crate::advice::advice;
use crate::judge::{Expected, Verdict, judge};
use crate::ledger::{Counts, Ledger, is_runtime};
use crate::tree::Image;

/// Program that one process of the tree ran.
#[derive(Clone, Debug, PartialEq)]
pub struct ImageReport {
    /// ID of the process.
    pub pid: i32,
    /// The path of the executable.
    pub program: String,
    /// Arguments of the program.
    pub arguments: Vec<String>,
    /// Processor time that the program used.
    pub cpu: Nanoseconds,
    /// The object that served malloc, if known.
    pub served_by: Option<String>,
    /// Number of calls to the allocation ABI that the witness counted, regardless of the object
    /// that served them.
    pub calls: u64,
    /// Number of bytes requested in calls that reached any allocator.
    pub requested_bytes: u64,
    /// Reason why the entrant did not serve the program; `None` if it did.
    pub unserved: Option<UnservedReason>,
}

/// Returns the proof, and a report on each image that counts as a process.
pub(crate) fn conclude(
    images: &[Image],
    expected: &Expected,
    key: String,
) -> (Proof, Vec<ImageReport>) {
    let verdicts = judge(images, expected);
    let cpu: u64 = images.iter().map(|image| image.cpu).sum();
    let counted = || {
        images
            .iter()
            .zip(&verdicts)
            .filter(|(_, verdict)| verdict.counts)
    };
    let served = |verdict: &Verdict| verdict.unserved.is_none();
    let servers = counts_by_server(images);
    let own = || {
        let servers = servers.values();
        servers.filter(|counts| expected.matches(&counts.server))
    };
    let calls = own().map(|counts| counts.calls).sum();
    let requested_bytes = own().map(|counts| counts.bytes).sum();
    let unserved = unserved(images, &verdicts, cpu);
    let busiest = servers.values().max_by_key(|counts| counts.calls);
    let served_by = busiest
        .filter(|counts| counts.calls > 0)
        .map(|counts| counts.server.clone());
    let served_by =
        served_by.or_else(|| unserved.first().and_then(|first| first.served_by.clone()));
    let proof = Proof {
        coverage: coverage(calls, &unserved),
        served_by,
        calls,
        requested_bytes,
        processes: counted().count() as u64,
        operator_new: Some(ledgers(images).any(|ledger| ledger.operator_new)),
        served_processes: counted().filter(|(_, verdict)| served(verdict)).count() as u64,
        cpu: Nanoseconds(cpu),
        unserved,
        warnings: [warnings(images, cpu), own_operators(images, expected)].concat(),
        key,
        taken_in: None,
    };
    let reports = counted().map(|(image, verdict)| report(image, verdict));
    (proof, reports.collect())
}

/// Classifies the share of the command that the entrant served. `calls` is the number of calls that
/// the entrant served; `unserved` lists the programs that it did not serve.
fn coverage(calls: u64, unserved: &[Unserved]) -> Coverage {
    let share: f64 = unserved.iter().map(|part| part.cpu_share).sum();
    if calls == 0 || 1.0 - share < Proof::ENOUGH {
        Coverage::TooLittle
    } else if unserved.is_empty() {
        Coverage::Whole
    } else {
        Coverage::Most
    }
}

fn report(image: &Image, verdict: &Verdict) -> ImageReport {
    let ledger = || image.ledger.iter();
    let calls = ledger().flat_map(|ledger| &ledger.counts);
    let bytes = ledger().flat_map(Ledger::of_allocators);
    ImageReport {
        pid: image.pid,
        program: image.program.path.to_string_lossy().into_owned(),
        arguments: image.program.arguments.clone(),
        cpu: Nanoseconds(image.cpu),
        served_by: verdict.served_by.clone(),
        calls: calls.map(|counts| counts.calls).sum(),
        requested_bytes: bytes.map(|counts| counts.bytes).sum(),
        unserved: verdict.unserved,
    }
}

/// Returns the path of the first program that the kernel did not allow to trace another process.
pub(crate) fn refused_tracer(images: &[Image]) -> Option<String> {
    let mut images = images.iter();
    let traces = |image: &&Image| image.ledger.as_ref().is_some_and(|ledger| ledger.traces);
    let found = images.find(traces)?;
    Some(found.program.path.to_string_lossy().into_owned())
}

/// Returns the ledgers of all programs that left a record.
fn ledgers(images: &[Image]) -> impl Iterator<Item = &Ledger> {
    images.iter().flat_map(|image| &image.ledger)
}

/// Returns the counts of each allocator over all programs, keyed by the allocator's path.
fn counts_by_server(images: &[Image]) -> HashMap<&str, Counts> {
    let mut servers: HashMap<&str, Counts> = HashMap::new();
    for counts in ledgers(images).flat_map(Ledger::of_allocators) {
        let sum = servers.entry(&counts.server).or_insert_with(|| Counts {
            server: counts.server.clone(),
            ..Counts::default()
        });
        sum.calls += counts.calls;
        sum.bytes += counts.bytes;
    }
    servers
}

fn unserved(images: &[Image], verdicts: &[Verdict], cpu: u64) -> Vec<Unserved> {
    type Group = (String, UnservedReason, Option<String>);
    let mut groups: BTreeMap<Group, (u64, u64)> = BTreeMap::new();
    for (image, verdict) in images.iter().zip(verdicts) {
        let Some(reason) = verdict.unserved else {
            continue;
        };
        let program = image.program.path.to_string_lossy().into_owned();
        let group = groups
            .entry((program, reason, verdict.served_by.clone()))
            .or_default();
        group.0 += u64::from(verdict.counts);
        group.1 += image.cpu;
    }
    let share = |part: u64| {
        if cpu == 0 {
            0.0
        } else {
            part as f64 / cpu as f64
        }
    };
    let part = |((program, reason, served_by), (processes, time)): (Group, (u64, u64))| Unserved {
        program,
        processes,
        cpu_share: share(time),
        reason,
        advice: advice(reason, served_by.as_deref()),
        served_by,
    };
    // An image that only executed another program does not count as a process, but its time counts.
    let mut parts: Vec<Unserved> = groups.into_iter().map(part).collect();
    parts.sort_by(|a, b| b.cpu_share.total_cmp(&a.cpu_share));
    parts
}

fn warnings(images: &[Image], cpu: u64) -> Vec<String> {
    let mut python = 0;
    let mut warnings: Vec<String> = Vec::new();
    for image in images {
        let program = &image.program;
        if is_python(image) && program.python_malloc.as_deref().is_none_or(str::is_empty) {
            python += image.cpu;
        }
        let private = program
            .object
            .as_ref()
            .and_then(|object| object.private_malloc.as_ref());
        let warning = if let Some(name) = private {
            format!(
                "{} also contains an allocator under a name of its own ({name}); its allocations \
                 there reach no other allocator and are not counted.",
                program.path.display()
            )
        } else if image.ledger.as_ref().is_some_and(|ledger| ledger.traces) {
            format!(
                "{} traces programs itself, which the kernel does not allow while the witness \
                 watches it: the proof cannot cover it.",
                program.path.display()
            )
        } else {
            continue;
        };
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
    if python > 0 {
        let share = 100.0 * python as f64 / cpu.max(1) as f64;
        warnings.push(format!(
            "CPython ({share:.0}% of the processor time) serves objects up to 512 bytes from \
             its own allocator, so that few calls reach any malloc: set PYTHONMALLOC=malloc for every \
             entrant to include them in the race."
        ));
    }
    warnings
}

/// Returns a warning for each `operator new` that served most of its calls without malloc and
/// belongs neither to the entrant nor to the C++ runtime.
fn own_operators(images: &[Image], expected: &Expected) -> Vec<String> {
    // For each object that defines the operator: the number of observed calls, and the minimum
    // number of them that reached no malloc.
    let mut seen: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let mut add = |object: String, calls: u64, apart: u64| {
        let sum = seen.entry(object).or_default();
        (sum.0, sum.1) = (sum.0 + calls, sum.1 + apart);
    };
    for image in images {
        if let Some(own) = image.own_new.filter(|own| own.keeps_a_pool()) {
            let path = image.program.path.to_string_lossy().into_owned();
            add(path, u64::from(own.watched), u64::from(own.apart));
        }
        let Some(ledger) = &image.ledger else {
            continue;
        };
        let foreign = ledger.news.iter();
        let foreign =
            foreign.filter(|one| !is_runtime(&one.server) && !expected.matches(&one.server));
        for one in foreign {
            // If each call to the operator had reached malloc, there would be at least as many
            // calls to malloc as to the operator.
            let apart = one.calls.saturating_sub(ledger.mallocs);
            if 2 * apart > one.calls {
                add(one.server.clone(), one.calls, apart);
            }
        }
    }
    let told = |(object, (calls, apart)): (String, (u64, u64))| {
        format!(
            "{object} has an operator new of its own, and at least {apart} of {calls} calls of it \
             reached no malloc: the race only affects calls of malloc."
        )
    };
    seen.into_iter().map(told).collect()
}

fn is_python(image: &Image) -> bool {
    let library = |path: &std::path::PathBuf| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("libpython"))
    };
    let name = image.program.name();
    let digits = name
        .strip_prefix("python")
        .map(|rest| rest.trim_start_matches(['.', '-']));
    digits.is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '.'))
        || image
            .inspection
            .as_ref()
            .is_some_and(|seen| seen.loaded.iter().any(library))
}
