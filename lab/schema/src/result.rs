//! Result of a race, described in docs/result-schema.md.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize};

use crate::{
    AfterIdle, Ending, Evidence, ImageMemory, MemoryParts, MemorySample, Options, Property, Role,
    Unserved,
};

/// Schema version that this heapdrome writes, and the newest version that it reads.
pub const SCHEMA: u32 = 1;

/// Conclusion of a comparison on one metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// The interval lies completely below 1, for wall, processor, user or system time.
    #[serde(rename = "faster")]
    Faster,
    /// The interval lies completely above 1, for wall, processor, user or system time.
    #[serde(rename = "slower")]
    Slower,
    /// The interval lies completely below 1, for any figure except wall, processor, user and system
    /// time.
    #[serde(rename = "less")]
    Less,
    /// The interval lies completely above 1, for any figure except wall, processor, user and system
    /// time.
    #[serde(rename = "more")]
    More,
    /// The interval contains 1.
    #[serde(rename = "no difference shown")]
    Undecided,
    /// The command replays a trace at a speed that supports no claim on the metric.
    #[serde(rename = "not judged at this speed")]
    NotJudged,
}

/// Ratio of an entrant to the baseline on one metric. A ratio below 1 means that the entrant's
/// figure is less than the baseline's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Entrant's figure divided by the baseline's.
    #[serde(deserialize_with = "number_or_null")]
    pub ratio: f64,
    /// Lower end of the interval.
    #[serde(deserialize_with = "number_or_null")]
    pub low: f64,
    /// Upper end of the interval.
    #[serde(deserialize_with = "number_or_null")]
    pub high: f64,
    /// Number of complete rounds on which the comparison is based.
    pub rounds: u32,
    /// Conclusion from the interval.
    pub verdict: Verdict,
    /// Estimated number of further rounds after which the race would have an 80% chance to show a
    /// difference of 1%; `None` if it cannot be estimated or is unreasonably large.
    pub rounds_to_show_one_percent: Option<u32>,
    /// Properties that the comparison relies on, but in which the race's replay was shown to differ
    /// from its program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub misses: Vec<Property>,
}

/// One metric of one entrant over all its runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Median of the samples.
    #[serde(deserialize_with = "number_or_null")]
    pub median: f64,
    /// Every sample, outliers included, in the order of the runs.
    #[serde(deserialize_with = "numbers_or_nulls")]
    pub samples: Vec<f64>,
    /// Positions of outliers in `samples`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outliers: Vec<usize>,
    /// Method of measurement, if it is not obvious.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
}

/// Validity of an entrant's row, with the reason if it is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// The entrant succeeded, and a proof shows that its allocator served the command. In a race
    /// without proofs, the entrant succeeded.
    Ok,
    /// A run of the entrant failed, or its result was wrong.
    Failed,
    /// No proof shows that the entrant's allocator served the command.
    NotServed,
    /// A run of the entrant exceeded the time limit.
    Timeout,
}

/// The part of a proof that matters to a reader of a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProofSummary {
    /// Path of the object that served most of the calls, if it is known.
    pub served_by: Option<String>,
    /// Number of calls of the allocation ABI that reached the entrant's allocator.
    pub calls: u64,
    /// Bytes requested by the calls in `calls`, including memory that was freed again. 0 in results
    /// of an older heapdrome.
    #[serde(default)]
    pub requested_bytes: u64,
    /// Number of processes seen, except those that only executed another program.
    pub processes: u64,
    /// Number of these processes that the entrant's allocator served.
    pub served_processes: u64,
    /// Unserved programs, with the reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unserved: Vec<Unserved>,
    /// Warnings for the reader that do not exclude the row.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Cell of the collection in which the proof was taken, if it was another cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_in: Option<String>,
}

/// Circumstances of an entrant's failure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Way in which the entrant's last run ended.
    pub ending: Ending,
    /// Last phase of the race in which the entrant took part, such as `round 3`.
    pub during: String,
    /// Last lines of the run's standard error.
    pub stderr_tail: String,
}

/// Result of comparing an entrant's standard output with the baseline's. Metrics and masked parts
/// of the output are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Output {
    /// Every run printed the output of the baseline.
    #[serde(rename = "same")]
    Same,
    /// A run printed a different output.
    #[serde(rename = "different")]
    Different,
    /// The output of the baseline and its twin differs from run to run.
    #[serde(rename = "output varies")]
    Varies,
    /// The race does not compare outputs, or the entrant or the baseline has no run.
    #[serde(rename = "not compared")]
    NotCompared,
}

/// One row of a result: an entrant with its figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EntrantResult {
    /// Name of the entrant, unique within the race.
    pub allocator: String,
    /// Role in the race.
    pub role: Role,
    /// Version of the allocator's library.
    pub version: String,
    /// Object that must serve malloc; `None` for the system's allocator without a preload. For the
    /// command as it runs today, the object that was found to serve it.
    pub library: Option<PathBuf>,
    /// SHA-256 of `library` in hexadecimal.
    pub sha256: Option<String>,
    /// Environment variables that the entrant set in addition to `LD_PRELOAD`.
    pub settings: BTreeMap<String, String>,
    /// Whether the allocator gives up speed for safety.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hardened: bool,
    /// Known faults of the allocator that may affect the command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub known_faults: Vec<String>,
    /// Validity of the row, with the reason if it is invalid.
    pub status: Status,
    /// Number of rounds after which the entrant stopped because all comparisons with it were
    /// decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_after: Option<u32>,
    /// Circumstances of the failure, if the entrant failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Finding>,
    /// Summary of the proof, if one was taken.
    pub proof: Option<ProofSummary>,
    /// Result of comparing the entrant's standard output with the baseline's.
    pub output: Output,
    /// Wall time, in seconds.
    pub wall_s: Option<Series>,
    /// Processor time in user mode, in seconds.
    pub user_s: Option<Series>,
    /// Processor time in the kernel, in seconds.
    pub system_s: Option<Series>,
    /// Peak resident set of the largest process, in bytes.
    pub peak_rss_bytes: Option<Series>,
    /// Peak anonymous memory of the whole process tree, in bytes, from untimed runs.
    pub peak_tree_bytes: Option<Series>,
    /// Page faults without I/O (minor faults).
    pub minor_faults: Option<Series>,
    /// Page faults with I/O (major faults).
    pub major_faults: Option<Series>,
    /// Number of times that a thread gave up the CPU voluntarily.
    pub voluntary_switches: Option<Series>,
    /// Number of times that the scheduler preempted a thread.
    pub involuntary_switches: Option<Series>,
    /// Counters of the kernel or the processor, if available.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, Series>,
    /// Figures that the command printed about itself.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, Series>,
    /// Memory of the process tree over time, from an untimed run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory_timeline: Vec<MemorySample>,
    /// Average anonymous memory of the process tree over time, in bytes, from untimed runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub average_tree_bytes: Option<Series>,
    /// Composition of the tree's memory over time, from the same run as the timeline.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory_parts: Vec<MemoryParts>,
    /// Method of reading the composition, and its possible errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_parts_method: Option<String>,
    /// Part of the largest process's memory that malloc does not serve, from the same run as the
    /// timeline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageMemory>,
    /// Memory of the process tree at the end of the longest idle period, from the same run as the
    /// timeline. For a server with an idle time, memory at the end of the idle time that follows
    /// its load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_idle: Option<AfterIdle>,
    /// Findings of a run that tracked every block, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// Programs that outlived the command and were stopped, over all timed runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub detached: Vec<String>,
    /// Ratios to the baseline by figure (`wall_s`, `peak_rss_bytes`, ...); empty for the baseline
    /// and for an invalid row.
    pub versus_baseline: BTreeMap<String, Comparison>,
}

/// Sensitivity of the race on this machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NoiseFloor {
    /// Ratio of the baseline's twin to the baseline, with its interval.
    pub baseline_again: Comparison,
    /// Smallest difference in wall time that the race had an 80% chance to show, as a fraction; NaN
    /// if unknown.
    #[serde(deserialize_with = "number_or_null")]
    pub smallest_difference: f64,
    /// Smallest difference that the race had an 80% chance to show, as a fraction, for each judged
    /// figure by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub smallest_by_figure: BTreeMap<String, f64>,
}

/// The machine on which a race ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Name of the processor, from the kernel.
    pub processor: String,
    /// Number of processors that the scheduler may use.
    pub processors: usize,
    /// Memory of the machine in bytes; 0 if unknown.
    pub memory_bytes: u64,
    /// Name and release of the kernel.
    pub kernel: String,
    /// C library and its version.
    pub libc: String,
    /// Name and version of the Linux distribution.
    pub distribution: String,
    /// Processor time of a page fault that maps an empty small page, in seconds, if it was
    /// measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault_s: Option<f64>,
    /// Remarks on states of the machine that affect the result, as `heapdrome doctor` prints them.
    pub remarks: Vec<String>,
}

/// A finished race, or the completed part of an unfinished one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RaceResult {
    /// Version of this schema.
    pub schema: u32,
    /// Version of heapdrome that wrote the result.
    pub heapdrome: String,
    /// Start time of the race, in UTC, as RFC 3339.
    pub started: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Arguments of heapdrome that requested the race, from `race` on.
    #[serde(default)]
    pub asked: Vec<String>,
    /// Settings of the runs, and of the judgement of their figures.
    pub options: Options,
    /// Name of the baseline.
    pub baseline: String,
    /// Seed of every random draw.
    pub seed: u64,
    /// Number of complete rounds. In each round, every entrant that was still racing ran once.
    pub rounds: u32,
    /// Minimum number of rounds before the figures could stop a decided entrant or end a decided
    /// race; `None` if they could do neither.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_rounds: Option<u32>,
    /// Reason for the end of the race; before the end, the state of the race.
    pub ended: String,
    /// Permitted probability of one or more false verdicts on the judged figures in the whole race.
    pub alpha: f64,
    /// Machine on which the race ran.
    pub machine: Machine,
    /// Sensitivity of the race on this machine; `None` if there are too few rounds.
    pub noise_floor: Option<NoiseFloor>,
    /// Remarks on the race as a whole for the reader, such as drift.
    pub remarks: Vec<String>,
    /// Rows in the order of the plan, one for each entrant that the race tried.
    pub entrants: Vec<EntrantResult>,
}

/// Reads a number. `null` stands for NaN, which JSON cannot represent.
pub(crate) fn number_or_null<'de, D: Deserializer<'de>>(reader: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(reader)?.unwrap_or(f64::NAN))
}

/// Reads numbers. `null` stands for NaN.
fn numbers_or_nulls<'de, D: Deserializer<'de>>(reader: D) -> Result<Vec<f64>, D::Error> {
    let numbers: Vec<Option<f64>> = Vec::deserialize(reader)?;
    Ok(numbers
        .into_iter()
        .map(|number| number.unwrap_or(f64::NAN))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_number_survives_the_file() {
        let samples = vec![0.1 + 0.2, f64::NAN];
        let series = Series {
            median: f64::INFINITY,
            samples,
            outliers: vec![],
            method: None,
        };
        let text = serde_json::to_string(&series).expect("JSON");
        let read: Series = serde_json::from_str(&text).expect("a series");
        assert!(read.median.is_nan() && read.samples[1].is_nan());
        assert_eq!(read.samples[0], 0.1 + 0.2, "to the last bit");
    }
}
