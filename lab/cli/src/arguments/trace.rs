//! The command line of `heapdrome trace`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use crate::values::{duration, duration_or_none};

/// `heapdrome trace`.
#[derive(Args, Debug)]
pub struct TraceArguments {
    /// What to do with the traces.
    #[command(subcommand)]
    pub action: TraceAction,
}

/// The things that can be done with traces.
#[derive(Debug, Subcommand)]
pub enum TraceAction {
    /// Print what a trace holds: what was recorded, when, how long, and each process
    Info {
        /// The trace
        #[arg(value_name = "FILE")]
        trace: PathBuf,
    },
    /// Write a part of a trace as a trace of its own; blocks that are live at its start are made
    /// there
    Cut(CutArguments),
    /// Write several traces as one; processes are numbered anew
    Merge(MergeArguments),
    /// Write a trace in another format
    Export(ExportArguments),
}

/// `heapdrome trace cut`.
#[derive(Args, Debug)]
pub struct CutArguments {
    /// The trace
    #[arg(value_name = "FILE")]
    pub trace: PathBuf,
    /// When the part begins, since the recording began
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = duration_or_none)]
    pub from: Duration,
    /// When it ends [default: with the trace]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub to: Option<Duration>,
    /// Where the part goes.
    #[command(flatten)]
    pub output: TraceOutput,
}

/// `heapdrome trace merge`.
#[derive(Args, Debug)]
pub struct MergeArguments {
    /// The traces, two or more
    #[arg(value_name = "FILE", required = true, num_args = 2..)]
    pub traces: Vec<PathBuf>,
    /// Where the merged trace goes.
    #[command(flatten)]
    pub output: TraceOutput,
}

/// Where a trace is written.
#[derive(Args, Debug)]
pub struct TraceOutput {
    /// The trace to write; `-` writes to standard output
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
    /// Write over a file that is there
    #[arg(long)]
    pub force: bool,
}

/// `heapdrome trace export`.
#[derive(Args, Debug)]
pub struct ExportArguments {
    /// The trace
    #[arg(value_name = "FILE")]
    pub trace: PathBuf,
    /// The format
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub to: ExportFormat,
    /// Write this process alone, by its number in the trace; needed for formats that know one
    /// process, if the trace has more
    #[arg(long, value_name = "NUMBER")]
    pub process: Option<u32>,
    /// The file to write; `-` prints it
    #[arg(short, long, value_name = "OUT", default_value = "-")]
    pub output: PathBuf,
    /// Write over a file that is there
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
