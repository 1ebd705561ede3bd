//! The command line of `heapdrome record`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::values::duration;

/// `heapdrome record`.
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
    /// The command with its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}
