//! Changes from one result to another, described in docs/result-schema.md.

use serde::{Deserialize, Serialize};

use crate::result::number_or_null;
use crate::{Machine, Verdict};

/// One of the two results that are compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparedResult {
    /// Name of the file, as the user gave it; `standard input` for `-`.
    pub file: String,
    /// Start time of the race or collection, in UTC, as RFC 3339.
    pub started: String,
    /// Version of heapdrome that wrote the result.
    pub heapdrome: String,
    /// Machine on which the result was measured.
    pub machine: Machine,
}

/// Ratio of a figure between two results, or degradation between two races of a sweep, with its
/// confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Factor {
    /// Estimated ratio of the new figure to the old one, or estimated degradation from the first
    /// race of a curve to this race; 1.02 is an increase of 2%.
    #[serde(deserialize_with = "number_or_null")]
    pub ratio: f64,
    /// Lower end of the confidence interval.
    #[serde(deserialize_with = "number_or_null")]
    pub low: f64,
    /// Upper end of the confidence interval.
    #[serde(deserialize_with = "number_or_null")]
    pub high: f64,
}

/// Change of one figure of one allocator between the two results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Name under which both results list the allocator.
    pub allocator: String,
    /// Name of the figure, such as `wall_s`.
    pub figure: String,
    /// Median in the old result.
    #[serde(deserialize_with = "number_or_null")]
    pub old: f64,
    /// Median in the new result.
    #[serde(deserialize_with = "number_or_null")]
    pub new: f64,
    /// Change of the figure itself, new over old; `None` if the machines differ, or count as
    /// different, or if there are too few rounds.
    pub itself: Option<Factor>,
    /// Change of the ratio to the baseline, new over old. `None` for the baseline, and if the
    /// baselines differ, a baseline's row is invalid, or there are too few rounds.
    pub beside_baseline: Option<Factor>,
    /// Joint verdict of `itself` and `beside_baseline`, as far as they count; `None` if neither
    /// counts.
    pub verdict: Option<Verdict>,
}

/// A race that both results contain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RacePair {
    /// Cell of the collections; `None` for single races.
    pub cell: Option<String>,
    /// Workload or command of the race, for display.
    pub command: Vec<String>,
    /// Baseline of both races; `None` if their baselines differ, or if the row of either is
    /// invalid.
    pub baseline: Option<String>,
    /// Number of rounds of the old race that are compared: its complete rounds, or only those that
    /// every entrant ran, if decided entrants could stop.
    pub old_rounds: u32,
    /// Number of rounds of the new race that are compared.
    pub new_rounds: u32,
    /// Changes of the compared figures, grouped by allocator.
    pub changes: Vec<Change>,
    /// Differences between the two races: versions, settings, options.
    pub differs: Vec<String>,
    /// Allocators that are not compared, with the reasons.
    pub not_compared: Vec<String>,
}

/// Outcome of a condition of `--fail-if`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Every interval that decides on a figure lies completely beyond the threshold, or an
    /// allocator or a race fails only in the new result.
    Confirmed,
    /// Every interval that decides on a figure lies completely on the near side of the threshold.
    RuledOut,
    /// Neither confirmed nor ruled out, for example because there is no interval.
    Undecided,
}

/// A condition of `--fail-if` with its outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// Text of the condition as the user wrote it.
    pub condition: String,
    /// Outcome over all allocators and races: `Confirmed` if one figure or failure confirms the
    /// condition, `RuledOut` only if every figure rules it out.
    pub outcome: Outcome,
    /// Figures and failures that led to the outcome, in words.
    pub because: Vec<String>,
}

/// Changes from one result to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Changes {
    /// Version of the schema, equal to that of [`RaceResult`](crate::RaceResult).
    pub schema: u32,
    /// Version of heapdrome that compared the results.
    pub heapdrome: String,
    /// Earlier result, to which the other is compared.
    pub old: ComparedResult,
    /// Later result, whose changes are reported.
    pub new: ComparedResult,
    /// Whether both results count as measured on the same machine. Only then are the figures
    /// themselves compared.
    pub same_machine: bool,
    /// Basis of the verdicts, in words.
    pub rests_on: Vec<String>,
    /// Permitted probability of one or more false verdicts on one figure, over all allocators and
    /// races.
    pub alpha: f64,
    /// Races that both results contain.
    pub pairs: Vec<RacePair>,
    /// Conditions of `--fail-if` with their outcomes.
    pub conditions: Vec<Judged>,
    /// Races that only one of the results contains, or that have no complete round in one of them.
    pub unmatched: Vec<String>,
}
