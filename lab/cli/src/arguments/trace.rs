//! The command line of `heapdrome trace`.

pub mod shrink;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::library::LibraryArguments;
use crate::values::{duration, duration_or_none};
use shrink::ShrinkArguments;

/// `heapdrome trace`.
#[derive(Args, Debug)]
pub struct TraceArguments {
    /// The action.
    #[command(subcommand)]
    pub action: TraceAction,
}

/// Actions on traces.
#[derive(Debug, Subcommand)]
pub enum TraceAction {
    /// Print the recorded command, its start and duration, and a summary of each process
    Info {
        /// The trace
        #[arg(value_name = "FILE")]
        trace: PathBuf,
    },
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

/// `heapdrome trace cut`.
#[derive(Args, Debug)]
pub struct CutArguments {
    /// The trace
    #[arg(value_name = "FILE")]
    pub trace: PathBuf,
    /// Begin of the part, as time since the recording began
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = duration_or_none)]
    pub from: Duration,
    /// End of the part [default: the end of the trace]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub to: Option<Duration>,
    /// Destination of the part.
    #[command(flatten)]
    pub output: TraceOutput,
}

/// `heapdrome trace merge`.
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

/// `heapdrome trace export`.
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
