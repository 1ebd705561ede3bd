//! The command line of `heapdrome trace shrink`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use heapdrome_replay::{Speed, Touch};

use super::TraceOutput;
use crate::values::{duration, speed, touch};

/// Arguments of `heapdrome trace shrink`.
#[derive(Args, Debug)]
pub struct ShrinkArguments {
    /// The trace; `library:NAME` is a built-in trace
    #[arg(value_name = "FILE")]
    pub trace: PathBuf,
    /// The allocator that fails: a name or the path of a shared object
    #[arg(short, long, value_name = "NAME")]
    pub allocator: String,
    /// The number of the process in the trace [default: the one with most operations]
    #[arg(long, value_name = "N")]
    pub process: Option<u32>,
    /// How fast it is replayed, see `heapdrome replay --help`
    #[arg(long, value_name = "SPEED", value_parser = speed, default_value = "locked")]
    pub speed: Speed,
    /// The part of each new block that a replay writes, see `heapdrome replay --help`
    #[arg(long, value_name = "HOW", value_parser = touch, default_value = "check")]
    pub touch: Touch,
    /// Stop searching after this time, and write the shortest trace found until then
    #[arg(long = "for", value_name = "TIME", value_parser = duration, default_value = "10m")]
    pub limit: Duration,
    /// Destination of the short trace.
    #[command(flatten)]
    pub output: TraceOutput,
}
