//! The check of a trace. A program races in turns with two replays of its trace, and the check
//! compares each replay with the program.

mod compared;
mod facts;
mod order;
mod sides;
mod table;

use std::path::PathBuf;

use heapdrome_packages::Hold;
use heapdrome_replay::{Speed, Touch};
use heapdrome_schema::{
    CPU, Collection, Fidelity, Member, Options, PEAK_RSS, Purpose, RaceResult, Stopping, WALL,
};

use crate::engine::Engine;
use crate::failure::Failure;
use crate::fidelity;
use crate::kept::started;
use crate::race::{CellRequest, Load, check_command, in_turns, seed_from_clock};
use crate::workload::trace::{NAME, Replay, Source};

/// Request for the check of a trace.
pub struct CheckRequest {
    /// Absolute path of the trace.
    pub trace: PathBuf,
    /// Number of the process in the trace; `None` for the process with the most operations.
    pub process: Option<u32>,
    /// Way in which the replays write to each new block.
    pub touch: Touch,
    /// The program's command with its arguments.
    pub command: Vec<String>,
    /// Names, paths or groups of allocators; empty for the group `default`.
    pub allocators: Vec<String>,
    /// The allocator under which the trace was recorded.
    pub recorded: String,
    /// Settings of the program's runs. The replays' runs use only the processors, the time limit,
    /// the memory runs and the warm-up rounds.
    pub options: Options,
    /// Conditions under which each of the three races ends.
    pub stopping: Stopping,
    /// Seed of every random draw; `None` for a seed from the clock.
    pub seed: Option<u64>,
    /// Arguments of heapdrome that requested the check.
    pub asked: Vec<String>,
}

impl CheckRequest {
    fn replay(&self, speed: Speed) -> Replay {
        Replay {
            trace: Source::File(self.trace.clone()),
            process: self.process,
            speed,
            touch: self.touch,
        }
    }
}

/// The three races of a check, in order.
const CELLS: [Cell; 3] = [Cell::Program, Cell::Paced, Cell::Dependencies];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cell {
    Program,
    Paced,
    Dependencies,
}

impl Cell {
    fn name(self) -> &'static str {
        match self {
            Self::Program => "program",
            Self::Paced => "replay, paced",
            Self::Dependencies => "replay, dependencies",
        }
    }

    fn speed(self) -> Option<Speed> {
        match self {
            Self::Program => None,
            Self::Paced => Some(Speed::Paced),
            Self::Dependencies => Some(Speed::Dependencies),
        }
    }
}

/// Races the program and its replays in turns, compares them, and stores the result beside the
/// trace.
///
/// # Errors
/// When the command or the trace is unusable, an allocator cannot be found or built, or the result
/// cannot be written or would overwrite a file that is not a check's result. Also when the user
/// interrupts, the program fails, or a race has no complete round.
pub fn check(request: &CheckRequest, engine: &Engine) -> Result<Collection, Failure> {
    check_command(&request.command, &request.options)?;
    request.replay(Speed::Paced).check()?;
    fidelity::check_replaceable(&request.trace)?;
    let hold = engine.folders.cache.hold().map_err(Failure::machine)?;
    let identity = identity(request, engine)?;
    let (done, ended) = in_turns(&requests(request), engine);
    drop::<Hold>(hold);
    ended?;
    let results: Vec<RaceResult> = done.into_iter().map(|(_, result)| result).collect();
    if let Some(idle) = results.iter().find(|result| result.rounds == 0) {
        return Err(Failure::Entrant(idle.ended.clone()));
    }
    let check = collection(request, identity, results);
    fidelity::write(&request.trace, &check)?;
    Ok(check)
}

/// Returns heapdrome's outcome for a check. The report already contains the details.
///
/// # Errors
/// When the replay does not agree with its program in a property.
pub fn outcome(check: &Collection) -> Result<(), Failure> {
    let misses = check.fidelity().into_iter().flat_map(Fidelity::misses);
    let names: Vec<_> = misses.map(|one| one.property.name()).collect();
    match names.as_slice() {
        [] => Ok(()),
        names => Err(Failure::Entrant(format!(
            "the replay misses its program in {}",
            names.join(", ")
        ))),
    }
}

/// Identity of a trace: its SHA-256 and the number of the replayed process.
struct Identity {
    sha256: String,
    process: u32,
}

/// Compiles the trace, and returns its identity. An invalid trace ends the check here, before any
/// run.
fn identity(request: &CheckRequest, engine: &Engine) -> Result<Identity, Failure> {
    let program = request.replay(Speed::Paced).compiled(engine)?;
    Ok(Identity {
        sha256: program.trace_sha256().to_owned(),
        process: program.header().process,
    })
}

fn requests(request: &CheckRequest) -> Vec<CellRequest> {
    let seed = request.seed.unwrap_or_else(seed_from_clock);
    let one = |(place, cell): (usize, Cell)| {
        let (load, options) = load(request, cell);
        CellRequest {
            cell: cell.name().to_owned(),
            title: format!("[{} of {}] {}", place + 1, CELLS.len(), cell.name()),
            load,
            allocators: request.allocators.clone(),
            baseline: request.recorded.clone(),
            stopping: request.stopping.clone(),
            judge: None,
            options,
            seed,
            asked: request.asked.clone(),
            untold: None,
            part_of: None,
            new_limits: false,
            begun: None,
        }
    };
    CELLS.into_iter().enumerate().map(one).collect()
}

/// Returns the load and the settings of a race. A replay shares only the processors, the time
/// limit, the memory runs and the warm-up rounds with the program.
fn load(request: &CheckRequest, cell: Cell) -> (Load, Options) {
    let asked = &request.options;
    let Some(speed) = cell.speed() else {
        let judged = vec![WALL.to_owned(), CPU.to_owned()];
        let options = Options {
            judged,
            ..asked.clone()
        };
        return (Load::Command(request.command.clone()), options);
    };
    let judged: &[&str] = match speed {
        Speed::Paced => &[PEAK_RSS],
        _ => &[WALL, CPU],
    };
    let options = Options {
        judged: judged.iter().map(|name| (*name).to_owned()).collect(),
        pin: asked.pin.clone(),
        timeout: asked.timeout,
        memory_runs: asked.memory_runs,
        warmup_rounds: asked.warmup_rounds,
        ..crate::race::usual_options()
    };
    let load = Load::Workload {
        name: NAME.to_owned(),
        words: request.replay(speed).words(),
        quick: false,
    };
    (load, options)
}

fn collection(request: &CheckRequest, identity: Identity, results: Vec<RaceResult>) -> Collection {
    let trace = request.trace.file_name().unwrap_or_default();
    let trace = trace.to_string_lossy();
    let begun = started(
        &format!("check of {trace}"),
        Purpose::default(),
        request.asked.clone(),
    );
    let [program, paced, dependencies] = [0, 1, 2].map(|place| &results[place]);
    let facts = facts::Facts::new(program, paced, dependencies);
    let fidelity = Fidelity {
        trace_sha256: identity.sha256,
        process: identity.process,
        command: request.command.clone(),
        checked: begun.started.clone(),
        entrants: facts.names().map(str::to_owned).collect(),
        rounds: program.rounds,
        checks: compared::all(&facts),
    };
    let tables = table::tables(&fidelity, &facts);
    let machine = program.machine.clone();
    let remarks = facts.remarks();
    let member = |(cell, result): (Cell, RaceResult)| Member {
        cell: cell.name().to_owned(),
        workload: match cell.speed() {
            None => Load::Command(request.command.clone()).name(),
            Some(_) => NAME.to_owned(),
        },
        parameters: cell
            .speed()
            .map(|speed| format!("speed={speed}"))
            .into_iter()
            .collect(),
        swept: None,
        processors: request.options.pin.clone(),
        factor: None,
        result,
    };
    Collection {
        machine,
        tables,
        remarks,
        purpose: Purpose::Check(Box::new(fidelity)),
        races: CELLS.into_iter().zip(results).map(member).collect(),
        ..begun
    }
}
