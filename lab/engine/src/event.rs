//! Events of the engine, and the sink that shows them.

use std::path::Path;
use std::time::Duration;

use heapdrome_paging::{Leftovers, Turn};
use heapdrome_registry::BuildEvent;
use heapdrome_schema::{Bytes, Ending, PagingCell, RaceResult, Stopping, Trial};

use crate::failure::Failure;

/// Consumer of events.
pub trait Sink {
    /// Handles one event.
    fn event(&self, event: Event<'_>);
}

/// Sink that drops every event.
pub struct Silent;

impl Sink for Silent {
    fn event(&self, _event: Event<'_>) {}
}

/// Something that happened while the engine worked.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A race starts to work, or continues after its turn came again.
    RaceOpened,
    /// A race stops working, for now or for good.
    RaceClosed,
    /// A race begins a step that takes time.
    RaceDoes {
        /// Title of the race within its collection, if any.
        title: Option<&'a str>,
        /// The step.
        step: Step<'a>,
    },
    /// A race reports a finding.
    RaceFound {
        /// Title of the race within its collection, if any.
        title: Option<&'a str>,
        /// The finding.
        finding: Found<'a>,
    },
    /// Interim result of a race.
    Interim(&'a RaceResult),
    /// An interrupted race or sweep resumes.
    GoingOn(GoingOn<'a>),
    /// The next race of a collection begins; its title.
    CellStarted(&'a str),
    /// A lock is taken, possibly after waiting for another heapdrome; the locked thing in words.
    Locking(&'a str),
    /// A trace is compiled for its replay.
    Compiling(&'a Path),
    /// A remark that the result contains, too.
    Remark(&'a str),
    /// A sweep ended before all its races were done.
    SweepUnfinished {
        /// Name for `--resume`, if the sweep was interrupted.
        resume: Option<&'a str>,
        /// Cells without a result.
        left: &'a [&'a str],
    },
    /// The pieces of a suite begin.
    SuiteStarted {
        /// Its parts.
        pieces: Piece,
        /// Number of them to run.
        left: usize,
        /// Number of them done before.
        done: usize,
        /// File that keeps the results.
        file: &'a Path,
    },
    /// A suite was interrupted.
    SuiteInterrupted {
        /// Arguments of heapdrome that resume it, without the file.
        arguments: &'a str,
        /// File that keeps the results, quoted for a shell.
        file: &'a str,
    },
    /// The estimate of a suite's time begins.
    Estimating,
    /// Allocators that are not built; the estimate assumes them to be as fast as the others.
    NotBuilt(&'a [String]),
    /// A race cannot be estimated.
    NotEstimated {
        /// The cell.
        cell: &'a str,
        /// Why.
        failure: &'a Failure,
    },
    /// An allocator of a suite is unavailable and does not race.
    DoesNotRace {
        /// Its name.
        allocator: &'a str,
        /// Why.
        failure: &'a Failure,
    },
    /// The misuse programs run under this allocator.
    Misusing(&'a str),
    /// An allocator cannot be misused.
    NotMisused {
        /// Its name.
        allocator: &'a str,
        /// Why.
        why: &'a str,
    },
    /// What became of what a killed paging lab had left.
    Leftovers(&'a Leftovers),
    /// A search for the smallest memory limit begins a step or ends one.
    Searching {
        /// The allocator under which the command runs.
        allocator: &'a str,
        /// The step.
        step: Searching<'a>,
    },
    /// Swap is made.
    MakingSwap(Bytes),
    /// A cell of the paging lab has its turn.
    Turn {
        /// The cell.
        cell: &'a PagingCell,
        /// Its turn.
        turn: Turn,
    },
    /// A round of a cell of the paging lab came to nothing.
    RoundLost {
        /// The cell.
        cell: &'a PagingCell,
        /// Why.
        why: &'a str,
    },
    /// A program is prepared.
    Preparing(&'a heapdrome_programs::Event),
    /// Data of the catalog workload are generated.
    Generating {
        /// How many sets.
        sets: u32,
        /// The size of each.
        size: u32,
        /// Expected peak memory of a race with them.
        peak: Bytes,
    },
    /// The data of the catalog workload are generated.
    Generated(Duration),
    /// Allocators are missing and will be built.
    BuildsAhead {
        /// Each, with the seconds that its build took elsewhere.
        builds: &'a [(&'a str, u64)],
    },
    /// A build begins.
    BuildStarted(&'a str),
    /// A build goes on.
    Build {
        /// The allocator.
        allocator: &'a str,
        /// Event of the build.
        event: &'a BuildEvent,
    },
    /// A build succeeded or failed.
    BuildEnded,
    /// An allocator was built, and not merely found.
    Built {
        /// The allocator.
        allocator: &'a str,
        /// Its version.
        version: &'a str,
        /// How long that took.
        seconds: u64,
    },
}

/// The parts of a suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A race.
    Race,
    /// A cell of the paging lab.
    Cell,
}

/// Step of a search for the smallest memory limit.
#[derive(Clone, Copy, Debug)]
pub enum Searching<'a> {
    /// Proving that the allocator serves the command.
    Proof,
    /// The allocator does not serve the command; the reason.
    NotServed(&'a str),
    /// Running the command without a limit.
    Unlimited {
        /// Whether there is swap.
        swap: bool,
    },
    /// The command ran under a limit.
    Tried {
        /// Whether there is swap.
        swap: bool,
        /// The outcome.
        trial: &'a Trial,
    },
}

/// Step of a race.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// A warm-up round.
    WarmUp {
        /// Which, from 0.
        round: u32,
        /// How many there are.
        of: u32,
    },
    /// A run of a round.
    Round {
        /// Which round, from 0.
        round: u32,
        /// The entrant that runs.
        entrant: &'a str,
        /// Upper bound of the share of the race that is done, from 0 to 1.
        share: f64,
        /// Upper bound of the time that is left.
        left: Duration,
    },
    /// An untimed run.
    Untimed {
        /// Purpose of the run.
        aim: Aim,
        /// The entrant that runs.
        entrant: &'a str,
    },
}

/// Purpose of an untimed run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// To prove who serves malloc.
    Proof,
    /// To watch the memory of the process tree.
    Memory,
    /// To follow every block.
    Blocks,
    /// To count the work again.
    Work,
}

/// Finding of a race.
#[derive(Clone, Copy, Debug)]
pub enum Found<'a> {
    /// An entrant fails, and leaves the race.
    Left {
        /// The entrant.
        entrant: &'a str,
        /// How it failed.
        ending: Ending,
        /// When.
        during: &'a str,
    },
    /// A metric was not found in the output; told once of each entrant.
    MetricMissing {
        /// The metric.
        metric: &'a str,
        /// The entrant.
        entrant: &'a str,
    },
    /// Entrants are decided and no longer run.
    Decided {
        /// After how many rounds.
        rounds: u32,
        /// Their names.
        entrants: &'a [String],
    },
    /// Expected end of the race, in words.
    Outlook(&'a str),
    /// A remark that the result contains, too.
    Remark(&'a str),
}

/// An interrupted race or sweep that resumes.
#[derive(Clone, Copy, Debug)]
pub struct GoingOn<'a> {
    /// Name for `--resume`.
    pub name: &'a str,
    /// Command or workload, in words.
    pub raced: &'a str,
    /// Start time in UTC, as RFC 3339.
    pub begun: &'a str,
    /// Folder in which it was started.
    pub folder: &'a Path,
    /// Number of ended races and of all races; `None` for a single race.
    pub races: Option<(usize, usize)>,
    /// Number of rounds done.
    pub rounds: RoundsDone,
}

/// Number of rounds done, of how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundsDone {
    /// Rounds done.
    pub done: u32,
    /// Maximum number of rounds.
    pub most: u32,
    /// Whether the race may end before that.
    pub may_end_sooner: bool,
}

impl RoundsDone {
    /// Counts `done` rounds of `races` races that all stop by `stopping`.
    pub fn of(done: u32, races: u32, stopping: &Stopping) -> Self {
        Self {
            done,
            most: stopping.max_rounds.saturating_mul(races),
            may_end_sooner: stopping.precision.is_some()
                || stopping.margin.is_some()
                || stopping.until_decided
                || stopping.pace.is_some()
                || stopping.max_time.is_some(),
        }
    }
}
