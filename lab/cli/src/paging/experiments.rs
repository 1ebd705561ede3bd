//! The paging experiments, each of which is a command.

use std::time::Duration;

use heapdrome_engine::Engine;
use heapdrome_engine::kept::{Kept, started};
use heapdrome_engine::paging::{Cells, Opened, failure, holdings, outcome, processors, rivals_of};
use heapdrome_paging::{
    AHEAD, Measuring, Mechanism, Rounds, Swap, Sweep, halves, random as random_cells,
    strategies as strategies_cells, swapped, sweep as sweep_cells, throughput as throughput_cells,
};
use heapdrome_schema::{Bytes, Experiment, PagingCell, Purpose, Scale};

use crate::arguments::paging::{
    CommonArguments, RandomArguments, StrategyArguments, SwapArguments, SweepArguments,
    ThroughputArguments,
};
use crate::destinations::Destinations;
use crate::failure::Failure;
use crate::{output, progress};

/// Returns the duration of each cell in each round.
fn seconds(common: &CommonArguments) -> Duration {
    let usual = Duration::from_secs(if common.quick { 1 } else { 5 });
    common.time.unwrap_or(usual)
}

fn measuring(arguments: &SwapArguments) -> Measuring {
    Measuring {
        seconds: seconds(&arguments.common),
        warm_up: Duration::from_secs(if arguments.common.quick { 5 } else { 15 }),
        order: arguments.order.into(),
        seed: arguments.common.seed,
    }
}

/// Returns the destinations of an experiment's tables and of its reports.
fn files(common: &CommonArguments) -> Destinations<'_> {
    Destinations::of(&common.output).and("--data", common.data.as_deref())
}

/// Opens the lab. Fails early if `--csv` is requested, or if a requested file could not be written
/// later.
fn opened<'a>(common: &CommonArguments, engine: &'a Engine) -> Result<Opened<'a>, Failure> {
    files(common).check(&[])?;
    output::refuse_csv(&common.output, "the paging lab")?;
    Opened::new(engine)
}

/// Runs cells, removes their swap, and publishes their tables.
fn run(
    name: &str,
    common: &CommonArguments,
    opened: Opened<'_>,
    cells: Vec<PagingCell>,
    (mechanism, swap): (Option<Mechanism>, Option<Swap>),
) -> Result<(), Failure> {
    let rounds = Rounds {
        all: common.rounds.unwrap_or(if common.quick { 1 } else { 5 }),
        more: 0,
        within: None,
        processors: processors(),
    };
    let scale = match common.quick {
        true => Scale::Quick,
        false => Scale::Usual,
    };
    let asked = std::env::args().skip(1).collect();
    let mut kept = Kept::unnamed(started(name, Purpose::paging(scale), asked), opened.engine);
    let cells = Cells::new(opened, mechanism, rounds, cells, &mut kept.collection);
    let mut cells = cells.map_err(Failure::Usage)?;
    let ran = cells.run(&mut kept);
    let removed = swap.map_or(Ok(()), Swap::remove);
    cells.evaluate(&mut kept.collection);
    let redaction = kept.engine().folders.redaction();
    let collection = &kept.collection;
    let printed = output::print_collection(collection, &files(common));
    let saved = output::save_collection(collection, &common.output, Some(&redaction));
    let data = output::save_cells(collection, common.data.as_deref());
    ran.and(removed.map_err(failure))
        .and(printed)
        .and(saved)
        .and(data)
        .and_then(|()| outcome(collection))
}

/// Runs cells that use swap, and publishes their tables. Before the run, creates the requested
/// swap, if any, and removes it afterwards.
fn in_swap(
    name: &str,
    arguments: &SwapArguments,
    engine: &Engine,
    cells: Vec<PagingCell>,
) -> Result<(), Failure> {
    let common = &arguments.common;
    let mut opened = opened(common, engine)?;
    let mechanism = opened.mechanism()?;
    let swap = opened.swap(&arguments.make.wish(), swapped(&cells))?;
    run(name, common, opened, cells, (Some(mechanism), swap))
}

/// Runs the throughput benchmark.
///
/// # Errors
/// Returns an error if nothing could be measured, an allocator is missing, or something could not
/// be written.
pub fn throughput(arguments: &ThroughputArguments) -> Result<(), Failure> {
    let common = &arguments.common;
    let engine = progress::engine()?;
    let mut opened = opened(common, &engine)?;
    let mechanism = match arguments.unlimited {
        true => None,
        false => opened.mechanism_if_any()?,
    };
    let limit = opened.limit_without_swap(mechanism, arguments.ram, arguments.processors)?;
    let warm_up = Duration::from_millis(if common.quick { 200 } else { 1000 });
    let seconds = seconds(common);
    let rivals = rivals_of(&arguments.allocators, true, &mut opened)?;
    let cells = throughput_cells(&arguments.threads, &rivals, limit, warm_up, seconds);
    run(
        "lgalloc throughput",
        common,
        opened,
        cells,
        (mechanism, None),
    )
}

/// Measures random reads from a working set larger than memory, and the reuse of swapped-out
/// regions.
///
/// # Errors
/// Returns an error if an allocator, swap, a permission or a limit is missing, nothing could
/// be measured, or something could not be written.
pub fn random(arguments: &RandomArguments) -> Result<(), Failure> {
    let engine = progress::engine()?;
    let swap = &arguments.swap;
    let ram = ram(arguments);
    let sizes = [ram, arguments.total.unwrap_or(ram * 3)];
    let holdings = holdings(&swap.allocators, true, &engine)?;
    let cells = random_cells(
        Experiment::Paging,
        sizes,
        arguments.threads,
        &holdings,
        measuring(swap),
    );
    in_swap("lgalloc paging", swap, &engine, cells)
}

fn ram(arguments: &RandomArguments) -> Bytes {
    let usual = if arguments.swap.common.quick { 64 } else { 512 };
    arguments.ram.unwrap_or(Bytes::from_mib(usual))
}

/// Measures random reads from one working set under several memory limits.
///
/// # Errors
/// Returns the errors of [`random`].
pub fn ratio_sweep(arguments: &SweepArguments) -> Result<(), Failure> {
    let engine = progress::engine()?;
    let swap = &arguments.swap;
    let usual = if swap.common.quick { 512 } else { 4096 };
    let total = arguments.total.unwrap_or(Bytes::from_mib(usual));
    let rams = match arguments.ram.as_slice() {
        [] => halves(total),
        rams => rams.to_vec(),
    };
    let threads = |ram: Bytes| (ram, arguments.threads.clone());
    let sweep = Sweep {
        total,
        limits: rams.into_iter().map(threads).collect(),
    };
    let holdings = holdings(&swap.allocators, true, &engine)?;
    let cells = sweep_cells(&sweep, &holdings, measuring(swap));
    in_swap("lgalloc ratio-sweep", swap, &engine, cells)
}

/// Measures the benefit of prefetching and of advice to the kernel (`madvise`).
///
/// # Errors
/// Returns the errors of [`random`].
pub fn strategies(arguments: &StrategyArguments) -> Result<(), Failure> {
    let engine = progress::engine()?;
    let StrategyArguments { ahead, random } = arguments;
    let swap = &random.swap;
    let ram = ram(random);
    let sizes = [ram, random.total.unwrap_or(ram * 8)];
    let holdings = holdings(&swap.allocators, true, &engine)?;
    let ahead = match ahead.as_slice() {
        [] => &AHEAD[..],
        ahead => ahead,
    };
    let cells = strategies_cells(sizes, random.threads, ahead, &holdings, measuring(swap));
    in_swap("lgalloc strategies", swap, &engine, cells)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use heapdrome_schema::Order;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        swap: SwapArguments,
    }

    #[test]
    fn the_time_that_was_asked_for_replaces_that_of_every_form() {
        for (words, expected) in [
            ("random", 5),
            ("random --quick", 1),
            ("random --quick --time 3s", 3),
        ] {
            let line = Line::try_parse_from(words.split_whitespace());
            let common = line.expect("the command line is right").swap.common;
            assert_eq!(seconds(&common), Duration::from_secs(expected), "{words}");
        }
    }

    #[test]
    fn the_order_that_was_asked_for_is_the_one_that_is_measured() {
        for (words, order) in [
            ("random", Order::Uniform),
            ("random --order permutation", Order::Permutation),
        ] {
            let line = Line::try_parse_from(words.split_whitespace());
            let measuring = measuring(&line.expect("the command line is right").swap);
            assert_eq!(measuring.order, order);
        }
    }
}
