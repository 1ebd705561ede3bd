//! The command line of `heapdrome trace`.

pub mod shrink;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use heapdrome_replay::Touch;

use super::library::LibraryArguments;
use super::output::OutputArguments;
use super::race::RunArguments;
use crate::values::{duration, duration_or_none, touch};
use shrink::ShrinkArguments;

/// Arguments of `heapdrome trace`.
#[derive(Args, Debug)]
pub struct TraceArguments {
    /// Requested action.
    #[command(subcommand)]
    pub action: TraceAction,
}

/// Actions on traces.
#[derive(Debug, Subcommand)]
pub enum TraceAction {
    /// Print the recorded command, its start and duration, and a summary of each process
    Info {
        /// The trace; `library:NAME` is a built-in trace
        #[arg(value_name = "FILE")]
        trace: PathBuf,
    },
    /// Race a program beside the replay of its trace, and compare memory, page faults and times
    ///
    /// Prints a table with a pass or a miss for each property, and keeps the result in
    /// FILE.fidelity.json, where races of the trace find it. The exit status is 1 if the replay
    /// misses its program in a property.
    Check(Box<CheckArguments>),
    /// Write a part of a trace as a trace of its own; it begins by allocating the blocks that are
    /// live at that time
    Cut(CutArguments),
    /// Merge several traces into one, in which processes have new numbers
    Merge(MergeArguments),
    /// Write a trace in another format
    Export(ExportArguments),
    /// List or record traces of well-known programs: a compiler, databases, interpreters
    Library(LibraryArguments),
    /// Find the shortest part of a trace whose replay still fails under an allocator
    Shrink(ShrinkArguments),
}

/// Arguments of `heapdrome trace check`.
#[derive(Args, Debug)]
pub struct CheckArguments {
    /// The trace
    #[arg(value_name = "FILE")]
    pub trace: PathBuf,
    /// The program of the trace, with the arguments with which it was recorded
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<String>,
    /// Allocators besides the one of the recording: names, paths of shared objects, or groups as
    /// for `race`
    #[arg(short, long, value_delimiter = ',', value_name = "NAME,...")]
    pub allocators: Vec<String>,
    /// The part of each new block that a replay writes [default: pages]
    #[arg(long, value_name = "HOW", value_parser = touch)]
    pub touch: Option<Touch>,
    /// The number of the process in the trace [default: the one with most operations]
    #[arg(long, value_name = "N")]
    pub process: Option<u32>,
    /// Number of rounds, in each of which every entrant runs the program and both replays
    /// [default: 12]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(5..))]
    pub rounds: Option<u32>,
    /// Run five rounds: a first impression
    #[arg(long, conflicts_with = "rounds")]
    pub quick: bool,
    /// Stop after about this long, without the builds
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub max_time: Option<Duration>,
    /// Seed of the order of rounds [default: from the clock]
    #[arg(long)]
    pub seed: Option<u64>,
    /// Options of each run.
    #[command(flatten)]
    pub runs: RunArguments,
    /// Destinations of the result.
    #[command(flatten)]
    pub output: OutputArguments,
}

/// Arguments of `heapdrome trace cut`.
#[derive(Args, Debug)]
pub struct CutArguments {
    /// The trace
    #[arg(value_name = "FILE")]
    pub trace: PathBuf,
    /// Start of the part, as time since the recording began
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = duration_or_none)]
    pub from: Duration,
    /// End of the part [default: the end of the trace]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub to: Option<Duration>,
    /// Destination of the part.
    #[command(flatten)]
    pub output: TraceOutput,
}

/// Arguments of `heapdrome trace merge`.
#[derive(Args, Debug)]
pub struct MergeArguments {
    /// The traces, two or more
    #[arg(value_name = "FILE", required = true, num_args = 2..)]
    pub traces: Vec<PathBuf>,
    /// Destination of the merged trace.
    #[command(flatten)]
    pub output: TraceOutput,
}

/// Destination of a trace.
#[derive(Args, Debug)]
pub struct TraceOutput {
    /// The trace to write; `-` writes to standard output
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
    /// Overwrite an existing file
    #[arg(long)]
    pub force: bool,
}

/// Arguments of `heapdrome trace export`.
#[derive(Args, Debug)]
pub struct ExportArguments {
    /// The trace
    #[arg(value_name = "FILE")]
    pub trace: PathBuf,
    /// The format
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub to: ExportFormat,
    /// Export only the process with this number in the trace; required if the trace has several
    /// processes and the format has only one
    #[arg(long, value_name = "NUMBER")]
    pub process: Option<u32>,
    /// The file to write; `-` prints it
    #[arg(short, long, value_name = "OUT", default_value = "-")]
    pub output: PathBuf,
    /// Overwrite an existing file
    #[arg(long)]
    pub force: bool,
}

/// Formats of `heapdrome trace export`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// One operation a line, as docs/trace-format.md describes it
    Text,
    /// The protocol buffer of malloc-bench: one process, no threads and no times
    MallocBench,
    /// The lines of Android's memory_replay: one process, no times
    Android,
}
