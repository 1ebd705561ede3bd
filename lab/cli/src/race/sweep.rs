//! `heapdrome race -t 1,2,4`: one race for each number of threads.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

use heapdrome_record::{Collection, Member, RaceResult, SCHEMA, Status};

use super::cell::{CellRequest, run_cell};
use super::options::options;
use super::planning::{self, seed_from_clock, stopping};
use super::store::ProofStore;
use crate::arguments::RaceArguments;
use crate::failure::Failure;
use crate::folders::Folders;
use crate::workload::{Asked, THREADS};
use crate::{interrupt, output, placement};

/// Runs the races, and reports what came of them: also of those that were done before an interrupt.
///
/// # Errors
/// As a race; when several end with a failure, the first is told.
pub fn sweep(arguments: &RaceArguments) -> Result<(), Failure> {
    let asked = planning::workload(arguments)?;
    let values = values(arguments)?;
    let asked = asked.as_ref().into_iter();
    let loads: Vec<Asked> = asked
        .flat_map(|asked| values.iter().map(|threads| asked.with_threads(*threads)))
        .collect::<Result<_, _>>()?;
    let interrupt = interrupt::flag()?;
    let folders = Folders::find()?.interrupted_by(&interrupt);
    let requests = requests(arguments, &values, &loads)?;
    let mut collection = empty();
    let ended = run(&requests, &values, &mut collection, &folders, &interrupt);
    if collection.races.is_empty() {
        return ended;
    }
    let left = &values[collection.races.len()..];
    if ended.is_err() && !left.is_empty() {
        let left: Vec<_> = left.iter().map(u64::to_string).collect();
        let left = left.join(",");
        collection
            .remarks
            .push(format!("not raced: {left} threads"));
        output::tell(format_args!(
            "what was done is reported; race the rest with -t {left}"
        ));
    }
    output::publish_collection(&collection, &arguments.output, Some(&folders.redaction()))?;
    ended.and_then(|()| outcome(&collection))
}

/// The numbers of threads, none of them twice.
fn values(arguments: &RaceArguments) -> Result<Vec<u64>, Failure> {
    let values = arguments.threads.clone();
    let twice = values
        .iter()
        .enumerate()
        .find(|(place, value)| values[..*place].contains(value));
    match twice {
        Some((_, value)) => Err(Failure::Usage(format!("-t: {value} is given twice"))),
        None => Ok(values),
    }
}

fn requests(
    arguments: &RaceArguments,
    values: &[u64],
    loads: &[Asked],
) -> Result<Vec<CellRequest>, Failure> {
    let options = options(arguments)?;
    let stopping = stopping(&arguments.stopping, arguments.quick)?;
    let seed = arguments.seed.unwrap_or_else(seed_from_clock);
    let of = values.len();
    let request = |(place, (threads, load)): (usize, (&u64, &Asked))| CellRequest {
        cell: format!("{THREADS}={threads}"),
        title: format!(
            "[{} of {of}] {}, {threads} {}",
            place + 1,
            load.name(),
            if *threads == 1 { "thread" } else { "threads" }
        ),
        workload: load.name().to_owned(),
        words: load.words(),
        quick: false,
        allocators: arguments.allocators.clone(),
        baseline: arguments.baseline.clone(),
        stopping: stopping.clone(),
        options: heapdrome_record::Options {
            pin: placement::processors(*threads),
            ..options.clone()
        },
        seed,
        asked: std::env::args().skip(1).collect(),
    };
    Ok(values.iter().zip(loads).enumerate().map(request).collect())
}

/// Runs one race after the other, each of which joins the collection as soon as it is done.
fn run(
    requests: &[CellRequest],
    values: &[u64],
    collection: &mut Collection,
    folders: &Folders,
    interrupt: &Arc<AtomicBool>,
) -> Result<(), Failure> {
    let mut proofs = ProofStore::default();
    for (request, threads) in requests.iter().zip(values) {
        interrupt::check(interrupt)?;
        output::tell(&request.title);
        let result = run_cell(request, folders, Some(&mut proofs), interrupt)?;
        if collection.races.is_empty() {
            collection.machine = result.machine.clone();
        }
        collection.races.push(Member {
            cell: request.cell.clone(),
            workload: request.workload.clone(),
            parameters: request.words.clone(),
            swept: Some(*threads),
            processors: request.options.pin.clone(),
            factor: None,
            result,
        });
    }
    Ok(())
}

fn empty() -> Collection {
    Collection {
        schema: SCHEMA,
        heapdrome: env!("CARGO_PKG_VERSION").to_owned(),
        started: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        asked: std::env::args().skip(1).collect(),
        name: format!("sweep {THREADS}"),
        scale: None,
        machine: heapdrome_record::Machine::default(),
        races: Vec::new(),
        ccdfs: Vec::new(),
        misuse: Vec::new(),
        claims: Vec::new(),
        absent: Vec::new(),
        tables: Vec::new(),
        remarks: Vec::new(),
    }
}

/// The exit status of a sweep that has been reported.
fn outcome(collection: &Collection) -> Result<(), Failure> {
    let out = |result: &RaceResult| {
        let rows = result.entrants.iter();
        let failed = rows.filter(|row| row.status != Status::Ok);
        failed
            .map(|row| row.allocator.clone())
            .collect::<Vec<_>>()
            .join(", ")
    };
    let named: Vec<_> = collection
        .races
        .iter()
        .map(|race| (&race.cell, out(&race.result)))
        .filter(|(_, names)| !names.is_empty())
        .map(|(cell, names)| format!("{names} ({cell})"))
        .collect();
    match named.as_slice() {
        [] => Ok(()),
        named => Err(Failure::Entrant(format!(
            "not in the race: {}",
            named.join("; ")
        ))),
    }
}
