//! The command line of `heapdrome record`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::sampling::{sample, stacks};
use crate::values::duration;

/// Arguments of `heapdrome record`.
#[derive(Args, Debug)]
pub struct RecordArguments {
    /// The trace to write
    #[arg(short, long, value_name = "FILE", default_value = "heapdrome.trace")]
    pub output: PathBuf,
    /// Overwrite the trace if it exists
    #[arg(long)]
    pub force: bool,
    /// Run the command under an allocator: a name or the path of a shared object
    #[arg(short, long, value_name = "NAME")]
    pub allocator: Option<String>,
    /// End the recording, but not the command, after this time
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub limit: Option<Duration>,
    /// Record a sample of the blocks: RATE is the mean number of bytes between two sample points,
    /// such as 512KiB, or its inverse, such as 1e-3
    #[arg(long, value_name = "RATE", value_parser = sample)]
    pub sample: Option<u64>,
    /// Record the stacks of calls that ask for a block, BYTES apart on average: 512KiB unless said
    /// otherwise, and 1 for the stack of every recorded call
    #[arg(
        long,
        value_name = "BYTES",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "512KiB",
        value_parser = stacks
    )]
    pub stacks: Option<u64>,
    /// The command with its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}
