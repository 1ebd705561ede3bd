//! RocksDB's own benchmark, in a folder that is created again before each run.

use heapdrome_packages::quoted;
use heapdrome_schema::{Better, Metric};

use crate::request::{Request, words};
use crate::{Event, Prepared, ProgramError};

/// Steps of the benchmark, in order. The rate of each step is a figure.
const STEPS: [&str; 4] = ["fillrandom", "overwrite", "readrandom", "seekrandom"];

/// Settings that make runs similar: small buffers and a small cache, so that compaction has work;
/// no compression, no waiting for the disk, and no write stall. In a write stall, writers would
/// sleep while a slow machine compacts.
const SETTINGS: [&str; 11] = [
    "--db=run/db",
    "--seed=42",
    "--compression_type=none",
    "--sync=0",
    "--write_buffer_size=4194304",
    "--cache_size=8388608",
    "--max_background_jobs=2",
    "--level0_slowdown_writes_trigger=1000",
    "--level0_stop_writes_trigger=1000",
    "--soft_pending_compaction_bytes_limit=0",
    "--hard_pending_compaction_bytes_limit=0",
];

pub(super) fn prepare(
    request: &Request<'_>,
    on_event: &mut dyn FnMut(Event),
) -> Result<Prepared, ProgramError> {
    // There is no input; the folder is the working directory.
    let input = request.input(&["rocksdb"], on_event, &|_| Ok(()))?;
    let values = &request.values;
    let mut command = words(&[&request.tool(0)]);
    command.push(format!("--benchmarks={}", STEPS.join(",")));
    for (option, parameter) in [
        ("num", "keys"),
        ("value_size", "value_bytes"),
        ("threads", "threads"),
    ] {
        command.push(format!("--{option}={}", values.word(parameter)));
    }
    command.extend(words(&SETTINGS));
    let run = quoted(&input.directory.join("run").to_string_lossy());
    let mut prepared = request.prepared(input, command);
    prepared.prepare = Some(format!("rm -rf {run} && mkdir {run}"));
    prepared.metrics = STEPS.map(metric).into();
    // The output contains times, which differ from run to run.
    prepared.repeatable_output = false;
    Ok(prepared)
}

fn metric(step: &str) -> Metric {
    Metric {
        name: format!("{step}_per_s"),
        pattern: format!(r"{step} +: +[0-9.]+ micros/op ([0-9]+) ops/sec"),
        better: Better::Higher,
    }
}
