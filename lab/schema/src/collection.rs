//! Collections of measurements: sweeps, suites, experiments of the paging lab, misuse, survival
//! under memory limits, and checks of replays.

mod flat;

use flat::Flat;
use serde::{Deserialize, Serialize};

use crate::{
    Fidelity, Machine, MisuseRun, Nanoseconds, PagingCell, RaceResult, Survival, SweepResult,
};

/// Scale of the measurements in a collection, relative to a published setting if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// A few minutes in total, to see that everything works.
    Quick,
    /// The thread counts and sizes of the published setting, with fewer repetitions.
    Usual,
    /// The thread and repetition counts of the published setting.
    Published,
}

/// One race of a collection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Member {
    /// Cell of the collection that the race fills, such as `rpmalloc/16-1000` in a suite or
    /// `jobs=2` in a sweep.
    pub cell: String,
    /// Name of the workload or program that the race runs.
    pub workload: String,
    /// Parameters of the workload, or values of a sweep's parameters, as words.
    pub parameters: Vec<String>,
    /// Value of the parameter that the cell sweeps, such as the number of threads, if it is a whole
    /// number.
    pub swept: Option<u64>,
    /// Processors to which the command was pinned, in order of use; empty for all processors.
    pub processors: Vec<usize>,
    /// Ratio of the published setting's work to the work of this race, if it is known.
    pub factor: Option<f64>,
    /// Result of the race.
    pub result: RaceResult,
}

/// Outcome of a published claim or a target on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Holds {
    /// The measurements show that the claim holds.
    Held,
    /// The measurements contradict the claim.
    NotHeld,
    /// The measurements are missing, or neither show nor contradict the claim.
    Undecided,
    /// Something that the claim requires, such as an allocator or a thread count, is missing on
    /// this machine, or no race of the suite can decide the claim.
    CannotBeTested,
}

/// Result of testing a published claim or a target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClaimResult {
    /// The claim, in heapdrome's own words.
    pub claim: String,
    /// Part of a published document that makes the claim, such as a section or a figure. In a
    /// suite, the name of the suite comes before the part.
    pub source: String,
    /// Outcome on this machine.
    pub holds: Holds,
    /// Figures that led to the outcome, or the reason why there are none.
    pub because: String,
    /// Whether this is a target of heapdrome's own allocators, which is reached or missed, instead
    /// of a published claim.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub target: bool,
}

/// An allocator that a suite or its published document includes, but that did not take part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Absent {
    /// Name of the allocator in the published document; in the suite `misuse`, its name in the
    /// registry.
    pub name: String,
    /// Reason why the allocator did not take part.
    pub reason: String,
}

/// A table of figures measured here, or a published table of a document.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Title, printed above the table.
    pub title: String,
    /// Source of the figures, and the machine on which they were measured; `None` for figures
    /// measured here.
    pub published: Option<String>,
    /// Column heads. The first column contains the names of the rows.
    pub heads: Vec<String>,
    /// Rows, each with as many cells as there are heads.
    pub rows: Vec<Vec<String>>,
    /// Remarks for the reader.
    pub notes: Vec<String>,
}

/// One point of a [`Ccdf`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CcdfPoint {
    /// Time at this point.
    pub time: Nanoseconds,
    /// Share of the measured times that were longer, from 0 to 1.
    pub above: f64,
}

/// Complementary cumulative distribution of times: for each time, the share of measured times above
/// it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ccdf {
    /// Name of the timed operation, such as `read`. Distributions with the same name are drawn in
    /// one plot.
    pub kind: String,
    /// Cell of the paging lab in which the times were measured.
    pub cell: String,
    /// Number of measured times.
    pub count: u64,
    /// Points in order of time.
    pub points: Vec<CcdfPoint>,
}

/// Purpose of a collection, with the data that only this purpose has.
#[derive(Clone, Debug, PartialEq)]
pub enum Purpose {
    /// Races along the values of parameters, with their joint findings.
    Sweep(Option<SweepResult>),
    /// Races in the cells of a suite, with the misuse outcomes that its targets need.
    Suite {
        /// Scale at which the suite was run.
        scale: Scale,
        /// Outcome of each kind of misuse under each allocator; empty if no target needs it.
        misuse: Vec<MisuseRun>,
    },
    /// Experiments of the paging lab.
    Paging {
        /// Scale at which the experiments were run.
        scale: Scale,
        /// Settings of the experiments, with their results.
        cells: Vec<PagingCell>,
        /// Total time of all sessions that ran cells.
        time: Option<Nanoseconds>,
        /// Distributions of times, for experiments that recorded them.
        ccdfs: Vec<Ccdf>,
    },
    /// Runs of misuse programs, without races.
    Misuse {
        /// Scale at which misuse was tried.
        scale: Scale,
        /// Outcome of each kind of misuse under each allocator.
        runs: Vec<MisuseRun>,
    },
    /// Searches for the smallest memory limit under which a command finishes.
    Survival {
        /// Scale at which the search was run.
        scale: Scale,
        /// Findings of the searches under each allocator, with and without swap.
        searches: Vec<Survival>,
    },
    /// A check of a replay: races of the program, and of its replay at two speeds.
    Check(Box<Fidelity>),
}

impl Purpose {
    /// Returns the purpose of a suite that has no results yet.
    pub fn suite(scale: Scale) -> Self {
        Self::Suite {
            scale,
            misuse: Vec::new(),
        }
    }

    /// Returns the purpose of paging experiments that have no results yet.
    pub fn paging(scale: Scale) -> Self {
        Self::Paging {
            scale,
            cells: Vec::new(),
            time: None,
            ccdfs: Vec::new(),
        }
    }
}

impl Default for Purpose {
    fn default() -> Self {
        Self::Sweep(None)
    }
}

/// Measurements for one purpose, with the machine, tables and verdicts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Flat", into = "Flat")]
pub struct Collection {
    /// Version of the schema, equal to that of [`RaceResult`].
    pub schema: u32,
    /// Version of heapdrome that wrote the collection.
    pub heapdrome: String,
    /// Start time, in UTC, as RFC 3339.
    pub started: String,
    /// Arguments of heapdrome that requested the collection.
    pub asked: Vec<String>,
    /// Name of the suite, or a name such as `sweep jobs and size`, `check of app.trace` or
    /// `survive`.
    pub name: String,
    /// Machine on which everything in the collection was measured.
    pub machine: Machine,
    /// The races, in the order in which they were run; empty except in sweeps, suites of races and
    /// checks of a replay.
    pub races: Vec<Member>,
    /// Purpose, with the data that only this purpose has.
    pub purpose: Purpose,
    /// Tables computed from the measurements.
    pub tables: Vec<Table>,
    /// Published claims and targets, with their outcomes.
    pub claims: Vec<ClaimResult>,
    /// Allocators of the suite or its published document that did not take part.
    pub absent: Vec<Absent>,
    /// Remarks on the whole collection for the reader.
    pub remarks: Vec<String>,
}

impl Collection {
    /// Returns the scale of the run; `None` for a sweep. A check of a replay always has the usual
    /// scale.
    pub fn scale(&self) -> Option<Scale> {
        match self.purpose {
            Purpose::Sweep(_) => None,
            Purpose::Check(_) => Some(Scale::Usual),
            Purpose::Suite { scale, .. }
            | Purpose::Paging { scale, .. }
            | Purpose::Misuse { scale, .. }
            | Purpose::Survival { scale, .. } => Some(scale),
        }
    }

    /// Returns the joint findings of a sweep; `None` for other purposes, or without findings.
    pub fn sweep(&self) -> Option<&SweepResult> {
        match &self.purpose {
            Purpose::Sweep(found) => found.as_ref(),
            _ => None,
        }
    }

    /// Returns the cells of the paging lab; empty for other purposes.
    pub fn paging_cells(&self) -> &[PagingCell] {
        match &self.purpose {
            Purpose::Paging { cells, .. } => cells,
            _ => &[],
        }
    }

    /// Returns the cells of the paging lab as a mutable slice; empty for other purposes.
    pub fn paging_cells_mut(&mut self) -> &mut [PagingCell] {
        match &mut self.purpose {
            Purpose::Paging { cells, .. } => cells,
            _ => &mut [],
        }
    }

    /// Returns the distributions of times from the paging lab; empty for other purposes.
    pub fn ccdfs(&self) -> &[Ccdf] {
        match &self.purpose {
            Purpose::Paging { ccdfs, .. } => ccdfs,
            _ => &[],
        }
    }

    /// Returns the outcomes of misuse, from a suite of races or from a suite of misuse alone; empty
    /// for other purposes.
    pub fn misuse(&self) -> &[MisuseRun] {
        match &self.purpose {
            Purpose::Suite { misuse: runs, .. } | Purpose::Misuse { runs, .. } => runs,
            _ => &[],
        }
    }

    /// Returns the outcomes of misuse, so that more can be appended; `None` for a purpose without
    /// misuse.
    pub fn misuse_mut(&mut self) -> Option<&mut Vec<MisuseRun>> {
        match &mut self.purpose {
            Purpose::Suite { misuse: runs, .. } | Purpose::Misuse { runs, .. } => Some(runs),
            _ => None,
        }
    }

    /// Returns the outcome of a check of a replay; `None` for other purposes.
    pub fn fidelity(&self) -> Option<&Fidelity> {
        match &self.purpose {
            Purpose::Check(fidelity) => Some(fidelity),
            _ => None,
        }
    }

    /// Returns the searches for the smallest memory limit; empty for other purposes.
    pub fn searches(&self) -> &[Survival] {
        match &self.purpose {
            Purpose::Survival { searches, .. } => searches,
            _ => &[],
        }
    }
}
