//! What changed from one result to another, described in docs/result-schema.md.

use serde::{Deserialize, Serialize};

use crate::result::number_or_null;
use crate::{Machine, Verdict};

/// One of the two results that are compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparedResult {
    /// The file, as it was named.
    pub file: String,
    /// When its race started, in UTC, as RFC 3339.
    pub started: String,
    /// The version of heapdrome that wrote it.
    pub heapdrome: String,
    /// The machine.
    pub machine: Machine,
}

/// A factor by which a figure changed, new over old, with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Factor {
    /// The estimate: 1.02 is 2% more than before.
    #[serde(deserialize_with = "number_or_null")]
    pub ratio: f64,
    /// The lower end.
    #[serde(deserialize_with = "number_or_null")]
    pub low: f64,
    /// The upper end.
    #[serde(deserialize_with = "number_or_null")]
    pub high: f64,
}

/// One figure of one allocator in both results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The allocator.
    pub allocator: String,
    /// The figure, such as `wall_s`.
    pub figure: String,
    /// Its median in the old result.
    #[serde(deserialize_with = "number_or_null")]
    pub old: f64,
    /// Its median in the new one.
    #[serde(deserialize_with = "number_or_null")]
    pub new: f64,
    /// The figure itself, new over old; `None` where the machines differ or the rounds are too few.
    pub itself: Option<Factor>,
    /// The ratio to the baseline, new over old; `None` for the baseline, and where the two
    /// baselines are not the same or the rounds are too few.
    pub beside_baseline: Option<Factor>,
    /// What every factor that counts says together; `None` where there is none.
    pub verdict: Option<Verdict>,
}

/// One race of both results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RacePair {
    /// Which cell of the collections it is; `None` for single races.
    pub cell: Option<String>,
    /// What raced: the workload, or the command, for the eye.
    pub command: Vec<String>,
    /// The baseline of both; `None` where they have not the same.
    pub baseline: Option<String>,
    /// Complete rounds of the old race.
    pub old_rounds: u32,
    /// Complete rounds of the new race.
    pub new_rounds: u32,
    /// The figures, allocator by allocator.
    pub changes: Vec<Change>,
    /// How the two races were not made alike: versions, settings, options.
    pub differs: Vec<String>,
    /// Who is not compared, and why.
    pub not_compared: Vec<String>,
}

/// Whether what a condition names has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Every interval that counts lies wholly beyond the threshold.
    Confirmed,
    /// Every interval that counts lies wholly on this side of it.
    RuledOut,
    /// An interval holds the threshold, or there is none.
    Undecided,
}

/// A condition of `--fail-if`, judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// The condition as it was written.
    pub condition: String,
    /// The outcome: the worst of all that it speaks of.
    pub outcome: Outcome,
    /// The figures that say so.
    pub because: Vec<String>,
}

/// What changed from one result to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Changes {
    /// The version of the schema, that of [`RaceResult`](crate::RaceResult).
    pub schema: u32,
    /// The version of heapdrome that compared them.
    pub heapdrome: String,
    /// The old result.
    pub old: ComparedResult,
    /// The new result.
    pub new: ComparedResult,
    /// Whether figures were compared with themselves: the machines are described alike.
    pub same_machine: bool,
    /// What the verdicts rest on, in words.
    pub rests_on: Vec<String>,
    /// Probability of one or more false verdicts on one figure over all that is compared.
    pub alpha: f64,
    /// The races that both results have.
    pub pairs: Vec<RacePair>,
    /// The conditions, judged.
    pub conditions: Vec<Judged>,
    /// Races that only one of the results has.
    pub unmatched: Vec<String>,
}
