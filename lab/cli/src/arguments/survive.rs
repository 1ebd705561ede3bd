//! The command line of `heapdrome survive`.

use clap::Args;

use super::output::OutputArguments;
use super::paging::MakeSwap;
use crate::values::percentage;

/// Arguments of `heapdrome survive`.
#[derive(Args, Debug)]
pub struct SurviveArguments {
    /// The command, with its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<String>,
    /// Allocators: names, paths of shared objects, or groups as for `race`; by default the group
    /// `default`, as there
    #[arg(short, long, value_delimiter = ',', value_name = "NAME,...")]
    pub allocators: Vec<String>,
    /// Swap to create before the search.
    #[command(flatten)]
    pub make: MakeSwap,
    /// Number of runs that must all finish under a limit; fewer than three show no slowdown
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub runs: u32,
    /// Accuracy of the smallest limit
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = percentage)]
    pub precision: f64,
    /// Runs that take this many times as long as without a limit, and at least 10 s, count as not
    /// finished
    #[arg(long, value_name = "TIMES", default_value_t = 20.0, value_parser = times)]
    pub patience: f64,
    /// Destinations of the result.
    #[command(flatten)]
    pub output: OutputArguments,
}

fn times(text: &str) -> Result<f64, String> {
    match text.trim().parse() {
        Ok(times) if (1.0..=1e6).contains(&times) => Ok(times),
        _ => Err("expected a factor, such as 20".to_owned()),
    }
}
