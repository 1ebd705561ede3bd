//! The experiments, each as a command of its own.

use std::time::Duration;

use heapdrome_paging::{Cell, Mechanism, Plan, Swap, targets};
use heapdrome_record::Scale;

use super::holding::{Holding, holdings, rivals};
use super::parts::{self, Measuring, Part, Sweep};
use super::session::{Publication, Session, destinations, failure};
use crate::arguments::paging::{
    CommonArguments, RandomArguments, StrategyArguments, SwapArguments, SweepArguments,
    ThroughputArguments,
};
use crate::failure::Failure;
use crate::output;

/// How long each cell is measured.
fn seconds(common: &CommonArguments) -> Duration {
    let usual = Duration::from_secs(if common.quick { 1 } else { 5 });
    common.time.unwrap_or(usual)
}

fn publication<'a>(name: &'a str, common: &'a CommonArguments) -> Publication<'a> {
    Publication {
        name,
        scale: if common.quick {
            Scale::Quick
        } else {
            Scale::Usual
        },
        output: &common.output,
        data: common.data.as_deref(),
    }
}

fn measuring(arguments: &SwapArguments) -> Measuring {
    Measuring {
        seconds: seconds(&arguments.common),
        warm_up: Duration::from_secs(if arguments.common.quick { 5 } else { 15 }),
        order: arguments.order.into(),
        seed: arguments.common.seed,
    }
}

/// Opens the lab where everything that was asked for can be written.
fn opened(common: &CommonArguments) -> Result<Session, Failure> {
    destinations(&common.output, common.data.as_deref()).check(&[])?;
    output::refuse_csv(&common.output, "the paging lab")?;
    Session::open()
}

/// Runs a part, removes its swap, and publishes its tables.
fn run(
    name: &str,
    common: &CommonArguments,
    mut session: Session,
    mut part: Part,
    (mechanism, swap): (Option<Mechanism>, Option<Swap>),
) -> Result<(), Failure> {
    let mut cells = part.take();
    let plan = Plan {
        rounds: common.rounds.unwrap_or(if common.quick { 1 } else { 5 }),
        mechanism,
        within: None,
    };
    let ran = session.run(&mut cells, plan);
    let removed = swap.map_or(Ok(()), Swap::remove);
    let all: Vec<&Cell> = cells.iter().collect();
    let tables = part.tables(&cells);
    let published = session.publish(publication(name, common), tables, targets(&all), &all);
    ran.and(removed.map_err(failure)).and(published)
}

/// Runs a part in swap that is made and removed around it, then publishes its tables.
fn in_swap(name: &str, arguments: &SwapArguments, part: Part) -> Result<(), Failure> {
    let common = &arguments.common;
    let mut session = opened(common)?;
    let mechanism = session.mechanism()?;
    let swap = session.swap(&arguments.make, part.swapped)?;
    run(name, common, session, part, (Some(mechanism), swap))
}

/// The allocators beside lgalloc: those that were asked for, else the usual ones, or a remark.
///
/// # Errors
/// When one that was asked for cannot be had.
pub fn rivals_of(asked: &[String], session: &mut Session) -> Result<Vec<Holding>, Failure> {
    if !asked.is_empty() {
        let mut found = holdings(asked)?;
        found.retain(|holding| holding.preload.is_some());
        return Ok(found);
    }
    Ok(rivals()?.unwrap_or_else(|why| {
        session.remarks.push(why);
        Vec::new()
    }))
}

/// The throughput benchmark.
///
/// # Errors
/// When nothing could be measured or written.
pub fn throughput(arguments: &ThroughputArguments) -> Result<(), Failure> {
    let common = &arguments.common;
    let mut session = opened(common)?;
    let mechanism = match arguments.unlimited {
        true => None,
        false => session.mechanism_if_any()?,
    };
    let limit = session.limit_without_swap(mechanism, arguments.ram, arguments.processors)?;
    let (warm_up, seconds) = match common.quick {
        true => (Duration::from_millis(200), Duration::from_millis(500)),
        false => (Duration::from_secs(1), seconds(common)),
    };
    let rivals = rivals_of(&arguments.allocators, &mut session)?;
    let part = parts::throughput(&arguments.threads, &rivals, limit, warm_up, seconds);
    run(
        "lgalloc throughput",
        common,
        session,
        part,
        (mechanism, None),
    )
}

/// Random reads, and regions that come back.
///
/// # Errors
/// When swap, rights or a limit are missing; one line.
pub fn random(arguments: &RandomArguments) -> Result<(), Failure> {
    let swap = &arguments.swap;
    let ram = ram(arguments);
    let sizes = [ram, arguments.total.unwrap_or(3 * ram)];
    let holdings = holdings(&swap.allocators)?;
    let part = parts::random(
        parts::PAGING,
        sizes,
        arguments.threads,
        &holdings,
        measuring(swap),
    );
    in_swap("lgalloc paging", swap, part)
}

fn ram(arguments: &RandomArguments) -> u64 {
    let usual = if arguments.swap.common.quick { 64 } else { 512 };
    arguments.ram.unwrap_or(usual << 20)
}

/// Random reads under several limits.
///
/// # Errors
/// As [`random`].
pub fn ratio_sweep(arguments: &SweepArguments) -> Result<(), Failure> {
    let swap = &arguments.swap;
    let usual = if swap.common.quick { 512 } else { 4096 };
    let total = arguments.total.unwrap_or(usual << 20);
    let rams = match arguments.ram.as_slice() {
        [] => halves(total),
        rams => rams.to_vec(),
    };
    let threads = |ram| (ram, arguments.threads.clone());
    let sweep = Sweep {
        total,
        limits: rams.into_iter().map(threads).collect(),
    };
    let holdings = holdings(&swap.allocators)?;
    let part = parts::sweep(&sweep, &holdings, measuring(swap));
    in_swap("lgalloc ratio-sweep", swap, part)
}

/// A size and its halves, down to a sixteenth, in whole regions.
pub fn halves(total: u64) -> Vec<u64> {
    (0..5)
        .map(|power| (total >> power).next_multiple_of(2 << 20))
        .collect()
}

/// What advice buys.
///
/// # Errors
/// As [`random`].
pub fn strategies(arguments: &StrategyArguments) -> Result<(), Failure> {
    let StrategyArguments { ahead, random } = arguments;
    let swap = &random.swap;
    let ram = ram(random);
    let sizes = [ram, random.total.unwrap_or(8 * ram)];
    let holdings = holdings(&swap.allocators)?;
    let ahead = match ahead.as_slice() {
        [] => &parts::AHEAD[..],
        ahead => ahead,
    };
    let part = parts::strategies(sizes, random.threads, ahead, &holdings, measuring(swap));
    in_swap("lgalloc strategies", swap, part)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use heapdrome_paging::{Job, Order};

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        swap: SwapArguments,
    }

    /// From the command line to the instructions of every process that reads.
    #[test]
    fn pages_are_drawn_in_the_order_that_was_asked_for() {
        for (words, order) in [
            ("random", Order::Uniform),
            ("random --order permutation", Order::Permutation),
        ] {
            let line = Line::try_parse_from(words.split_whitespace());
            let measuring = measuring(&line.expect("the command line is right").swap);
            let (own, sizes) = ([Holding::lgalloc()], [64 << 20, 512 << 20]);
            let sweep = Sweep {
                total: 512 << 20,
                limits: vec![(64 << 20, vec![1, 4])],
            };
            let parts = [
                parts::random(parts::PAGING, sizes, 1, &own, measuring),
                parts::sweep(&sweep, &own, measuring),
                parts::strategies(sizes, 1, &parts::AHEAD, &own, measuring),
            ];
            for mut part in parts {
                let cells = part.take();
                let orders = cells.iter().filter_map(|cell| match &cell.job {
                    Job::Read(read) => Some(read.order),
                    _ => None,
                });
                let orders: Vec<Order> = orders.collect();
                assert!(!orders.is_empty());
                assert!(orders.iter().all(|one| *one == order), "{orders:?}");
            }
        }
    }
}
