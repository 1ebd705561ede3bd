//! The command line of `heapdrome compare`.

use std::path::PathBuf;

use clap::Args;

use super::output::OutputArguments;

const EXAMPLES: &str = "\
Examples:
  heapdrome compare before.json after.json
  heapdrome compare before.json after.json --fail-if 'any peak_rss > 10%'
  heapdrome compare laptop.json server.json --markdown changes.md

A condition has four words: an allocator of both results, or any; a figure; > or <; a percentage.
'mimalloc3 operations < -5%' is a decrease by more than 5%. Figures are wall, cpu, user, system,
peak_rss, peak_tree, minor_faults, major_faults, voluntary_switches, involuntary_switches,
operations, overhead, and the metrics of the race. An interval needs five runs of the figure; for
peak_tree use race --memory-runs 5.

Exit status:
  0  no condition is confirmed
  1  a condition is confirmed
  2  wrong usage or input, or the results cannot be compared
  4  heapdrome could not write something

See also docs/ci.md.";

/// Arguments of `heapdrome compare`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct CompareArguments {
    /// The old result, as written by --json of race, suite or survive, optionally compressed by
    /// gzip; `-` reads one of the two from standard input; `latest` or the name of a race reads a
    /// stored race
    #[arg(value_name = "OLD")]
    pub old: PathBuf,
    /// The new result, of the same command or suite
    #[arg(value_name = "NEW")]
    pub new: PathBuf,
    /// Exit with status 1 if this change is confirmed; may be repeated
    #[arg(long, value_name = "'ALLOCATOR FIGURE > PERCENT'")]
    pub fail_if: Vec<String>,
    /// Compare only ratios to the baseline. Results of different machines are always compared in
    /// this way; this option is for different machines with equal descriptions
    #[arg(long)]
    pub machines_differ: bool,
    /// Write the comparison as JSON; `-` prints it instead of the tables
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the comparison as Markdown; `-` prints it instead of the tables
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Replace the home and cache folders by $HOME and $CACHE in the files, so that they can be
    /// shared
    #[arg(long)]
    pub redact: bool,
}

impl CompareArguments {
    /// Returns the destinations of the comparison, which cannot be written as CSV.
    pub fn output(&self) -> OutputArguments {
        OutputArguments {
            json: self.json.clone(),
            csv: None,
            markdown: self.markdown.clone(),
            redact: self.redact,
        }
    }
}
