//! The complete plan of a race, with which another process can resume the race.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{Entrant, Nanoseconds, Replayed, Role, WALL};

/// Direction in which a metric improves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Less is better, as with time.
    Lower,
    /// More is better, as with operations per second.
    Higher,
}

/// A figure that the command itself prints, found by a regular expression.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Name under which the metric is reported.
    pub name: String,
    /// Regular expression. The number is its first group, or else the whole match.
    pub pattern: String,
    /// Direction in which the metric improves.
    pub better: Better,
}

/// A server that runs under the allocator while the command sends it load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Server {
    /// Shell command that starts the server and stays in the foreground.
    pub serve: String,
    /// Shell command that succeeds when the server answers.
    pub ready: String,
    /// Time within which the server must answer.
    pub ready_within: Nanoseconds,
    /// Idle time between the end of the load and the reading of memory, in memory runs.
    #[serde(default)]
    pub idle: Nanoseconds,
}

impl Server {
    /// Default idle time of a server.
    pub const IDLE: Nanoseconds = Nanoseconds(3_000_000_000);
}

/// Kind of time budget for the rounds of a race without an explicit limit. The budget in seconds
/// may depend on the duration of one run, which only the race can measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// Time budget for a first impression.
    Quick,
    /// Time budget for an answer while a person waits.
    Usual,
    /// Time budget for intervals as narrow as requested.
    Patient,
}

/// Conditions under which a race ends.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stopping {
    /// Half-width, as a fraction (0.01 is 1%). The race ends once no judged interval has a larger
    /// half-width.
    pub precision: Option<f64>,
    /// Minimum number of rounds before the intervals may end the race.
    pub min_rounds: u32,
    /// Maximum number of rounds.
    pub max_rounds: u32,
    /// Time limit of the whole race, including runs under the witness and memory runs. A round or
    /// memory run that would end later does not start.
    pub max_time: Option<Nanoseconds>,
    /// Whether an entrant stops once all comparisons with it are decided, after at least
    /// `min_rounds` rounds. If so, the race ends when all comparisons are decided.
    #[serde(default)]
    pub until_decided: bool,
    /// Distance from 1, as a fraction, within which a ratio does not matter (0.02 is 2%). The race
    /// ends once every judged interval of the entrants still racing excludes 1 or lies within this
    /// distance. `None` if the widths of intervals or the targets end the race instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin: Option<f64>,
    /// Kind of time budget for the rounds, if no limit was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<Pace>,
}

/// Settings of the runs, and of the judgement of their figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Options {
    /// Workload that provides the command, as words quoted for a shell: its name, `--quick` for its
    /// small form, and its parameters, such as `build --quick` or `rptest threads=2`. `None` for a
    /// command of the user's own.
    #[serde(default)]
    pub workload: Option<String>,
    /// Number of warm-up rounds. They precede the first counted round, and are not recorded.
    pub warmup_rounds: u32,
    /// Shell command that runs once before all runs, and again whenever the race is resumed.
    pub setup: Option<String>,
    /// Shell command that runs before each run, untimed and without the allocator.
    pub prepare: Option<String>,
    /// Shell command that runs after all runs, and after an interrupt.
    pub cleanup: Option<String>,
    /// Shell command that runs after each successful run. The command succeeds if the run's result
    /// is correct.
    pub check: Option<String>,
    /// CPUs to which the command is pinned; empty for all.
    pub pin: Vec<usize>,
    /// Time limit of a run. A longer run is killed and counted as a failure.
    pub timeout: Option<Nanoseconds>,
    /// Folder in which the command runs; `None` for the folder in which heapdrome was started.
    pub directory: Option<PathBuf>,
    /// File that the command reads as standard input; `None` for `/dev/null`.
    pub stdin: Option<PathBuf>,
    /// Environment variables set for every entrant.
    pub environment: BTreeMap<String, String>,
    /// Figures read from the command's own output, including those of a workload.
    pub metrics: Vec<Metric>,
    /// Names of the judged figures in a result. These figures share the error probability. They
    /// decide when an entrant stops and when the race ends.
    #[serde(default = "wall_alone")]
    pub judged: Vec<String>,
    /// Names of those metrics that the workload reports about itself. A run may lack any of them.
    #[serde(default)]
    pub figures: Vec<String>,
    /// Server to which the command sends load, if there is one.
    pub server: Option<Server>,
    /// Whether standard output is compared with the baseline's.
    pub compare_output: bool,
    /// Whether an entrant fails if its output differs from the baseline's.
    #[serde(default)]
    pub same_output_required: bool,
    /// Regular expressions for parts of the output that comparisons ignore, in addition to the
    /// numbers of the metrics.
    #[serde(default)]
    pub masked: Vec<String>,
    /// Number of untimed memory runs for each entrant except the baseline's twin.
    pub memory_runs: u32,
    /// Exit statuses of the command that count as success; an empty list stands for 0 alone.
    pub success: Vec<i32>,
    /// Whether the race continues even if the entrants do different amounts of work.
    #[serde(default)]
    pub allow_different_work: bool,
    /// Role of the command as it runs today, if the command chooses an allocator itself; `None` if
    /// the unchanged command does not race.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_is: Option<Role>,
    /// Whether proofs are omitted. If so, nothing shows which object served malloc, and the row of
    /// every entrant that succeeded counts as valid.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unproven: bool,
    /// The replay, if the command replays a trace. Its speed determines the figures that have
    /// verdicts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<Replayed>,
}

impl Options {
    /// Returns whether this exit status of the command counts as success.
    pub fn is_success(&self, status: i32) -> bool {
        match self.success.as_slice() {
            [] => status == 0,
            success => success.contains(&status),
        }
    }
}

/// Returns the judged figures of plans from older versions, which judged only wall time.
fn wall_alone() -> Vec<String> {
    vec![WALL.to_owned()]
}

/// Membership of a race in a sweep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Name of the sweep, equal in all its races.
    pub of: String,
    /// Cell of the race in the sweep, such as `jobs=2`.
    pub cell: String,
}

/// All data that a race needs, stored in the first line of its journal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Arguments of heapdrome that requested the race, from `race` on.
    #[serde(default)]
    pub asked: Vec<String>,
    /// Folder in which heapdrome was started.
    pub started_in: PathBuf,
    /// Sweep and cell to which the race belongs, if any. A sweep is resumed only as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
    /// Start time of the race, in UTC, as RFC 3339.
    #[serde(default)]
    pub started: String,
    /// Remarks for readers of the result, such as the package that a workload builds.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Entrants. Only the first is a baseline.
    pub entrants: Vec<Entrant>,
    /// Seed of the order of each round and of every other random draw.
    pub seed: u64,
    /// Settings of the runs, and of the judgement of their figures.
    pub options: Options,
    /// Conditions under which the race ends.
    pub stopping: Stopping,
    /// Permitted probability of one or more false verdicts on judged figures in the whole race
    /// (0.05 is 5%).
    pub alpha: f64,
}

impl Plan {
    /// Returns the folder in which the command runs, even if the race is resumed from another
    /// folder.
    pub fn directory(&self) -> PathBuf {
        match &self.options.directory {
            Some(folder) => self.started_in.join(folder),
            None => self.started_in.clone(),
        }
    }

    /// Returns the position of the baseline among the entrants.
    pub fn baseline(&self) -> usize {
        let place = self.entrants.iter().position(|e| e.role == Role::Baseline);
        place.unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_statuses_zero_alone_is_success() {
        let options = |success: &[i32]| Options {
            success: success.to_vec(),
            ..Options::default()
        };
        assert!(options(&[]).is_success(0) && !options(&[]).is_success(1));
        assert!(options(&[1, 3]).is_success(3) && !options(&[1, 3]).is_success(0));
    }
}
