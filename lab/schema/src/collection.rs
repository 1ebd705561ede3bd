//! Races that belong together: a sweep over one parameter, or the cells of a suite.

use serde::{Deserialize, Serialize};

use crate::{Machine, MisuseRun, Nanoseconds, PagingCell, RaceResult, Survival, SweepResult};

/// How much of what a document published is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Minutes: enough to see that everything works.
    Quick,
    /// The shape of the published setting, with fewer repetitions.
    Usual,
    /// The document's own counts.
    Published,
}

/// One race of a collection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Member {
    /// Which cell of the collection's tables it fills, such as `threadtest-small`.
    pub cell: String,
    /// The workload.
    pub workload: String,
    /// Its parameters, as words.
    pub parameters: Vec<String>,
    /// The value of the parameter that the cell sweeps, such as the number of threads.
    pub swept: Option<u64>,
    /// The processors that the command was pinned to, in order of use; empty for all of them.
    pub processors: Vec<usize>,
    /// How many times the published setting does what this race did, where that is known.
    pub factor: Option<f64>,
    /// The race.
    pub result: RaceResult,
}

/// Whether a published sentence holds on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Holds {
    /// Every interval that it speaks of agrees.
    Held,
    /// An interval contradicts it.
    NotHeld,
    /// An interval is too wide, or there is none.
    Undecided,
    /// An allocator or a thread count that it names is missing here.
    CannotBeTested,
}

/// A sentence that was published, or a target that was set, tested.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClaimResult {
    /// The sentence, in heapdrome's own words.
    pub claim: String,
    /// Where it was published.
    pub source: String,
    /// Whether it holds here.
    pub holds: Holds,
    /// The figures that say so, or what is missing.
    pub because: String,
    /// Whether it is a target of heapdrome's own, which is reached or missed, and was published
    /// nowhere.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub target: bool,
}

/// An allocator that the document has and this race has not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Absent {
    /// The name by which the document calls it.
    pub name: String,
    /// Why it does not race.
    pub reason: String,
}

/// A table made of several races, or one that a document published.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Its title.
    pub title: String,
    /// Where its figures were published, and on which machine; `None` for figures measured here.
    pub published: Option<String>,
    /// The heads of its columns; the first column holds names.
    pub heads: Vec<String>,
    /// Its rows, each with as many cells as there are heads.
    pub rows: Vec<Vec<String>>,
    /// Remarks on it for the reader.
    pub notes: Vec<String>,
}

/// One point of a [`Ccdf`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CcdfPoint {
    /// A time.
    pub time: Nanoseconds,
    /// The share of times that were longer, from 0 to 1.
    pub above: f64,
}

/// How often times of one kind were exceeded: a complementary cumulative distribution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ccdf {
    /// The timed operation, such as `read`; those of one kind are drawn together.
    pub kind: String,
    /// Under which circumstances.
    pub cell: String,
    /// How many times were counted.
    pub count: u64,
    /// By rising time.
    pub points: Vec<CcdfPoint>,
}

/// The purpose of a collection, with the data that only this purpose has.
#[derive(Clone, Debug, PartialEq)]
pub enum Purpose {
    /// Races along the values of parameters, and what they show together.
    Sweep(Option<SweepResult>),
    /// Races in the cells of a suite, and misuse that its targets speak of.
    Suite {
        /// How much of it was run.
        scale: Scale,
        /// The outcome of each kind of misuse under each allocator.
        misuse: Vec<MisuseRun>,
    },
    /// Experiments of the paging lab.
    Paging {
        /// How much of them was run.
        scale: Scale,
        /// Their settings, with what came of them.
        cells: Vec<PagingCell>,
        /// How long these were measured, over all times that they were taken up.
        time: Option<Nanoseconds>,
        /// How often times were exceeded, where an experiment counted them.
        ccdfs: Vec<Ccdf>,
    },
    /// Misuse alone.
    Misuse {
        /// How much of it was tried.
        scale: Scale,
        /// The outcome of each kind under each allocator.
        runs: Vec<MisuseRun>,
    },
    /// A search for the least memory.
    Survival {
        /// How much was asked for.
        scale: Scale,
        /// The findings under each allocator.
        searches: Vec<Survival>,
    },
}

impl Purpose {
    /// A suite of which nothing has run yet.
    pub fn suite(scale: Scale) -> Self {
        Self::Suite {
            scale,
            misuse: Vec::new(),
        }
    }

    /// Experiments of which none has run yet.
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
    /// When it was started, in UTC, as RFC 3339.
    pub started: String,
    /// How it was asked for: heapdrome's own arguments.
    pub asked: Vec<String>,
    /// `sweep threads` or `sweep jobs and size`, or the name of the suite.
    pub name: String,
    /// The machine.
    pub machine: Machine,
    /// The races, in the order in which they were run; only sweeps and suites have any.
    pub races: Vec<Member>,
    /// Its purpose.
    pub purpose: Purpose,
    /// The tables that are made of what was measured.
    pub tables: Vec<Table>,
    /// The published sentences, tested.
    pub claims: Vec<ClaimResult>,
    /// The document's allocators that did not race.
    pub absent: Vec<Absent>,
    /// Remarks on all of it for the reader.
    pub remarks: Vec<String>,
}

impl Collection {
    /// How much was run of what can be run at several scales.
    pub fn scale(&self) -> Option<Scale> {
        match self.purpose {
            Purpose::Sweep(_) => None,
            Purpose::Suite { scale, .. }
            | Purpose::Paging { scale, .. }
            | Purpose::Misuse { scale, .. }
            | Purpose::Survival { scale, .. } => Some(scale),
        }
    }

    /// The findings of a sweep.
    pub fn sweep(&self) -> Option<&SweepResult> {
        match &self.purpose {
            Purpose::Sweep(found) => found.as_ref(),
            _ => None,
        }
    }

    /// The cells of experiments.
    pub fn paging_cells(&self) -> &[PagingCell] {
        match &self.purpose {
            Purpose::Paging { cells, .. } => cells,
            _ => &[],
        }
    }

    /// The cells of experiments, to run and to change.
    pub fn paging_cells_mut(&mut self) -> &mut [PagingCell] {
        match &mut self.purpose {
            Purpose::Paging { cells, .. } => cells,
            _ => &mut [],
        }
    }

    /// How often times were exceeded.
    pub fn ccdfs(&self) -> &[Ccdf] {
        match &self.purpose {
            Purpose::Paging { ccdfs, .. } => ccdfs,
            _ => &[],
        }
    }

    /// The outcomes of misuse, beside races or alone.
    pub fn misuse(&self) -> &[MisuseRun] {
        match &self.purpose {
            Purpose::Suite { misuse: runs, .. } | Purpose::Misuse { runs, .. } => runs,
            _ => &[],
        }
    }

    /// The outcomes of misuse, to add to; `None` for a purpose without misuse.
    pub fn misuse_mut(&mut self) -> Option<&mut Vec<MisuseRun>> {
        match &mut self.purpose {
            Purpose::Suite { misuse: runs, .. } | Purpose::Misuse { runs, .. } => Some(runs),
            _ => None,
        }
    }

    /// The searches for the least memory.
    pub fn searches(&self) -> &[Survival] {
        match &self.purpose {
            Purpose::Survival { searches, .. } => searches,
            _ => &[],
        }
    }
}

/// A collection as its file has it: the parts of every purpose side by side.
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
    /// Takes out what says the purpose: a file has parts of one alone.
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
