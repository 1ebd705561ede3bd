//! What a race is going to do, complete enough to be resumed by another process.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{Entrant, Nanoseconds, Role, WALL};

/// Which direction of a metric is the good one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Less is better, as with time.
    Lower,
    /// More is better, as with operations per second.
    Higher,
}

/// A figure that the command prints itself, found by a regular expression.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// The name under which it is reported.
    pub name: String,
    /// The regular expression; its first group, or the whole match, is the number.
    pub pattern: String,
    /// Which direction is the good one.
    pub better: Better,
}

/// A server that runs under the allocator while the command loads it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Server {
    /// The shell command that starts the server and stays in the foreground.
    pub serve: String,
    /// The shell command that succeeds as soon as the server answers.
    pub ready: String,
    /// How long the server may take to answer.
    pub ready_within: Nanoseconds,
    /// How long it is left alone after its load before its memory is read, in runs that watch
    /// memory.
    #[serde(default)]
    pub idle: Nanoseconds,
}

impl Server {
    /// How long a server is left alone where nothing else is said.
    pub const IDLE: Nanoseconds = Nanoseconds(3_000_000_000);
}

/// How much time the rounds of a race may take where nobody set a limit. The time depends on how
/// long one run takes, which only the race itself finds out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// A first impression.
    Quick,
    /// An answer that a person waits for.
    Usual,
    /// Intervals that are as narrow as was asked for.
    Patient,
}

/// When a race has run long enough.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stopping {
    /// Half-width of every judged interval at which to stop, as a fraction (0.01 is 1%).
    pub precision: Option<f64>,
    /// Never stop for what the intervals show before this many rounds.
    pub min_rounds: u32,
    /// Never run more rounds than this.
    pub max_rounds: u32,
    /// Start nothing that would end after the race has taken this long, runs under the witness and
    /// memory runs included.
    pub max_time: Option<Nanoseconds>,
    /// Whether, from `min_rounds` on, an entrant runs no more rounds once nothing is open on it.
    /// The race ends when nothing is open on anyone.
    #[serde(default)]
    pub until_decided: bool,
    /// Distance from 1 within which an interval shows that a difference does not matter, as a
    /// fraction (0.02 is 2%). The race ends once every judged interval excludes 1 or lies within
    /// it; `None` where the intervals' width, or targets, decide instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin: Option<f64>,
    /// The time that rounds may take, where no limit was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<Pace>,
}

/// How each run is made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Options {
    /// The workload that the command comes from, as words quoted for a shell: its name, `--quick`
    /// for its small form, and its parameters, such as `build --quick` or `rptest threads=2`;
    /// `None` for a command of the user's own.
    #[serde(default)]
    pub workload: Option<String>,
    /// Rounds that are run and thrown away before the first counted round.
    pub warmup_rounds: u32,
    /// Shell command run once, before everything.
    pub setup: Option<String>,
    /// Shell command run before each run, untimed, without the allocator.
    pub prepare: Option<String>,
    /// Shell command run once, after everything.
    pub cleanup: Option<String>,
    /// Shell command run after each run, which succeeds if the result is right.
    pub check: Option<String>,
    /// The CPUs that the command is pinned to; empty for all.
    pub pin: Vec<usize>,
    /// A run that takes longer is killed and counted as a failure.
    pub timeout: Option<Nanoseconds>,
    /// The folder in which the command runs; `None` for the current one.
    pub directory: Option<PathBuf>,
    /// The file that the command reads as standard input; `None` for `/dev/null`.
    pub stdin: Option<PathBuf>,
    /// Environment variables set for every entrant.
    pub environment: BTreeMap<String, String>,
    /// Figures read from the command's own output.
    pub metrics: Vec<Metric>,
    /// The figures that are judged, by their names in a result: they share the level, and decide
    /// who leaves and when the race ends.
    #[serde(default = "wall_alone")]
    pub judged: Vec<String>,
    /// The names of those among `metrics` that the workload reports about itself; one of them may
    /// be missing from a run.
    #[serde(default)]
    pub figures: Vec<String>,
    /// The server that the command loads, if it does.
    pub server: Option<Server>,
    /// Whether output is kept and compared with the baseline's; otherwise it is thrown away.
    pub compare_output: bool,
    /// Whether an entrant whose output differs from the baseline's has failed.
    #[serde(default)]
    pub same_output_required: bool,
    /// Regular expressions whose matches are masked before output is compared, besides the numbers
    /// of the metrics.
    #[serde(default)]
    pub masked: Vec<String>,
    /// Untimed memory runs for each entrant.
    pub memory_runs: u32,
    /// Exit statuses of the command that count as success.
    pub success: Vec<i32>,
    /// Whether the race goes on where the entrants do different amounts of work.
    #[serde(default)]
    pub allow_different_work: bool,
    /// The role that the command as it runs today takes, where it chooses an allocator itself;
    /// `None` where it does not race.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_is: Option<Role>,
    /// Whether no proof is taken: nothing shows which object served malloc, and every row counts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unproven: bool,
}

/// The figure that races judged before others could be.
fn wall_alone() -> Vec<String> {
    vec![WALL.to_owned()]
}

/// What a race is a part of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The name of the whole, the same in every part of it.
    pub of: String,
    /// Which part it is, such as `jobs=2`.
    pub cell: String,
}

/// Everything that a race needs to know, written first into its journal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// How the race was asked for: heapdrome's own arguments, from `race` on.
    #[serde(default)]
    pub asked: Vec<String>,
    /// The folder in which heapdrome was started.
    pub started_in: PathBuf,
    /// The sweep that the race is a part of, if it is one: it goes on as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
    /// When the race was started, in UTC, as RFC 3339.
    #[serde(default)]
    pub started: String,
    /// What a reader must know to repeat the race, such as the package that a workload builds.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Who races; exactly one baseline, and it comes first.
    pub entrants: Vec<Entrant>,
    /// The seed from which the order of each round and every other draw follows.
    pub seed: u64,
    /// How each run is made.
    pub options: Options,
    /// When to stop.
    pub stopping: Stopping,
    /// Probability, over the whole race, of a false verdict on a judged figure (0.05 is 5%).
    pub alpha: f64,
}

impl Plan {
    /// The folder in which the command runs, also when the race is resumed from another one.
    pub fn directory(&self) -> PathBuf {
        match &self.options.directory {
            Some(folder) => self.started_in.join(folder),
            None => self.started_in.clone(),
        }
    }

    /// The position of the baseline among the entrants.
    pub fn baseline(&self) -> usize {
        let place = self.entrants.iter().position(|e| e.role == Role::Baseline);
        place.unwrap_or(0)
    }
}
