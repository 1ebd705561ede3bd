//! One race of a collection: a value of a sweep, or a cell of a suite's tables.

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

/// What races.
#[derive(Clone, Debug)]
pub enum Load {
    /// A workload.
    Workload {
        /// Its name.
        name: String,
        /// Its parameters, as words.
        words: Vec<String>,
        /// Whether its small form is wanted, where the words name no preset.
        quick: bool,
    },
    /// A command of the user's own.
    Command(Vec<String>),
}

impl Load {
    /// The name of the workload, or of the program.
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

/// A race, as a collection asks for it.
#[derive(Clone, Debug)]
pub struct CellRequest {
    /// Which cell of the collection it is, such as `threadtest-small threads=2`; unique in it.
    pub cell: String,
    /// What lines of progress begin with, such as `[3 of 40] threadtest small, 2 threads`.
    pub title: String,
    /// What races.
    pub load: Load,
    /// Names, paths or groups of allocators; the baseline need not be among them.
    pub allocators: Vec<String>,
    /// The allocator that the others are compared with.
    pub baseline: String,
    /// When the race stops.
    pub stopping: Stopping,
    /// Who tells which entrants are decided and run no more; `None` where all run every round.
    pub judge: Option<Judge>,
    /// How each run is made: pinning, environment, memory runs, time limit and the like, beginning
    /// with [`usual_options`](super::usual_options); what the workload needs is added.
    pub options: Options,
    /// The seed of the order of rounds and of every other draw.
    pub seed: u64,
    /// How the collection was asked for: heapdrome's own arguments.
    pub asked: Vec<String>,
    /// A metric that may be missing from the output without a word here, since the collection tells
    /// it once.
    pub untold: Option<&'static str>,
    /// The name of the sweep that the race is a part of, if it is one and can be resumed.
    pub part_of: Option<String>,
    /// Whether `stopping` takes the place of the limits of a race that has begun.
    pub new_limits: bool,
    /// Where the race is kept that goes on, if it has begun.
    pub begun: Option<PathBuf>,
}

/// Runs the race and returns its result; prints progress, and no table. Where `proofs` is given, an
/// entrant that was proven in an earlier cell of the same workload, with the same binary, library
/// and environment, is not proven again.
///
/// A rival that fails or is not served is a row of the result like any other. Figures that the
/// workload reports are in the metrics of the result under their own names, but for `wall_s` and
/// `cpu_s`, which every race has: those of the measured part are `measured_wall_s` and
/// `measured_cpu_s`.
///
/// # Errors
/// [`Failure::Usage`] when the workload, its parameters or a name is wrong;
/// [`Failure::Baseline`] when the command fails under the baseline;
/// [`Failure::Interrupted`]; [`Failure::Machine`] when something cannot be built, started or
/// written. Other cells may go on after [`Failure::Baseline`].
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

/// A race of a collection whose rounds are to come.
pub(super) struct Cell {
    pub(super) contest: Contest,
    /// What it needs stays locked.
    _workload: Option<Ready>,
    _hold: Hold,
}

/// How a race began: it may have ended already, or failed.
pub(super) type Begun = Result<Option<Ended>, Failure>;

impl Cell {
    /// Plans the race, or takes it up where it has begun, and does what comes before its rounds.
    ///
    /// # Errors
    /// As [`run_cell`], where it cannot be planned or taken up.
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

    /// The result of a race that ended so, as far as it came, and whether it counts.
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

/// The race, and what its workload keeps locked.
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

/// Makes the plan of a cell.
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
