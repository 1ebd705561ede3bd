//! The command line of `heapdrome compare`.

use std::path::PathBuf;

use clap::Args;

use super::output::OutputArguments;

const EXAMPLES: &str = "\
Examples:
  heapdrome compare before.json after.json
  heapdrome compare before.json after.json --fail-if 'elfmalloc wall > 2%' --fail-if 'any peak_rss > 10%'
  heapdrome compare laptop.json server.json --markdown changes.md

A condition names an allocator of both results, or any, a figure (wall, cpu, user, system, peak_rss,
peak_tree, minor_faults, major_faults, voluntary_switches, involuntary_switches, operations, overhead or
a metric of the race), > or <, and a percentage: 'mimalloc3 operations < -5%' is a fall by more than 5%.
An interval needs five runs of the figure: of peak_tree, race --memory-runs 5 makes as many.

Exit status: 0 no condition is confirmed; 1 one is; 2 wrong usage or input, or the results cannot be
compared; 4 something could not be written. See docs/ci.md.";

/// `heapdrome compare`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct CompareArguments {
    /// The result to compare with, as written by --json of race, suite or survive, compressed by
    /// gzip or not; `-` reads one of the two from standard input
    #[arg(value_name = "OLD.json")]
    pub old: PathBuf,
    /// The result that is compared with it: the same command or suite
    #[arg(value_name = "NEW.json")]
    pub new: PathBuf,
    /// Exit with status 1 if this has happened, beyond doubt; may be repeated
    #[arg(long, value_name = "'ALLOCATOR FIGURE > PERCENT'")]
    pub fail_if: Vec<String>,
    /// Compare ratios to the baseline alone, as between machines that differ: for machines that are
    /// described alike and are not the same
    #[arg(long)]
    pub machines_differ: bool,
    /// Write the comparison as JSON; `-` prints it in place of the tables
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the comparison as Markdown; `-` prints it in place of the tables
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Write $HOME and $CACHE for these folders in the files, so that they can be shared
    #[arg(long)]
    pub redact: bool,
}

impl CompareArguments {
    /// Where the comparison is written; it has no CSV.
    pub fn output(&self) -> OutputArguments {
        OutputArguments {
            json: self.json.clone(),
            csv: None,
            markdown: self.markdown.clone(),
            redact: self.redact,
        }
    }
}
