//! Events of the engine, and the sink that receives them.

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

/// Notification about the engine's work.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A race starts working, or continues at its next turn.
    RaceOpened,
    /// A race stops working, for now or for good.
    RaceClosed,
    /// A race begins a step that takes time.
    RaceDoes {
        /// Title of the race within its collection, if any.
        title: Option<&'a str>,
        /// Step that begins.
        step: Step<'a>,
    },
    /// A race reports a finding.
    RaceFound {
        /// Title of the race within its collection, if any.
        title: Option<&'a str>,
        /// Finding, such as an entrant that leaves the race.
        finding: Found<'a>,
    },
    /// Interim result of a race.
    Interim(&'a RaceResult),
    /// An interrupted race or sweep is resumed.
    GoingOn(GoingOn<'a>),
    /// The next race of a collection begins. The value is its title.
    CellStarted(&'a str),
    /// A lock will be taken, possibly after waiting for another heapdrome process. The value is the
    /// name of the item to lock.
    Locking(&'a str),
    /// A trace is compiled for its replay. The value is the path or name of the trace.
    Compiling(&'a Path),
    /// A remark that is also part of the result.
    Remark(&'a str),
    /// A sweep ended before all its races were done.
    SweepUnfinished {
        /// Name for `--resume`, if the sweep was interrupted.
        resume: Option<&'a str>,
        /// Cells without a result.
        left: &'a [&'a str],
    },
    /// A suite begins or continues to run its pieces.
    SuiteStarted {
        /// Kind of the pieces.
        pieces: Piece,
        /// Number of pieces to run.
        left: usize,
        /// Number of pieces done in earlier sessions.
        done: usize,
        /// File that keeps the results.
        file: &'a Path,
    },
    /// A suite was interrupted.
    SuiteInterrupted {
        /// Arguments of heapdrome that resume the suite, without `--resume` and its file.
        arguments: &'a str,
        /// Path of the file that keeps the results, quoted for a shell.
        file: &'a str,
    },
    /// The estimate of a suite's time begins.
    Estimating,
    /// These allocators are not built. The estimate assumes that they are as fast as the others.
    NotBuilt(&'a [String]),
    /// The time of a race cannot be estimated.
    NotEstimated {
        /// Name of the cell.
        cell: &'a str,
        /// Failure that prevented the estimate.
        failure: &'a Failure,
    },
    /// An allocator of a suite is unavailable and does not race.
    DoesNotRace {
        /// Name of the allocator.
        allocator: &'a str,
        /// Failure that makes the allocator unavailable.
        failure: &'a Failure,
    },
    /// The misuse programs run under this allocator.
    Misusing(&'a str),
    /// An allocator cannot be tested with the misuse programs.
    NotMisused {
        /// Name of the allocator.
        allocator: &'a str,
        /// Reason why the programs cannot test it.
        why: &'a str,
    },
    /// Leftovers of a killed paging lab, with the action taken on each.
    Leftovers(&'a Leftovers),
    /// A search for the smallest memory limit begins a step, or reports the end of one.
    Searching {
        /// The allocator under which the command runs.
        allocator: &'a str,
        /// Step that begins or has ended.
        step: Searching<'a>,
    },
    /// Creation of swap of this size begins.
    MakingSwap(Bytes),
    /// A cell of the paging lab begins a turn.
    Turn {
        /// Cell that runs.
        cell: &'a PagingCell,
        /// The turn: its round, and its number within that round.
        turn: Turn,
    },
    /// The run of a cell of the paging lab in one round failed, so the round has no measurement.
    RoundLost {
        /// Cell whose run failed.
        cell: &'a PagingCell,
        /// Reason of the failure.
        why: &'a str,
    },
    /// A program is prepared.
    Preparing(&'a heapdrome_programs::Event),
    /// Data of the catalog workload is generated.
    Generating {
        /// Number of data sets.
        sets: u32,
        /// Size of each data set, in percent of the default.
        size: u32,
        /// Expected peak memory of a race with these data sets.
        peak: Bytes,
    },
    /// The data of the catalog workload is complete. The value is the time that its generation
    /// took.
    Generated(Duration),
    /// Allocators are missing and will be built.
    BuildsAhead {
        /// Names of the allocators, each with its expected build time in seconds.
        builds: &'a [(&'a str, u64)],
    },
    /// A build begins. The value is the name of the allocator.
    BuildStarted(&'a str),
    /// A build makes progress.
    Build {
        /// Name of the allocator.
        allocator: &'a str,
        /// Progress of the build.
        event: &'a BuildEvent,
    },
    /// A build succeeded or failed.
    BuildEnded,
    /// An allocator was built by this call.
    Built {
        /// Name of the allocator.
        allocator: &'a str,
        /// Version of the allocator.
        version: &'a str,
        /// Duration of the build in seconds.
        seconds: u64,
    },
}

/// Kind of the pieces of a suite.
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
    /// No search is possible, for example because the allocator does not serve the command. The
    /// value is the reason.
    NotServed(&'a str),
    /// Running the command without a limit.
    Unlimited {
        /// Whether swap is available.
        swap: bool,
    },
    /// The command ran under a limit.
    Tried {
        /// Whether swap is available.
        swap: bool,
        /// The limit, and the outcome of the runs under it.
        trial: &'a Trial,
    },
}

/// Step of a race.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// A warm-up round.
    WarmUp {
        /// Number of the round, from 0.
        round: u32,
        /// Total number of warm-up rounds.
        of: u32,
    },
    /// A run of a round.
    Round {
        /// Number of the round, from 0.
        round: u32,
        /// The entrant that runs.
        entrant: &'a str,
        /// Finished share of the maximum number of rounds or of their maximum time, whichever is
        /// larger, from 0 to 1. The race may end before this share reaches 1.
        share: f64,
        /// Expected time until the race reaches its limits.
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
    /// Proof that shows which object serves malloc.
    Proof,
    /// Measurement of the process tree's memory.
    Memory,
    /// Tracking of every block.
    Blocks,
    /// Repeated count of the work.
    Work,
}

/// Finding of a race.
#[derive(Clone, Copy, Debug)]
pub enum Found<'a> {
    /// An entrant fails, and leaves the race.
    Left {
        /// Name of the entrant.
        entrant: &'a str,
        /// Ending of the failed run.
        ending: Ending,
        /// Phase of the race in which the run failed.
        during: &'a str,
    },
    /// A metric was not found in the output; reported once for each metric and entrant.
    MetricMissing {
        /// Name of the metric.
        metric: &'a str,
        /// Name of the entrant whose output lacks the metric.
        entrant: &'a str,
    },
    /// Entrants are decided and stop.
    Decided {
        /// Number of rounds after which these entrants stop.
        rounds: u32,
        /// Names of these entrants.
        entrants: &'a [String],
    },
    /// Expected end of the race, in words.
    Outlook(&'a str),
    /// A remark that is also part of the result.
    Remark(&'a str),
}

/// An interrupted race or sweep that is resumed.
#[derive(Clone, Copy, Debug)]
pub struct GoingOn<'a> {
    /// Name for `--resume`.
    pub name: &'a str,
    /// Command or workload, in words.
    pub raced: &'a str,
    /// Start time in UTC, as RFC 3339.
    pub begun: &'a str,
    /// Folder in which the race or sweep was started.
    pub folder: &'a Path,
    /// Number of ended races and of all races; `None` for a single race.
    pub races: Option<(usize, usize)>,
    /// Number of rounds done, and the maximum number of rounds.
    pub rounds: RoundsDone,
}

/// Number of rounds done, and the maximum number of rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundsDone {
    /// Number of rounds done, over all races.
    pub done: u32,
    /// Maximum number of rounds, over all races.
    pub most: u32,
    /// Whether the race may end before the maximum.
    pub may_end_sooner: bool,
}

impl RoundsDone {
    /// Returns the numbers of rounds for `races` races that share the conditions `stopping` and
    /// have done `done` rounds in total.
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
