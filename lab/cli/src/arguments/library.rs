//! The command line of `heapdrome trace library`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `heapdrome trace library`.
#[derive(Args, Debug)]
pub struct LibraryArguments {
    /// The traces to record [default: all]
    #[arg(value_name = "NAME", requires = "output")]
    pub names: Vec<String>,
    /// Record the traces into this folder as `NAME.trace`, with a manifest.json that says how each
    /// was made and a suite.toml that races on them; without it, print the list of traces
    #[arg(short, long, value_name = "FOLDER")]
    pub output: Option<PathBuf>,
    /// Record runs of seconds or minutes, whole, instead of the first 200,000 operations of short
    /// ones
    #[arg(long, requires = "output")]
    pub full: bool,
    /// Overwrite traces that exist
    #[arg(long, requires = "output")]
    pub force: bool,
}
