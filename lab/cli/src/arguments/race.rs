//! The command line of `heapdrome race`: entrants, runs, the stopping rule, and destinations of the
//! result.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use heapdrome_engine::race::AskedWork;
use heapdrome_schema::SweptParameter;

use super::output::OutputArguments;
use super::replay::HowArguments;
use crate::values::{
    MetricArgument, Processors, duration, duration_or_none, key_value, metric, percentage,
    processors, sweep, work,
};

/// Arguments of `heapdrome race`.
#[derive(Args, Debug)]
#[command(next_help_heading = "What races")]
pub struct RaceArguments {
    /// Allocators to race: names, paths of shared objects, or groups: `default`, `found` (already
    /// on this machine, without variants that only change settings), `hardened`, `all`
    ///
    /// Each of them, with its settings, is an entrant of the race. Without this option the group
    /// `default` races: `system`, `elfmalloc`, `jemalloc`,
    /// `mimalloc2`, `mimalloc3`, `rpmalloc`, and `system-huge` if applicable. Missing ones are
    /// built, or left out if that fails.
    #[arg(short, long, value_delimiter = ',', value_name = "NAME,...")]
    pub allocators: Vec<String>,
    /// The allocator with which the others are compared [default: system; or `as-is`, the command
    /// without any preloaded library, if it chooses another allocator itself]
    #[arg(long, value_name = "NAME")]
    pub baseline: Option<String>,
    /// Race a built-in workload instead of a command (see `heapdrome workloads`); its parameters
    /// follow after `--`
    #[arg(short, long, value_name = "NAME",
          conflicts_with_all = ["directory", "prepare", "serve"])]
    pub workload: Option<String>,
    /// Race the replay of a trace instead of a command (see `heapdrome replay`). With `--speed
    /// paced`, memory is judged unless --judge is given
    #[arg(long, value_name = "FILE",
          conflicts_with_all = ["command", "workload", "threads", "sweeps", "directory", "prepare", "serve"])]
    pub trace: Option<PathBuf>,
    /// How the trace is replayed.
    #[command(flatten)]
    pub how: HowArguments,
    /// Race once for each of these numbers of threads, pinned to as many processors: short for
    /// --sweep threads=N,...
    #[arg(short, long, value_delimiter = ',', value_name = "N,...", conflicts_with = "pin",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub threads: Vec<u64>,
    /// Race once for each of these values. A value replaces {NAME} in the command, or sets a
    /// parameter of the workload or an environment variable. Several sweeps race every combination
    #[arg(long = "sweep", value_name = "NAME|env:NAME=VALUE,...", value_parser = sweep)]
    pub sweeps: Vec<SweptParameter>,
    /// Amount of work of each run in a sweep: the swept `value`, the `same` in every race, or the
    /// number that REGEX finds in the output [default: the operations of a workload; the value, if
    /// it is a number in the command; otherwise the same]
    #[arg(long, value_name = "value|same|REGEX", value_parser = work)]
    pub work: Option<AskedWork>,
    /// Degradation per processor up to which a sweep counts as scaling; the knee is the last such
    /// value [default: 25%]
    #[arg(long, value_name = "PERCENT", value_parser = percentage)]
    pub knee: Option<f64>,
    /// Race for about ten seconds, or five rounds if they take longer, with the small form of a
    /// workload: a first impression
    #[arg(long)]
    pub quick: bool,
    /// Figures that decide which entrants leave early and when the race ends: `wall`, `cpu`
    /// (processor time), `memory` (peak), or the name of a metric. The error probability is divided
    /// among them [default: wall,cpu]
    #[arg(long, value_delimiter = ',', value_name = "FIGURE,...")]
    pub judge: Vec<String>,
    /// Stopping rule.
    #[command(flatten)]
    pub stopping: StoppingArguments,
    /// Options of each run.
    #[command(flatten)]
    pub runs: RunArguments,
    /// Server to run under the allocator while the command loads it
    #[arg(long, value_name = "SHELL COMMAND", requires = "ready")]
    pub serve: Option<String>,
    /// Command that succeeds as soon as the server answers
    #[arg(long, value_name = "SHELL COMMAND", requires = "serve")]
    pub ready: Option<String>,
    /// Idle time of the server between its load and the reading of its memory, in the untimed run
    /// that measures memory; 0s skips the reading [default: 3s]
    #[arg(long, value_name = "TIME", value_parser = duration_or_none, requires = "serve")]
    pub idle: Option<Duration>,
    /// Figure that the command prints. The number is what the first group of REGEX matches, or the
    /// whole match if there is no group. Lower is better, unless NAME:higher says otherwise
    #[arg(long = "metric", value_name = "NAME[:higher|:lower]=REGEX", value_parser = metric)]
    pub metrics: Vec<MetricArgument>,
    /// Seed of the order of rounds and of every other draw [default: from the clock]
    #[arg(long)]
    pub seed: Option<u64>,
    /// Destinations of the result.
    #[command(flatten)]
    pub output: OutputArguments,
    /// Continue an interrupted race or sweep: the one of this name, or the latest that was started
    /// in this folder. The result goes to the original files unless others are named. New limits,
    /// such as --max-time or --rounds, replace all earlier ones, and can also continue a race that
    /// had ended
    #[arg(long, value_name = "RACE", num_args = 0..=1, default_missing_value = "latest",
          conflicts_with_all = ["command", "workload", "trace", "speed", "touch", "process", "threads", "sweeps", "work", "knee", "allocators", "quick", "baseline",
          "judge", "warmup", "setup",
          "prepare", "cleanup", "check", "pin", "timeout", "directory", "stdin", "environment",
          "discard_output", "memory_runs", "success", "allow_different_work", "unproven", "serve", "ready", "idle", "metrics",
          "seed"])]
    pub resume: Option<String>,
    /// The command to race, with its arguments, or the parameters of the workload; put heapdrome's
    /// options before it
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    pub command: Vec<String>,
    /// Number of words of the command before [`RaceArguments::settled`] splits it.
    #[arg(skip)]
    pub typed: usize,
}

impl RaceArguments {
    /// Returns the requested baseline, or `system`. Without a request, the race replaces `system`
    /// by `as-is` if the command chooses an allocator itself.
    pub fn baseline(&self) -> &str {
        self.baseline.as_deref().unwrap_or("system")
    }

    /// Returns whether the options request a sweep: several numbers of threads, values of
    /// `--sweep`, or a number of threads for a command.
    pub fn is_sweep(&self) -> bool {
        let several = self.threads.len() > 1 || !self.sweeps.is_empty();
        several || !self.threads.is_empty() && self.workload.is_none()
    }
}

/// Stopping rule of a race.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "When to stop")]
pub struct StoppingArguments {
    /// Stop when the half-width of every judged interval is at most this, instead of when every
    /// comparison is decided
    #[arg(long, value_name = "PERCENT", value_parser = percentage)]
    pub precision: Option<f64>,
    /// Run exactly this many rounds; with --precision or --max-time, at most this many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: Option<u32>,
    /// Decide nothing before this many rounds [default: 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub min_rounds: Option<u32>,
    /// Run at most this many rounds [default: 150]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_rounds: Option<u32>,
    /// Stop after about this long, including the untimed runs (proof and memory) but not the
    /// builds. Nothing starts that would end later [default: about 60 runs of the baseline, at
    /// least 1m and at most 10m, for the rounds alone]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub max_time: Option<Duration>,
    /// Do not stop entrants early that are beaten on every judged figure
    #[arg(long)]
    pub all_rounds: bool,
    /// Number of rounds to run first and discard
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub warmup: u32,
}

impl StoppingArguments {
    /// Returns whether any option of the stopping rule is set, except `--warmup`.
    pub fn is_given(&self) -> bool {
        let rounds = [self.rounds, self.min_rounds, self.max_rounds];
        let of_rounds = rounds.iter().any(Option::is_some);
        of_rounds || self.precision.is_some() || self.max_time.is_some() || self.all_rounds
    }
}

/// Options of each run.
#[derive(Args, Debug)]
#[command(next_help_heading = "How each run is made")]
pub struct RunArguments {
    /// Run this command once before the race
    #[arg(long, value_name = "SHELL COMMAND")]
    pub setup: Option<String>,
    /// Run this command before each run, untimed and without the allocator
    #[arg(long, value_name = "SHELL COMMAND")]
    pub prepare: Option<String>,
    /// Run this command once after the race
    #[arg(long, value_name = "SHELL COMMAND")]
    pub cleanup: Option<String>,
    /// Run this command after each successful run; if it fails, the run counts as failed
    #[arg(long, value_name = "SHELL COMMAND")]
    pub check: Option<String>,
    /// Pin the command to these processors
    #[arg(long, value_name = "0,2-3", value_parser = processors)]
    pub pin: Option<Processors>,
    /// Kill a run that takes longer than this
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// Run the command in this folder
    #[arg(long, value_name = "FOLDER")]
    pub directory: Option<PathBuf>,
    /// Use this file as the command's standard input [default: /dev/null]
    #[arg(long, value_name = "FILE")]
    pub stdin: Option<PathBuf>,
    /// Set an environment variable for every entrant
    #[arg(long = "env", value_name = "KEY=VALUE", value_parser = key_value)]
    pub environment: Vec<(String, String)>,
    /// Discard the command's output, and do not compare it with the baseline's
    #[arg(long)]
    pub discard_output: bool,
    /// Number of untimed runs per allocator that sample the memory of all processes of the command.
    /// 0 also skips the untimed run that records the size and lifetime of each block
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub memory_runs: u32,
    /// Exit statuses of the command that count as success
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "0",
          value_parser = clap::value_parser!(i32).range(0..=255))]
    pub success: Vec<i32>,
    /// Race even if the entrants do different amounts of work, such as a build in which only the
    /// first run compiles
    #[arg(long)]
    pub allow_different_work: bool,
    /// Race without the proof of which library serves malloc, for a command that does not run under
    /// ptrace. The race recommends nothing, and the exit status is 1
    #[arg(long, conflicts_with = "allow_different_work")]
    pub unproven: bool,
}
