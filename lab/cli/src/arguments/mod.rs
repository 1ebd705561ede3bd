//! Definition of the command line.

mod command;
mod compare;
pub mod library;
mod manual;
mod output;
pub mod paging;
mod profile;
mod race;
mod record;
mod replay;
mod report;
mod survive;
pub mod trace;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use heapdrome_registry::Level;
use heapdrome_schema::Scale;

use crate::examples;
use crate::values::key_value;
use paging::{PagingArguments, PagingSuiteArguments};
use trace::TraceArguments;

pub use compare::CompareArguments;
pub use manual::{CompletionsArguments, ManArguments};
pub use output::{OutputArguments, STDOUT, is_stdout};
pub use profile::ProfileArguments;
pub use race::{RaceArguments, RunArguments, StoppingArguments};
pub use record::RecordArguments;
pub use replay::{HowArguments, ReplayArguments};
pub use report::{Form, PlotArguments, ReportArguments};
pub use survive::SurviveArguments;

/// A racetrack for memory allocators.
///
/// Which memory allocator makes my program faster or smaller, by how much, and is that real?
#[derive(Debug, Parser)]
#[command(name = "heapdrome", version, after_help = EXAMPLES)]
pub struct Arguments {
    /// Requested subcommand.
    #[command(subcommand)]
    pub action: Action,
}

const EXAMPLES: &str = "\
Examples:
  heapdrome race ./program --with arguments
  heapdrome show latest --full
  heapdrome race -a system,jemalloc,./mine.so --prepare 'make clean' -- make
  heapdrome report result.json -o report.html
  heapdrome compare before.json after.json --fail-if 'mimalloc3 wall > 2%'
  heapdrome allocators
  heapdrome exec -a mimalloc3 -- ./my-program

Exit status:
  0    success
  1    an entrant (an allocator in a race) failed, no proof was taken (--unproven), or a condition
       of compare is confirmed
  2    wrong usage or input
  3    the command fails on the baseline, or does different work under the entrants
  4    heapdrome could not write or start something
  130  interrupted";

/// Actions of heapdrome.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Race a command under several allocators and show which differences are real
    #[command(after_help = examples::RACE)]
    Race(Box<RaceArguments>),
    /// Print a saved result, in brief or in full, or how to use the allocator that it recommends
    #[command(after_help = examples::SHOW)]
    Show(ShowArguments),
    /// Show the changes between two saved results; on request, fail if the new one is worse
    Compare(CompareArguments),
    /// Write saved results as one HTML page that works offline
    #[command(after_help = examples::REPORT)]
    Report(ReportArguments),
    /// Draw the plots of saved results as SVG and PNG files
    #[command(after_help = examples::PLOT)]
    Plot(PlotArguments),
    /// List, build, add and check allocators
    #[command(after_help = examples::ALLOCATORS)]
    Allocators(AllocatorsArguments),
    /// Run a command under an allocator, without measuring
    #[command(after_help = examples::EXEC)]
    Exec(ExecArguments),
    /// Record the allocations of a command into a trace
    #[command(after_help = examples::RECORD)]
    Record(RecordArguments),
    /// Summarize a trace: sizes and lifetimes of blocks, threads, and memory over time
    #[command(after_help = examples::PROFILE)]
    Profile(ProfileArguments),
    /// Replay a recorded trace under an allocator, once
    #[command(after_help = examples::REPLAY)]
    Replay(ReplayArguments),
    /// Inspect, cut, merge and export recorded traces
    #[command(after_help = examples::TRACE)]
    Trace(TraceArguments),
    /// List and explain the built-in workloads
    #[command(after_help = examples::WORKLOADS)]
    Workloads(WorkloadsArguments),
    /// Repeat a published comparison on this machine: its workloads, tables and claims
    #[command(after_help = examples::SUITE, arg_required_else_help = true)]
    Suite(SuiteArguments),
    /// Check this machine for conditions that distort measurements
    #[command(after_help = examples::DOCTOR)]
    Doctor(DoctorArguments),
    /// Find the smallest memory limit under which a command still finishes, and its slowdown there
    #[command(after_help = examples::SURVIVE)]
    Survive(SurviveArguments),
    /// Measure large objects, and the cost of swapping
    #[command(after_help = examples::PAGING)]
    Paging(PagingArguments),
    /// Manage the cache of sources and built allocators
    #[command(after_help = examples::CACHE)]
    Cache(CacheArguments),
    /// Print the manual page of heapdrome or of a subcommand
    Man(ManArguments),
    /// Print the completions of a shell
    Completions(CompletionsArguments),
}

/// Arguments of `heapdrome show`.
#[derive(Args, Debug)]
pub struct ShowArguments {
    /// The result, as written by --json of race, suite, survive or paging, optionally compressed by
    /// gzip; `-` reads it from standard input; `latest` or the name of a race shows a stored race
    #[arg(value_name = "RESULT")]
    pub result: PathBuf,
    /// Show all details of a race
    #[arg(long)]
    pub full: bool,
    /// Show how to use the allocator that a race recommends: in a shell, systemd, a Dockerfile,
    /// Rust and CMake
    #[arg(long, conflicts_with_all = ["full", "json", "csv", "markdown"])]
    pub deploy: bool,
    /// Print everything that was recorded of one entrant, beside the baseline, and why it is better
    #[arg(long, value_name = "NAME", conflicts_with_all = ["full", "deploy", "json", "csv", "markdown", "redact"])]
    pub entrant: Option<String>,
    /// Destinations of the result in other forms.
    #[command(flatten)]
    pub output: OutputArguments,
}

/// Arguments of `heapdrome allocators`.
#[derive(Args, Debug)]
pub struct AllocatorsArguments {
    /// The action; the default is `list`.
    #[command(subcommand)]
    pub action: Option<AllocatorsAction>,
}

/// Actions on allocators.
#[derive(Debug, Subcommand)]
pub enum AllocatorsAction {
    /// List allocators: those that are ready, those that can be built, and why the others are
    /// unavailable
    List,
    /// Build allocators into the cache (`all` for every one that can be built)
    Install {
        /// Names of allocators, or groups
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
    /// Register a shared object of your own under a name
    Add {
        /// The new name
        name: String,
        /// The shared object
        path: PathBuf,
        /// Set an environment variable whenever this allocator is used
        #[arg(long = "env", value_name = "KEY=VALUE", value_parser = key_value)]
        environment: Vec<(String, String)>,
    },
    /// Unregister an allocator of your own, or delete a built one from the cache
    Remove {
        /// The name of the allocator
        name: String,
    },
    /// Show all details of an allocator
    Show {
        /// The name of the allocator
        name: String,
    },
    /// Load an allocator into small programs and report failures
    Check {
        /// Names of allocators, or paths
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
        /// The thoroughness of the checks
        #[arg(long, value_enum, default_value_t)]
        level: CheckLevel,
    },
}

/// Thoroughness of `heapdrome allocators check`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum CheckLevel {
    /// Six programs that test what every program relies on: a few seconds
    #[default]
    Basic,
    /// The whole conformance suite, including memory limits and forks beside stdio: minutes
    Strict,
}

impl From<CheckLevel> for Level {
    fn from(level: CheckLevel) -> Self {
        match level {
            CheckLevel::Basic => Self::Basic,
            CheckLevel::Strict => Self::Strict,
        }
    }
}

/// Arguments of `heapdrome exec`.
#[derive(Args, Debug)]
pub struct ExecArguments {
    /// The allocator: a name or the path of a shared object
    #[arg(short, long, value_name = "NAME")]
    pub allocator: String,
    /// The command with its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// Arguments of `heapdrome workloads`.
#[derive(Args, Debug)]
pub struct WorkloadsArguments {
    /// The action; the default is `list`.
    #[command(subcommand)]
    pub action: Option<WorkloadsAction>,
}

/// Actions on workloads.
#[derive(Debug, Subcommand)]
pub enum WorkloadsAction {
    /// List the workloads
    List,
    /// Show all details of a workload: its model, its parameters, the meaning of its figures
    Show {
        /// The name of the workload
        name: String,
    },
    /// Install missing programs with the system's package manager
    Install {
        /// Names of workloads [default: all programs]
        #[arg(value_name = "NAME")]
        names: Vec<String>,
    },
}

/// Arguments of `heapdrome suite`.
#[derive(Args, Debug)]
pub struct SuiteArguments {
    /// The suite: alloc-perf-test, elfmalloc, rpmalloc, preload, real, or `all` of these; lgalloc
    /// (large objects and swap; best as root); traces (recorded programs, replayed); own-allocators
    /// (heapdrome's own); misuse; or a file of your own such as ./mine.toml
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Run the smallest form: every table in minutes
    #[arg(long, conflicts_with = "published")]
    pub quick: bool,
    /// Run the full form, with the published document's own parameters; may take hours
    #[arg(long)]
    pub published: bool,
    /// Only estimate the duration, from one run of each load in its quick form; builds no allocator
    #[arg(long)]
    pub estimate: bool,
    /// Allocators to race instead of the document's: names, paths, or groups as for `race`
    #[arg(short, long, value_delimiter = ',', value_name = "NAME,...")]
    pub allocators: Vec<String>,
    /// Run only these cells, such as rpmalloc/16-1000, or 16-1000=2 for one number of threads
    #[arg(long, value_delimiter = ',', value_name = "CELL,...")]
    pub only: Vec<String>,
    /// Rounds of each race, instead of the suite's own; fewer than five give no interval
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: Option<u32>,
    /// Run the suite regardless of its estimated duration
    #[arg(long)]
    pub yes: bool,
    /// Continue an interrupted suite from its file; if no race is left, recompute its tables and
    /// verdicts
    #[arg(long, value_name = "FILE.json", conflicts_with = "json")]
    pub resume: Option<PathBuf>,
    /// Seed of every draw [default: from the clock]
    #[arg(long)]
    pub seed: Option<u64>,
    /// Options of the suite lgalloc.
    #[command(flatten)]
    pub paging: PagingSuiteArguments,
    /// Destinations of the result.
    #[command(flatten)]
    pub output: OutputArguments,
}

impl SuiteArguments {
    /// Returns the requested extent of the suite.
    pub fn scale(&self) -> Scale {
        match (self.quick, self.published) {
            (true, _) => Scale::Quick,
            (_, true) => Scale::Published,
            _ => Scale::Usual,
        }
    }
}

/// Arguments of `heapdrome doctor`.
#[derive(Args, Debug)]
pub struct DoctorArguments {
    /// Only check that heapdrome's own memory does not affect what it measures
    #[arg(long)]
    pub self_test: bool,
}

/// Arguments of `heapdrome cache`.
#[derive(Args, Debug)]
pub struct CacheArguments {
    /// Requested action.
    #[command(subcommand)]
    pub action: CacheAction,
}

/// Actions on the cache.
#[derive(Clone, Copy, Debug, Subcommand)]
pub enum CacheAction {
    /// Delete the sources, the built allocators and workloads, and the journals of finished races
    Clean,
    /// Print the path of the cache
    Path,
}
