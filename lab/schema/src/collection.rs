//! Races that belong together: a sweep over parameters, or the cells of a suite.

use serde::{Deserialize, Serialize};

use crate::{Machine, MisuseRun, Nanoseconds, PagingCell, RaceResult, Survival, SweepResult};

/// Extent to which a published setting is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Minutes of runs, enough to see that everything works.
    Quick,
    /// The shape of the published setting, with fewer repetitions.
    Usual,
    /// The counts of the document.
    Published,
}

/// One race of a collection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Member {
    /// Cell that it fills in the collection's tables, such as `threadtest-small`.
    pub cell: String,
    /// Workload.
    pub workload: String,
    /// Parameters of the workload, as words.
    pub parameters: Vec<String>,
    /// Value of the parameter that the cell sweeps, such as the number of threads.
    pub swept: Option<u64>,
    /// Processors to which the command was pinned, in order of use; empty for all of them.
    pub processors: Vec<usize>,
    /// Ratio of the published setting's work to the work of this race, if it is known.
    pub factor: Option<f64>,
    /// The race.
    pub result: RaceResult,
}

/// Outcome of a published claim on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Holds {
    /// Every interval of the claim agrees with it.
    Held,
    /// An interval contradicts it.
    NotHeld,
    /// An interval is too wide, or there is no interval.
    Undecided,
    /// An allocator or a thread count of the claim is missing here.
    CannotBeTested,
}

/// Result of testing a published claim or a target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClaimResult {
    /// The claim, in heapdrome's own words.
    pub claim: String,
    /// Place of publication.
    pub source: String,
    /// Outcome on this machine.
    pub holds: Holds,
    /// Figures behind the outcome, or the reason why none exist.
    pub because: String,
    /// Whether it is a target of heapdrome's own, which is reached or missed, instead of a
    /// published claim.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub target: bool,
}

/// An allocator of the document that did not take part in this race.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Absent {
    /// Name of the allocator in the document.
    pub name: String,
    /// Reason for its absence.
    pub reason: String,
}

/// A table made of several races, or one that a document published.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Title.
    pub title: String,
    /// Source of its figures and their machine; `None` for figures measured here.
    pub published: Option<String>,
    /// Heads of its columns; the first column holds names.
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
    /// Share of times that were longer, from 0 to 1.
    pub above: f64,
}

/// Complementary cumulative distribution of times: the share of times above each time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ccdf {
    /// Timed operation, such as `read`. Distributions of one kind are drawn in one plot.
    pub kind: String,
    /// Circumstances of the measurement.
    pub cell: String,
    /// Number of times counted.
    pub count: u64,
    /// Points in order of time.
    pub points: Vec<CcdfPoint>,
}

/// Purpose of a collection, with the data that only this purpose has.
#[derive(Clone, Debug, PartialEq)]
pub enum Purpose {
    /// Races along the values of parameters, with their joint findings.
    Sweep(Option<SweepResult>),
    /// Races in the cells of a suite, and the misuse in its targets.
    Suite {
        /// Extent to which it was run.
        scale: Scale,
        /// The outcome of each kind of misuse under each allocator.
        misuse: Vec<MisuseRun>,
    },
    /// Experiments of the paging lab.
    Paging {
        /// Extent to which they were run.
        scale: Scale,
        /// Settings of the experiments with their results.
        cells: Vec<PagingCell>,
        /// Total measurement time of the cells, over all sessions.
        time: Option<Nanoseconds>,
        /// Distributions of times, for experiments that recorded them.
        ccdfs: Vec<Ccdf>,
    },
    /// Misuse alone.
    Misuse {
        /// Extent to which it was tried.
        scale: Scale,
        /// The outcome of each kind under each allocator.
        runs: Vec<MisuseRun>,
    },
    /// A search for the least memory.
    Survival {
        /// Extent of the search.
        scale: Scale,
        /// Findings under each allocator.
        searches: Vec<Survival>,
    },
}

impl Purpose {
    /// Returns a suite of which nothing has run yet.
    pub fn suite(scale: Scale) -> Self {
        Self::Suite {
            scale,
            misuse: Vec::new(),
        }
    }

    /// Returns experiments of which none has run yet.
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

/// Measurements that belong together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Flat", into = "Flat")]
pub struct Collection {
    /// The version of the schema, that of [`RaceResult`].
    pub schema: u32,
    /// The version of heapdrome that wrote it.
    pub heapdrome: String,
    /// Start time, in UTC, as RFC 3339.
    pub started: String,
    /// Request for it: heapdrome's own arguments.
    pub asked: Vec<String>,
    /// `sweep threads` or `sweep jobs and size`, or the name of the suite.
    pub name: String,
    /// The machine.
    pub machine: Machine,
    /// The races, in the order in which they were run; only sweeps and suites have any.
    pub races: Vec<Member>,
    /// Its purpose.
    pub purpose: Purpose,
    /// Tables computed from the measurements.
    pub tables: Vec<Table>,
    /// Published claims with their outcomes.
    pub claims: Vec<ClaimResult>,
    /// Allocators of the document that did not race.
    pub absent: Vec<Absent>,
    /// Remarks on the whole collection for the reader.
    pub remarks: Vec<String>,
}

impl Collection {
    /// Returns the scale of the run, for purposes that have several scales.
    pub fn scale(&self) -> Option<Scale> {
        match self.purpose {
            Purpose::Sweep(_) => None,
            Purpose::Suite { scale, .. }
            | Purpose::Paging { scale, .. }
            | Purpose::Misuse { scale, .. }
            | Purpose::Survival { scale, .. } => Some(scale),
        }
    }

    /// Returns the findings of a sweep.
    pub fn sweep(&self) -> Option<&SweepResult> {
        match &self.purpose {
            Purpose::Sweep(found) => found.as_ref(),
            _ => None,
        }
    }

    /// Returns the cells of experiments.
    pub fn paging_cells(&self) -> &[PagingCell] {
        match &self.purpose {
            Purpose::Paging { cells, .. } => cells,
            _ => &[],
        }
    }

    /// Returns the cells of experiments for running and changing them.
    pub fn paging_cells_mut(&mut self) -> &mut [PagingCell] {
        match &mut self.purpose {
            Purpose::Paging { cells, .. } => cells,
            _ => &mut [],
        }
    }

    /// Returns the distributions of times.
    pub fn ccdfs(&self) -> &[Ccdf] {
        match &self.purpose {
            Purpose::Paging { ccdfs, .. } => ccdfs,
            _ => &[],
        }
    }

    /// Returns the outcomes of misuse, beside races or alone.
    pub fn misuse(&self) -> &[MisuseRun] {
        match &self.purpose {
            Purpose::Suite { misuse: runs, .. } | Purpose::Misuse { runs, .. } => runs,
            _ => &[],
        }
    }

    /// Returns the outcomes of misuse for appending; `None` for a purpose without misuse.
    pub fn misuse_mut(&mut self) -> Option<&mut Vec<MisuseRun>> {
        match &mut self.purpose {
            Purpose::Suite { misuse: runs, .. } | Purpose::Misuse { runs, .. } => Some(runs),
            _ => None,
        }
    }

    /// Returns the searches for the least memory.
    pub fn searches(&self) -> &[Survival] {
        match &self.purpose {
            Purpose::Survival { searches, .. } => searches,
            _ => &[],
        }
    }
}

/// Form of a collection in its file: the parts of every purpose side by side.
#[derive(Default, Serialize, Deserialize)]
struct Flat {
    schema: u32,
    heapdrome: String,
    started: String,
    asked: Vec<String>,
    name: String,
    scale: Option<Scale>,
    machine: Machine,
    races: Vec<Member>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tables: Vec<Table>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ccdfs: Vec<Ccdf>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    paging_cells: Vec<PagingCell>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    paging_time: Option<Nanoseconds>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    misuse: Vec<MisuseRun>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    survival: Vec<Survival>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sweep: Option<SweepResult>,
    claims: Vec<ClaimResult>,
    absent: Vec<Absent>,
    remarks: Vec<String>,
}

impl Flat {
    /// Takes the fields that determine the purpose. A file has the parts of only one purpose.
    fn purpose(&mut self) -> Purpose {
        let Some(scale) = self.scale else {
            return Purpose::Sweep(self.sweep.take());
        };
        if !self.survival.is_empty() {
            let searches = std::mem::take(&mut self.survival);
            return Purpose::Survival { scale, searches };
        }
        if !self.paging_cells.is_empty() || !self.ccdfs.is_empty() {
            return Purpose::Paging {
                scale,
                cells: std::mem::take(&mut self.paging_cells),
                time: self.paging_time,
                ccdfs: std::mem::take(&mut self.ccdfs),
            };
        }
        let runs = std::mem::take(&mut self.misuse);
        match self.races.is_empty() && !runs.is_empty() {
            true => Purpose::Misuse { scale, runs },
            false => Purpose::Suite {
                scale,
                misuse: runs,
            },
        }
    }
}

impl From<Flat> for Collection {
    fn from(mut flat: Flat) -> Self {
        Self {
            purpose: flat.purpose(),
            schema: flat.schema,
            heapdrome: flat.heapdrome,
            started: flat.started,
            asked: flat.asked,
            name: flat.name,
            machine: flat.machine,
            races: flat.races,
            tables: flat.tables,
            claims: flat.claims,
            absent: flat.absent,
            remarks: flat.remarks,
        }
    }
}

impl From<Collection> for Flat {
    fn from(own: Collection) -> Self {
        let mut flat = Self {
            scale: own.scale(),
            schema: own.schema,
            heapdrome: own.heapdrome,
            started: own.started,
            asked: own.asked,
            name: own.name,
            machine: own.machine,
            races: own.races,
            tables: own.tables,
            claims: own.claims,
            absent: own.absent,
            remarks: own.remarks,
            ..Self::default()
        };
        match own.purpose {
            Purpose::Sweep(found) => flat.sweep = found,
            Purpose::Suite { misuse: runs, .. } | Purpose::Misuse { runs, .. } => {
                flat.misuse = runs;
            }
            Purpose::Paging {
                cells, time, ccdfs, ..
            } => (flat.paging_cells, flat.paging_time, flat.ccdfs) = (cells, time, ccdfs),
            Purpose::Survival { searches, .. } => flat.survival = searches,
        }
        flat
    }
}
