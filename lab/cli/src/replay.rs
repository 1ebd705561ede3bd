//! `heapdrome replay`: replays a trace once, under one allocator.

use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use heapdrome_engine::Engine;
use heapdrome_engine::workload::trace::{Replay, Source};
use heapdrome_schema::{Bytes, Ending, WorkloadReport};
use heapdrome_system::child::{self, Limits, WaitError};

use crate::allocators::Names;
use crate::arguments::{HowArguments, ReplayArguments};
use crate::exec::environment;
use crate::failure::Failure;
use crate::{output, progress};

/// Replays the trace and prints the measured figures.
///
/// # Errors
/// If the trace cannot be read, the allocator cannot be found or built, the replay fails, or the
/// user interrupts it.
pub fn replay(arguments: &ReplayArguments) -> Result<(), Failure> {
    let engine = progress::engine()?;
    let _hold = engine.folders.cache.hold().map_err(Failure::machine)?;
    let replay = asked(&arguments.trace, &arguments.how)?;
    replay.check()?;
    let registry = engine.registry()?;
    let entrant = Names::new(&registry, &engine).ready(&arguments.allocator)?;
    let program = replay.compiled(&engine)?;
    program.notes().iter().for_each(output::tell);
    let words = program.command(replay.touch);
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).envs(environment(&entrant));
    let report = run(command, &arguments.allocator, &engine)?;
    output::print(table(&report).as_bytes())
}

/// Returns the replay that a command line requests.
///
/// # Errors
/// If no built-in trace has this name, or the path is not valid UTF-8.
pub fn asked(trace: &Path, how: &HowArguments) -> Result<Replay, Failure> {
    Ok(Replay {
        trace: Source::named(trace)?,
        process: how.process,
        speed: how.speed.unwrap_or_default(),
        touch: how.touch.unwrap_or_default(),
    })
}

/// Result of a companion process.
pub struct Ran {
    /// Exit status of the process; `None` if it was killed because it exceeded a limit.
    pub status: Option<ExitStatus>,
    /// Standard output of the process.
    pub out: String,
    /// Standard error of the process.
    pub errors: String,
}

/// Runs a companion process until it ends. Kills it if it exceeds a limit.
///
/// # Errors
/// If the companion cannot be run, or the user interrupts it.
pub fn to_its_end(mut command: Command, limits: Limits, engine: &Engine) -> Result<Ran, Failure> {
    child::in_own_group(&mut command);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let failed = |error| Failure::Machine(format!("cannot run the replay: {error}"));
    let mut running = command.spawn().map_err(failed)?;
    let (out, errors) = (running.stdout.take(), running.stderr.take());
    let (out, errors) = (child::collect(out), child::collect(errors));
    let interrupt = engine.folders.cache.interrupt();
    let status = match child::wait(&mut running, limits, interrupt) {
        Ok(child::Ended::Itself(status)) => Some(status),
        Ok(child::Ended::OverLimit) => None,
        Err(WaitError::Interrupted) => return Err(Failure::Interrupted),
        Err(WaitError::Io(error)) => return Err(failed(error)),
    };
    let text = |bytes: std::thread::JoinHandle<Vec<u8>>| {
        String::from_utf8_lossy(&bytes.join().unwrap_or_default()).into_owned()
    };
    Ok(Ran {
        status,
        out: text(out),
        errors: text(errors),
    })
}

impl Ran {
    /// Returns the reason why the companion failed, in one line.
    pub fn reason(&self) -> String {
        let ending = match self.status.map(child::ending) {
            Some(Ending::Killed(signal)) => format!("killed by signal {signal}"),
            Some(_) => "no reason given".to_owned(),
            None => "it did not end".to_owned(),
        };
        child::last_line(&self.errors).map_or(ending, str::to_owned)
    }
}

/// Runs the companion to its end, and reads its report.
fn run(command: Command, allocator: &str, engine: &Engine) -> Result<WorkloadReport, Failure> {
    let ran = to_its_end(command, Limits::NONE, engine)?;
    if ran.status.is_some_and(|status| status.success()) {
        return serde_json::from_str(&ran.out).map_err(|_| {
            Failure::Entrant(format!(
                "the replay under {allocator} printed no valid result; if the allocator corrupts memory, \
                 --speed locked --touch check shows where"
            ))
        });
    }
    let why = format!("the replay under {allocator} failed: {}", ran.reason());
    Err(match ran.status.and_then(|status| status.code()) {
        Some(2) => Failure::Machine(why),
        _ => Failure::Entrant(why),
    })
}

/// Formats the figures of a replay as text.
fn table(report: &WorkloadReport) -> String {
    let figure = |name: &str| report.figures.get(name).copied().unwrap_or(0.0);
    let bytes = |name: &str| Bytes(figure(name) as u64);
    let whole = figure("peak_resident_bytes") + figure("own_bytes");
    let mut rows = vec![
        ("operations", report.operations.to_string()),
        ("wall time", format!("{:.4} s", figure("wall_s"))),
        (
            "wall time per operation",
            format!("{:.2} ns", figure("ns_per_operation")),
        ),
        ("peak resident memory", Bytes(whole as u64).to_string()),
        (
            "without the replay's own tables",
            bytes("peak_resident_bytes").to_string(),
        ),
        (
            "most live requested bytes",
            bytes("peak_requested_bytes").to_string(),
        ),
    ];
    if figure("overhead") > 0.0 {
        rows.push((
            "peak over most live bytes",
            format!("{:.3}", figure("overhead")),
        ));
    }
    if report.parameters.contains("speed=paced") {
        rows.push((
            "latest operation behind",
            format!("{:.6} s", figure("behind_s")),
        ));
    }
    let line = |(name, value): (&str, String)| format!("{name:<32}  {value}\n");
    rows.into_iter().map(line).collect()
}
