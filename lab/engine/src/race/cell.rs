//! One race of a collection: one point of a sweep, one cell of a suite's tables, or one race of a
//! check.

use std::path::PathBuf;

use heapdrome_packages::Hold;
use heapdrome_schema::{Options, Part, RaceResult, Stopping};

use super::contest::{Contest, Ended};
use super::judge::Judge;
use super::plan::{self, Planned, Wanted};
use super::store::ProofStore;
use crate::engine::Engine;
use crate::failure::Failure;
use crate::workload::{Asked, Ready};

/// Command or workload of a race.
#[derive(Clone, Debug)]
pub enum Load {
    /// A built-in workload.
    Workload {
        /// Name of the workload.
        name: String,
        /// Words after the name: a preset, if any, and `name=value` parameters.
        words: Vec<String>,
        /// Whether to use the workload's small form.
        quick: bool,
    },
    /// A command of the user's own.
    Command(Vec<String>),
}

impl Load {
    /// Returns the name of the workload or of the program.
    pub fn name(&self) -> String {
        match self {
            Self::Workload { name, .. } => name.clone(),
            Self::Command(words) => {
                let program = words.first().map(std::path::Path::new);
                let name = program.and_then(std::path::Path::file_name);
                name.unwrap_or_default().to_string_lossy().into_owned()
            }
        }
    }
}

/// Request of a collection for one race.
#[derive(Clone, Debug)]
pub struct CellRequest {
    /// Cell of the collection, such as `threadtest-small threads=2`; unique within it.
    pub cell: String,
    /// Prefix of progress lines, such as `[3 of 40] threadtest small, 2 threads`.
    pub title: String,
    /// Command or workload.
    pub load: Load,
    /// Names, paths or groups of allocators. The baseline need not be among them.
    pub allocators: Vec<String>,
    /// Allocator with which the others are compared.
    pub baseline: String,
    /// Conditions under which the race ends.
    pub stopping: Stopping,
    /// Judge that stops entrants once a suite's targets are decided; `None` without targets.
    pub judge: Option<Judge>,
    /// Settings of each run: pinning, environment, memory runs, time limit and others. They start
    /// from [`usual_options`](super::usual_options). The workload's own settings are added.
    pub options: Options,
    /// Seed of the entrants' order in each round and of every other random draw.
    pub seed: u64,
    /// Arguments of heapdrome that requested the collection.
    pub asked: Vec<String>,
    /// Metric whose absence from the output this race does not report, because the collection
    /// reports it once.
    pub untold: Option<&'static str>,
    /// Name of the race's sweep, if the sweep can be resumed.
    pub part_of: Option<String>,
    /// Whether `stopping` replaces the limits of a race that has begun.
    pub new_limits: bool,
    /// Folder of the race, if it has begun.
    pub begun: Option<PathBuf>,
}

/// Runs the race and returns its result. Emits progress events, but no table. Reuses a proof from
/// `proofs` that another cell took with the same program, library and environment.
///
/// The result also has rows for rivals that fail or are not served. The workload's figures become
/// metrics under their own names, except a figure such as `wall_s`. It becomes `measured_wall_s`,
/// because every race has a figure `wall_s` of the whole command.
///
/// # Errors
/// [`Failure::Usage`] when the workload, its parameters or a name is invalid; [`Failure::Baseline`]
/// when the command fails under the baseline or the entrants do different work;
/// [`Failure::Interrupted`] when the user interrupts; [`Failure::Machine`] when something cannot be
/// built, started or written. Other cells may continue after [`Failure::Baseline`].
pub fn run_cell(
    request: &CellRequest,
    engine: &Engine,
    proofs: Option<&mut ProofStore>,
) -> Result<RaceResult, Failure> {
    let (mut cell, begun) = Cell::begin(request, engine, proofs)?;
    let ended = cell.contest.go_on(begun);
    let (result, ended) = cell.result(ended);
    ended.map(|()| result)
}

/// A race of a collection, with the locks that the race needs.
pub(super) struct Cell {
    pub(super) contest: Contest,
    /// Locks of the race's workload.
    _workload: Option<Ready>,
    _hold: Hold,
}

/// Outcome of beginning a race: `Ok(None)` if its rounds follow, `Ok(Some(_))` if the race has
/// already ended, or a failure.
pub(super) type Begun = Result<Option<Ended>, Failure>;

impl Cell {
    /// Plans or resumes the race, and does all work that precedes its rounds.
    ///
    /// # Errors
    /// Returns the errors of [`run_cell`] when the race cannot be planned or resumed.
    pub(super) fn begin(
        request: &CellRequest,
        engine: &Engine,
        proofs: Option<&mut ProofStore>,
    ) -> Result<(Self, Begun), Failure> {
        let hold = engine.folders.cache.hold().map_err(Failure::machine)?;
        let (mut contest, workload) = contest(request, engine)?;
        let words = workload.as_ref().map(|ready| ready.program_words);
        contest.entitle(&request.title, request.untold);
        contest.judged_by(request.judge.clone());
        let begun = match proofs {
            Some(proofs) => contest.begin_with(proofs, &request.cell, words.unwrap_or(usize::MAX)),
            None => contest.begin(),
        };
        let cell = Self {
            contest,
            _workload: workload,
            _hold: hold,
        };
        Ok((cell, begun))
    }

    /// Returns the result of the race, and a failure if the race could not continue, the baseline
    /// failed, or the entrants did different work. `ended` is the end of the race. Reports that the
    /// race stops working.
    pub(super) fn result(
        &self,
        ended: Result<Ended, Failure>,
    ) -> (RaceResult, Result<(), Failure>) {
        let result = self.contest.result(&ended);
        self.contest.close();
        let ended = ended.and_then(|ended| match ended {
            Ended::BaselineFailed(why) | Ended::DifferentWork(why) => Err(Failure::Baseline(why)),
            Ended::Done(_) | Ended::NothingToRace(_) => Ok(()),
        });
        (result, ended)
    }
}

/// Starts or resumes the race. Also returns the race's workload, if it has one; the workload's
/// resources stay locked.
fn contest(request: &CellRequest, engine: &Engine) -> Result<(Contest, Option<Ready>), Failure> {
    if let Some(folder) = &request.begun {
        let mut contest = Contest::resume(folder, engine)?;
        if request.new_limits {
            contest.limit(request.stopping.clone())?;
        }
        let workload = plan::workload_again(contest.workload(), engine)?;
        return Ok((contest, workload));
    }
    let planned = planned(request, engine)?;
    let contest = Contest::start(engine, planned.plan)?;
    Ok((contest, planned.workload))
}

fn planned(request: &CellRequest, engine: &Engine) -> Result<Planned, Failure> {
    let (command, workload) = match &request.load {
        Load::Workload { name, words, quick } => {
            (&[][..], Some(Asked::parse(name, words, *quick)?))
        }
        Load::Command(words) => (words.as_slice(), None),
    };
    let wanted = Wanted {
        command,
        workload: workload.as_ref(),
        allocators: &request.allocators,
        baseline: &request.baseline,
        options: request.options.clone(),
        stopping: request.stopping.clone(),
        seed: request.seed,
        asked: request.asked.clone(),
        part: request.part_of.clone().map(|of| Part {
            of,
            cell: request.cell.clone(),
        }),
    };
    plan::plan(wanted, engine)
}
