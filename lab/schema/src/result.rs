//! The result of a race: JSON schema version 1, described in docs/result-schema.md.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize};

use crate::{AfterIdle, Ending, Evidence, MemoryParts, MemorySample, Options, Role, Unserved};

/// The schema version that this heapdrome writes, and the newest that it reads.
pub const SCHEMA: u32 = 1;

/// What a comparison says about a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// The interval lies wholly on the better side of 1, for time.
    #[serde(rename = "faster")]
    Faster,
    /// The interval lies wholly on the worse side of 1, for time.
    #[serde(rename = "slower")]
    Slower,
    /// The interval lies wholly below 1, for memory and counts.
    #[serde(rename = "less")]
    Less,
    /// The interval lies wholly above 1, for memory and counts.
    #[serde(rename = "more")]
    More,
    /// The interval holds 1.
    #[serde(rename = "no difference shown")]
    Undecided,
}

/// An entrant's ratio to the baseline on one metric; under 1 is less than the baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Entrant over baseline.
    #[serde(deserialize_with = "number_or_null")]
    pub ratio: f64,
    /// The lower end of the interval.
    #[serde(deserialize_with = "number_or_null")]
    pub low: f64,
    /// The upper end of the interval.
    #[serde(deserialize_with = "number_or_null")]
    pub high: f64,
    /// Complete rounds that it rests on.
    pub rounds: u32,
    /// What it says.
    pub verdict: Verdict,
    /// About how many more rounds would show a difference of 1%, where that can be told.
    pub rounds_to_show_one_percent: Option<u32>,
}

/// One metric of one entrant over all rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// The median of the samples.
    #[serde(deserialize_with = "number_or_null")]
    pub median: f64,
    /// Every sample in the order of the rounds; none is ever dropped.
    #[serde(deserialize_with = "numbers_or_nulls")]
    pub samples: Vec<f64>,
    /// Places in `samples` that lie far from the rest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outliers: Vec<usize>,
    /// How it was measured, where that is not self-evident.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
}

/// Whether an entrant's row counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// It ran, and its allocator served.
    Ok,
    /// It crashed, or its result was wrong.
    Failed,
    /// Its allocator did not serve the command.
    NotServed,
    /// It ran out of time.
    Timeout,
}

/// The part of a proof that a reader of a result wants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProofSummary {
    /// The path of the object that served most of the calls.
    pub served_by: Option<String>,
    /// Calls of the allocation ABI that reached it.
    pub calls: u64,
    /// Bytes that those calls asked for, with all that was freed again; 0 in results of an older
    /// heapdrome.
    #[serde(default)]
    pub requested_bytes: u64,
    /// Processes seen.
    pub processes: u64,
    /// Processes that it served.
    pub served_processes: u64,
    /// What was not served, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unserved: Vec<Unserved>,
    /// What the reader should know although the row counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The cell of the collection in which the proof was taken, where that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_in: Option<String>,
}

/// How and when an entrant left the race.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// How its run ended.
    pub ending: Ending,
    /// In which part of the race.
    pub during: String,
    /// The last lines of its standard error.
    pub stderr_tail: String,
}

/// An entrant's standard output beside the baseline's, with figures masked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Output {
    /// Every run printed what the baseline did.
    #[serde(rename = "same")]
    Same,
    /// A run printed something else.
    #[serde(rename = "different")]
    Different,
    /// The baseline's own output differs from run to run.
    #[serde(rename = "output varies")]
    Varies,
    /// The race compares no outputs, or there is nothing to compare.
    #[serde(rename = "not compared")]
    NotCompared,
}

/// One row of a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EntrantResult {
    /// The name by which it was asked for.
    pub allocator: String,
    /// Why it took part.
    pub role: Role,
    /// The version of the library.
    pub version: String,
    /// The object that was preloaded.
    pub library: Option<PathBuf>,
    /// Its SHA-256 in hexadecimal.
    pub sha256: Option<String>,
    /// Environment variables that it set besides `LD_PRELOAD`.
    pub settings: BTreeMap<String, String>,
    /// Whether it is hardened: it gives up speed for safety.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hardened: bool,
    /// Faults that a reader should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub known_faults: Vec<String>,
    /// Whether the row counts.
    pub status: Status,
    /// After how many rounds nothing was open on it, where it ran no more because of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_after: Option<u32>,
    /// How it failed, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Finding>,
    /// Who served malloc.
    pub proof: Option<ProofSummary>,
    /// Whether its standard output equals the baseline's.
    pub output: Output,
    /// Wall time in seconds.
    pub wall_s: Option<Series>,
    /// CPU time in user mode in seconds.
    pub user_s: Option<Series>,
    /// CPU time in the kernel in seconds.
    pub system_s: Option<Series>,
    /// Peak resident set of the largest process in bytes.
    pub peak_rss_bytes: Option<Series>,
    /// Peak anonymous memory of the whole tree in bytes, from untimed runs.
    pub peak_tree_bytes: Option<Series>,
    /// Page faults without input or output.
    pub minor_faults: Option<Series>,
    /// Page faults with.
    pub major_faults: Option<Series>,
    /// Times that a thread gave up the CPU by itself.
    pub voluntary_switches: Option<Series>,
    /// Times that the scheduler took it away.
    pub involuntary_switches: Option<Series>,
    /// Counters of the kernel or the processor, where they could be had.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, Series>,
    /// Figures that the command printed about itself.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, Series>,
    /// Memory of the tree over time, from an untimed run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory_timeline: Vec<MemorySample>,
    /// The average of the tree's anonymous memory over time in bytes, from untimed runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub average_tree_bytes: Option<Series>,
    /// What the tree's memory was made of over time, from the same run as the timeline.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory_parts: Vec<MemoryParts>,
    /// How the parts were read, and what that can miss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_parts_method: Option<String>,
    /// The tree's memory after idling, from the same run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_idle: Option<AfterIdle>,
    /// What a run showed that followed every block, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// Programs that outlived the command and were stopped, over all runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub detached: Vec<String>,
    /// Ratios to the baseline by metric (`wall_s`, `peak_rss_bytes`, ...); empty for the baseline.
    pub versus_baseline: BTreeMap<String, Comparison>,
}

/// What this machine could have shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NoiseFloor {
    /// The ratio of the baseline to itself under its second name, with its interval.
    pub baseline_again: Comparison,
    /// The smallest difference in wall time that the race had 80% chance to show, as a fraction.
    #[serde(deserialize_with = "number_or_null")]
    pub smallest_difference: f64,
    /// The smallest difference in each judged figure, by its name, that the race had 80% chance to
    /// show, as a fraction.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub smallest_by_figure: BTreeMap<String, f64>,
}

/// The machine that a race ran on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor, as the kernel names it.
    pub processor: String,
    /// Processors that the scheduler may use.
    pub processors: usize,
    /// Memory of the machine in bytes.
    pub memory_bytes: u64,
    /// The kernel's release.
    pub kernel: String,
    /// The C library and its version.
    pub libc: String,
    /// The distribution.
    pub distribution: String,
    /// Processor time of a page fault that brings an empty page of 4 KiB in seconds, where it was
    /// measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault_s: Option<f64>,
    /// Remarks on its state that bear on the result, as `heapdrome doctor` gives them.
    pub remarks: Vec<String>,
}

/// A finished race, or what there is of an unfinished one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RaceResult {
    /// The version of this schema.
    pub schema: u32,
    /// The version of heapdrome that wrote it.
    pub heapdrome: String,
    /// When the race started, in UTC, as RFC 3339.
    pub started: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// How the race was asked for: heapdrome's own arguments, from `race` on.
    #[serde(default)]
    pub asked: Vec<String>,
    /// How each run was made.
    pub options: Options,
    /// The name of the entrant that every other is compared with.
    pub baseline: String,
    /// The seed from which every draw followed.
    pub seed: u64,
    /// Complete rounds: in each, every entrant that still raced ran once.
    pub rounds: u32,
    /// The rounds that every entrant ran whatever the figures showed, where what they showed
    /// decided who ran more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_rounds: Option<u32>,
    /// Whether the race ended by itself, and why.
    pub ended: String,
    /// Probability of one or more false verdicts on the judged figures in the whole race.
    pub alpha: f64,
    /// The machine.
    pub machine: Machine,
    /// What this machine could have shown; `None` with too few rounds.
    pub noise_floor: Option<NoiseFloor>,
    /// What the reader should know about the race as a whole, such as drift.
    pub remarks: Vec<String>,
    /// The rows.
    pub entrants: Vec<EntrantResult>,
}

/// A number; JSON has no word for what is not one, and `null` stands for it.
pub(crate) fn number_or_null<'de, D: Deserializer<'de>>(reader: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(reader)?.unwrap_or(f64::NAN))
}

/// Numbers, among which `null` stands for what is not one.
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
