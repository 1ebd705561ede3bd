//! What happens while the engine works, for whoever shows it. The engine itself prints nothing.

use std::path::Path;
use std::time::Duration;

use heapdrome_catalogue::BuildEvent;
use heapdrome_paging::{Leftovers, Turn};
use heapdrome_record::{Bytes, Ending, PagingCell, RaceResult, Stopping};

use crate::failure::Failure;

/// Who is told what happens.
pub trait Sink {
    /// Something happened.
    fn event(&self, event: Event<'_>);
}

/// A sink that shows nothing.
pub struct Silent;

impl Sink for Silent {
    fn event(&self, _event: Event<'_>) {}
}

/// Something that happened.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A race is at work from now on.
    RaceOpened,
    /// A race is at work no longer; it may be opened again.
    RaceClosed,
    /// A race does something that lasts.
    RaceDoes {
        /// The name of the race in its collection, if it has one.
        title: Option<&'a str>,
        /// What it does.
        step: Step<'a>,
    },
    /// A race has found something.
    RaceFound {
        /// The name of the race in its collection, if it has one.
        title: Option<&'a str>,
        /// What it found.
        finding: Found<'a>,
    },
    /// The result of a race as far as it has come.
    Interim(&'a RaceResult),
    /// A race, or a sweep, goes on that was interrupted.
    GoingOn(GoingOn<'a>),
    /// The next race of a collection begins.
    CellStarted(&'a str),
    /// Something is locked; another heapdrome that holds it is waited for.
    Locking(&'a str),
    /// A result has a remark that whoever waits should read now.
    Remark(&'a str),
    /// A sweep ended before all of it was done.
    SweepUnfinished {
        /// The name by which it can go on, if it was interrupted.
        resume: Option<&'a str>,
        /// The cells that have no result.
        left: &'a [&'a str],
    },
    /// The races of a suite begin.
    SuiteStarted {
        /// How many are to be run.
        races: usize,
        /// How many were run before.
        done: usize,
        /// Where what is done is kept.
        file: &'a Path,
    },
    /// A suite was interrupted.
    SuiteInterrupted {
        /// heapdrome's arguments by which it goes on.
        arguments: &'a str,
        /// The file to go on with, quoted for a shell.
        file: &'a str,
    },
    /// The time of a suite is going to be estimated.
    Estimating,
    /// Allocators that are not built, and are taken to be as fast as the others in an estimate.
    NotBuilt(&'a [String]),
    /// A race has no estimate.
    NotEstimated {
        /// The cell.
        cell: &'a str,
        /// Why.
        failure: &'a Failure,
    },
    /// An allocator of a suite cannot be had.
    DoesNotRace {
        /// Its name.
        allocator: &'a str,
        /// Why.
        failure: &'a Failure,
    },
    /// The programs that misuse memory run under an allocator.
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
    /// A program is made ready.
    Preparing(&'a heapdrome_programs::Event),
    /// Data of the catalog workload are generated.
    Generating {
        /// How many sets.
        sets: u32,
        /// The size of each.
        size: u32,
        /// The memory that a race with them takes.
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
        /// What happens.
        event: &'a BuildEvent,
    },
    /// A build is over, well or not.
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

/// What a race does.
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
        /// The share of all that is done at most, from 0 to 1.
        share: f64,
        /// The time that is left at most.
        left: Duration,
    },
    /// A run that is not timed.
    Untimed {
        /// What for.
        aim: Aim,
        /// The entrant that runs.
        entrant: &'a str,
    },
}

/// What a run that is not timed is for.
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

/// What a race has found.
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
    /// Entrants are decided, and run no more.
    Decided {
        /// After how many rounds.
        rounds: u32,
        /// Their names.
        entrants: &'a [String],
    },
    /// When the race ends, in words.
    Outlook(&'a str),
    /// A remark that the result has, too.
    Remark(&'a str),
}

/// What goes on that was interrupted.
#[derive(Clone, Copy, Debug)]
pub struct GoingOn<'a> {
    /// The name by which it is resumed.
    pub name: &'a str,
    /// What is raced, in words.
    pub raced: &'a str,
    /// When it was begun, in UTC, as RFC 3339.
    pub begun: &'a str,
    /// The folder in which it was begun.
    pub folder: &'a Path,
    /// How many races have ended, and of how many; `None` for a race by itself.
    pub races: Option<(usize, usize)>,
    /// How many rounds are done.
    pub rounds: RoundsDone,
}

/// How many rounds of how many are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundsDone {
    /// How many are done.
    pub done: u32,
    /// The most rounds that there will be.
    pub most: u32,
    /// Whether there may be fewer.
    pub may_end_sooner: bool,
}

impl RoundsDone {
    /// So many rounds of so many races that stop in this way.
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
