//! The command line of `heapdrome paging`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use heapdrome_engine::paging::SwapWish;
use heapdrome_paging::SwapRequest;
use heapdrome_schema::{Bytes, Order};

use super::output::OutputArguments;
use crate::values::duration;

/// Arguments of `heapdrome paging`.
#[derive(Args, Debug)]
pub struct PagingArguments {
    /// Requested experiment, or an action on the swap.
    #[command(subcommand)]
    pub action: PagingAction,
}

/// Actions of `heapdrome paging`.
#[derive(Debug, Subcommand)]
pub enum PagingAction {
    /// Show which memory limits work on this machine, the free swap, and what is missing
    Check,
    /// Measure ten ways to allocate and free regions of 2 MiB
    Throughput(ThroughputArguments),
    /// Read at random from a working set larger than memory, and reuse swapped-out regions
    Random(RandomArguments),
    /// Read at random from one working set under several memory limits
    RatioSweep(SweepArguments),
    /// Compare ways to prefetch pages and to advise the system (`madvise`)
    Strategies(StrategyArguments),
    /// Remove swap and control groups that a killed heapdrome left behind
    Clean,
}

/// Options of all experiments.
#[derive(Args, Debug)]
pub struct CommonArguments {
    /// Run a small form, in a minute or two
    #[arg(long)]
    pub quick: bool,
    /// Rounds of all cells [default: 5; 1 with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: Option<u32>,
    /// Duration of each cell in each round [default: 5s; 1s with --quick]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub time: Option<Duration>,
    /// Seed of contents and draws
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Destinations of the tables.
    #[command(flatten)]
    pub output: OutputArguments,
    /// Write every report with its distributions and counters as JSON; `-` prints it instead of the
    /// tables
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,
}

/// Arguments of `heapdrome paging throughput`.
#[derive(Args, Debug)]
pub struct ThroughputArguments {
    /// Numbers of threads
    #[arg(short, long, value_delimiter = ',', value_name = "N,...",
          default_value = "1,2,4,8,16", value_parser = threads)]
    pub threads: Vec<usize>,
    /// Allocators of the registry that also allocate and free the regions [default: mimalloc3 and
    /// jemalloc]
    #[arg(short, long, value_delimiter = ',', value_name = "NAME,...")]
    pub allocators: Vec<String>,
    /// Memory limit, without swap
    #[arg(long, value_name = "SIZE", default_value = "4G", value_parser = size)]
    pub ram: Bytes,
    /// Limit of processor time, in processors
    #[arg(long, value_name = "N", default_value_t = 16.0, value_parser = processors)]
    pub processors: f64,
    /// Measure without limits
    #[arg(long)]
    pub unlimited: bool,
    /// Options of all experiments.
    #[command(flatten)]
    pub common: CommonArguments,
}

/// Swap to create.
#[derive(Args, Clone, Debug)]
pub struct MakeSwap {
    /// Create swap for the experiment and remove it afterwards, such as file:8G or zram:4G (root)
    #[arg(long, value_name = "KIND:SIZE", value_parser = swap)]
    pub swap: Option<SwapRequest>,
    /// Folder of the swap file
    #[arg(long, value_name = "FOLDER", default_value = "/var/tmp")]
    pub swap_folder: PathBuf,
}

impl MakeSwap {
    /// Returns the requested swap.
    pub fn wish(&self) -> SwapWish {
        SwapWish {
            request: self.swap,
            folder: self.swap_folder.clone(),
        }
    }
}

/// Options of `heapdrome suite lgalloc` in addition to those of other suites.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "For the suite lgalloc")]
pub struct PagingSuiteArguments {
    /// Swap for the suite. Without --swap, a swap file is created if too little swap is free
    /// (root).
    #[command(flatten)]
    pub make: MakeSwap,
    /// Also run with transparent huge pages set to always, madvise and never in turn. This changes
    /// the whole machine; the setting is restored afterwards (root)
    #[arg(long)]
    pub thp: bool,
    /// Write every report with its distributions and counters as JSON; `-` prints it instead of the
    /// tables
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,
}

/// Options of experiments in swap.
#[derive(Args, Debug)]
pub struct SwapArguments {
    /// Swap to create before the experiment.
    #[command(flatten)]
    pub make: MakeSwap,
    /// Holder of the working set: lgalloc, lgalloc-published (the crate), mapped (mappings that are
    /// kept), or a preloaded allocator of the registry; all experiments run under each
    #[arg(
        short,
        long,
        value_delimiter = ',',
        value_name = "NAME,...",
        default_value = "lgalloc"
    )]
    pub allocators: Vec<String>,
    /// Order in which pages are drawn
    #[arg(long, value_enum, default_value_t)]
    pub order: OrderName,
    /// Options of all experiments.
    #[command(flatten)]
    pub common: CommonArguments,
}

/// Options of `heapdrome paging random`, and most of those of `strategies`.
#[derive(Args, Debug)]
pub struct RandomArguments {
    /// Size of the working set [default: three times --ram; for strategies eight times]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub total: Option<Bytes>,
    /// Memory limit [default: 512M; 64M with --quick]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub ram: Option<Bytes>,
    /// Number of readers
    #[arg(short, long, value_name = "N", default_value = "1", value_parser = threads)]
    pub threads: usize,
    /// Options of experiments in swap.
    #[command(flatten)]
    pub swap: SwapArguments,
}

/// Arguments of `heapdrome paging strategies`.
#[derive(Args, Debug)]
pub struct StrategyArguments {
    /// Numbers of reads that a thread prefetches ahead, one strategy for each; with eight readers
    /// only the first [default: 32 and 128]
    #[arg(long, value_delimiter = ',', value_name = "N,...", value_parser = ahead)]
    pub ahead: Vec<usize>,
    /// Options of the random reads.
    #[command(flatten)]
    pub random: RandomArguments,
}

/// Arguments of `heapdrome paging ratio-sweep`.
#[derive(Args, Debug)]
pub struct SweepArguments {
    /// Size of the working set [default: 4G; 512M with --quick]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub total: Option<Bytes>,
    /// Memory limits [default: the total and its halves, down to a sixteenth]
    #[arg(long, value_delimiter = ',', value_name = "SIZE,...", value_parser = size)]
    pub ram: Vec<Bytes>,
    /// Numbers of readers
    #[arg(short, long, value_delimiter = ',', value_name = "N,...", default_value = "1",
          value_parser = threads)]
    pub threads: Vec<usize>,
    /// Options of experiments in swap.
    #[command(flatten)]
    pub swap: SwapArguments,
}

/// Order in which pages are drawn, on the command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum OrderName {
    /// Independently and uniformly
    #[default]
    Uniform,
    /// Every page once in a shuffled order, then again in another
    Permutation,
}

impl From<OrderName> for Order {
    fn from(name: OrderName) -> Self {
        match name {
            OrderName::Uniform => Self::Uniform,
            OrderName::Permutation => Self::Permutation,
        }
    }
}

fn swap(text: &str) -> Result<SwapRequest, String> {
    text.parse()
}

/// Parses a size that is a multiple of a region's 2 MiB.
fn size(text: &str) -> Result<Bytes, String> {
    const REGION: Bytes = Bytes::from_mib(2);
    match heapdrome_paging::bytes(text)? {
        bytes if bytes.rounded_up_to(REGION) == bytes => Ok(bytes),
        _ => Err(format!("expected a multiple of 2M, got '{text}'")),
    }
}

fn threads(text: &str) -> Result<usize, String> {
    match text.trim().parse() {
        Ok(count) if (1..=256).contains(&count) => Ok(count),
        _ => Err("expected a number of threads, 1 to 256".to_owned()),
    }
}

fn ahead(text: &str) -> Result<usize, String> {
    match text.trim().parse() {
        Ok(count) if (1..=1 << 20).contains(&count) => Ok(count),
        _ => Err("expected a number of reads, 1 to 1048576".to_owned()),
    }
}

fn processors(text: &str) -> Result<f64, String> {
    match text.trim().parse() {
        Ok(count) if (0.01..=4096.0).contains(&count) => Ok(count),
        _ => Err("expected a number of processors, such as 16 or 0.5".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        paging: PagingArguments,
    }

    fn read(words: &str) -> Result<PagingAction, clap::Error> {
        let words = std::iter::once("paging").chain(words.split_whitespace());
        Line::try_parse_from(words).map(|line| line.paging.action)
    }

    #[test]
    fn the_documents_sweep_can_be_asked_for() {
        let words = "ratio-sweep --total 4G --ram 4096,2048,1024,512,256 -t 1,4 --swap file:8G";
        let Ok(PagingAction::RatioSweep(sweep)) = read(words) else {
            panic!("the command line is right");
        };
        assert_eq!(sweep.total, Some(Bytes::from_gib(4)));
        assert_eq!(sweep.ram.last(), Some(&Bytes::from_mib(256)));
        assert_eq!(sweep.threads, [1, 4]);
        assert_eq!(
            sweep.swap.make.swap.map(|swap| swap.bytes),
            Some(Bytes::from_gib(8))
        );
        assert_eq!(sweep.swap.allocators, ["lgalloc"]);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for words in [
            "",
            "throughput -t 0",
            "throughput --processors nan",
            "random --ram 3K",
            "random --swap disk:8G",
            "strategies --rounds 0",
            "strategies --ahead 0",
        ] {
            assert!(read(words).is_err(), "{words}");
        }
    }
}
