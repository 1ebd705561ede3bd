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
    /// An allocator or a thread count that it speaks of cannot be had here.
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
    /// What it shows.
    pub title: String,
    /// Where its figures were published, and on which machine; `None` for figures measured here.
    pub published: Option<String>,
    /// The heads of its columns; the first column holds names.
    pub heads: Vec<String>,
    /// Its rows, each with as many cells as there are heads.
    pub rows: Vec<Vec<String>>,
    /// What a reader should know about it.
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
    /// What was timed, such as `read`; those of one kind are drawn together.
    pub kind: String,
    /// Under which circumstances.
    pub cell: String,
    /// How many times were counted.
    pub count: u64,
    /// By rising time.
    pub points: Vec<CcdfPoint>,
}

/// Races that belong together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// For a suite, how much of it was run.
    pub scale: Option<Scale>,
    /// The machine.
    pub machine: Machine,
    /// The races, in the order in which they were run.
    pub races: Vec<Member>,
    /// The tables that a suite makes of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<Table>,
    /// How often times were exceeded, where an experiment counted them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ccdfs: Vec<Ccdf>,
    /// The settings of the paging lab, with what came of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paging_cells: Vec<PagingCell>,
    /// How long these were measured, over all times that the suite was taken up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paging_time: Option<Nanoseconds>,
    /// What came of each kind of misuse under each allocator.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub misuse: Vec<MisuseRun>,
    /// What a search for the least memory found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub survival: Vec<Survival>,
    /// What a sweep found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<SweepResult>,
    /// The published sentences, tested.
    pub claims: Vec<ClaimResult>,
    /// The document's allocators that did not race.
    pub absent: Vec<Absent>,
    /// What a reader should know about all of it.
    pub remarks: Vec<String>,
}
