//! The command line of `heapdrome profile`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `heapdrome profile`.
#[derive(Args, Debug)]
pub struct ProfileArguments {
    /// The trace, as `heapdrome record` wrote it; `library:NAME` is a built-in trace, `-`
    /// reads it from standard input
    #[arg(value_name = "TRACE")]
    pub trace: PathBuf,
    /// Write an HTML page with pictures; `-` prints it instead of the summary
    #[arg(short, long, value_name = "PAGE.html")]
    pub output: Option<PathBuf>,
    /// Write a heap profile for `go tool pprof`: profile.proto, compressed by gzip
    #[arg(long, value_name = "FILE.pb.gz")]
    pub pprof: Option<PathBuf>,
    /// Write live and resident memory of each process as Chrome trace JSON, which Perfetto shows
    #[arg(long, value_name = "FILE.json")]
    pub perfetto: Option<PathBuf>,
    /// Write every figure as CSV, compressed by gzip if FILE ends in .gz; `-` prints it instead of
    /// the summary
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Overwrite existing files
    #[arg(long)]
    pub force: bool,
}
