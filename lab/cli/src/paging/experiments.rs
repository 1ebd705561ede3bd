//! The experiments as cells, and their tables.

use std::time::Duration;

use heapdrome_paging::{
    Cell, Holder, Job, Limit, Read, Recycle, Strategy, Throughput, Variant, ccdf_table, published,
    ratio_table, realloc_table, recycle_table, scaling_table, size, strategy_table, summary_table,
    throughput_table,
};
use heapdrome_record::Table;

use super::arguments::{
    CommonArguments, RandomArguments, SwapArguments, SweepArguments, ThroughputArguments,
};
use super::session::Session;
use crate::failure::Failure;
use crate::output;

/// Readers of the document's last strategy.
const MANY: usize = 8;

/// How long each cell is measured.
fn seconds(common: &CommonArguments) -> f64 {
    let usual = Duration::from_secs(if common.quick { 1 } else { 5 });
    common.time.unwrap_or(usual).as_secs_f64()
}

fn rounds(common: &CommonArguments, usual: u32) -> u32 {
    common
        .rounds
        .unwrap_or(if common.quick { 1 } else { usual })
}

/// A limit as the document's sweep has it: twice the working set in all.
fn limit(ram: u64, total: u64) -> Limit {
    Limit {
        memory: ram,
        swap: total.saturating_mul(2).saturating_sub(ram).max(1 << 20),
        processors: None,
    }
}

fn read_job(arguments: &SwapArguments, total: u64, threads: usize, strategy: Strategy) -> Job {
    Job::Read(Read {
        total,
        threads,
        strategy,
        holder: arguments.holder.into(),
        order: arguments.order.into(),
        seed: arguments.common.seed,
        warm_up: if arguments.common.quick { 5.0 } else { 15.0 },
        seconds: seconds(&arguments.common),
    })
}

fn recycle_job(arguments: &SwapArguments, total: u64, holder: Holder) -> Job {
    Job::Recycle(Recycle {
        total,
        holder,
        seed: arguments.common.seed,
        seconds: seconds(&arguments.common),
    })
}

/// Runs cells in swap that is made and removed around them, then publishes their tables.
fn in_swap(
    name: &str,
    arguments: &SwapArguments,
    needed: u64,
    mut cells: Vec<Cell>,
    tables: impl FnOnce(&[Cell]) -> Vec<Table>,
) -> Result<(), Failure> {
    let common = &arguments.common;
    output::check_writable(&common.output)?;
    let mut session = Session::open()?;
    let mechanism = session.mechanism()?;
    let swap = session.swap(arguments, needed)?;
    let ran = session.run(&mut cells, rounds(common, 5), Some(mechanism));
    let removed = swap.map_or(Ok(()), heapdrome_paging::Swap::remove);
    let all: Vec<&Cell> = cells.iter().collect();
    let published = session.publish(name, common, tables(&cells), &all);
    ran.and(removed.map_err(super::session::failure))
        .and(published)
}

/// The throughput benchmark.
///
/// # Errors
/// When nothing could be measured or written.
pub fn throughput(arguments: &ThroughputArguments) -> Result<(), Failure> {
    let common = &arguments.common;
    output::check_writable(&common.output)?;
    let mut session = Session::open()?;
    let mechanism = match arguments.unlimited {
        true => None,
        false => match session.mechanism() {
            Ok(mechanism) => Some(mechanism),
            Err(Failure::Interrupted) => return Err(Failure::Interrupted),
            Err(failure) => {
                session
                    .remarks
                    .push(format!("measured without a limit: {failure}"));
                None
            }
        },
    };
    let limit = mechanism.map(|_| Limit {
        memory: arguments.ram,
        swap: 0,
        processors: Some(arguments.processors),
    });
    let cell = |threads: &usize, variant: Variant| {
        let job = Job::Throughput(Throughput {
            variant,
            threads: *threads,
            warm_up: if common.quick { 0.2 } else { 1.0 },
            seconds: if common.quick { 0.5 } else { seconds(common) },
        });
        Cell::new(format!("{} x {threads}", variant.name()), job, limit)
    };
    let per_count = |threads| Variant::ALL.map(|variant| cell(threads, variant));
    let mut cells: Vec<Cell> = arguments.threads.iter().flat_map(per_count).collect();
    let ran = session.run(&mut cells, rounds(common, 1), mechanism);
    let all: Vec<&Cell> = cells.iter().collect();
    let title = "Regions of 2 MiB, taken and returned; the warm-up is not counted";
    let published = session.publish(
        "lgalloc throughput",
        common,
        vec![throughput_table(title, &all)],
        &all,
    );
    ran.and(published)
}

/// Random reads, and regions that come back.
///
/// # Errors
/// When swap, rights or a limit are missing; one line.
pub fn random(arguments: &RandomArguments) -> Result<(), Failure> {
    let swap = &arguments.swap;
    let ram = ram(arguments);
    let total = arguments.total.unwrap_or(3 * ram);
    let under = Some(limit(ram, total));
    let holder: Holder = swap.holder.into();
    let baseline = read_job(swap, total, arguments.threads, Strategy::Baseline);
    // A working set that fits tells what the harness itself costs.
    let control = read_job(swap, fitting(ram), arguments.threads, Strategy::Baseline);
    let mut cells = vec![
        Cell::new("random reads", baseline, under),
        Cell::new("regions again", recycle_job(swap, total, holder), under),
        Cell::new("random reads, all fits", control, under),
    ];
    for other in [Holder::Lgalloc, Holder::Mapped, Holder::Malloc] {
        if other != holder {
            let name = format!("regions again, {}", other.name());
            cells.push(Cell::new(name, recycle_job(swap, total, other), under));
        }
    }
    let needed = total.saturating_sub(ram);
    in_swap("lgalloc paging", swap, needed, cells, |cells| {
        let here = format!("{} of memory, {} allocated", size(ram), size(total));
        let reads = cells[0].distribution("read");
        let mut recycled: Vec<&Cell> = vec![&cells[1]];
        recycled.extend(&cells[3..]);
        let mut tables = vec![summary_table(&here, &cells[0], &cells[1])];
        tables.extend(published("paging"));
        tables.push(ccdf_table(&format!("CCDF of random reads, {here}"), &reads));
        tables.push(ccdf_table(
            &format!(
                "CCDF of random reads where all fits, {}",
                size(fitting(ram))
            ),
            &cells[2].distribution("read"),
        ));
        tables.push(ccdf_table(
            "CCDF of realloc+touch",
            &cells[1].distribution("hot"),
        ));
        tables.push(ccdf_table(
            "CCDF of the clock alone",
            &cells[0].distribution("clock"),
        ));
        tables.push(recycle_table(
            &format!("First use after swap, and use again and again, {here}"),
            &recycled,
        ));
        tables
    })
}

fn ram(arguments: &RandomArguments) -> u64 {
    let usual = if arguments.swap.common.quick { 64 } else { 512 };
    arguments.ram.unwrap_or(usual << 20)
}

/// A working set that fits under a limit, in whole regions.
fn fitting(ram: u64) -> u64 {
    (ram / 2).next_multiple_of(2 << 20)
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
        [] => (0..5)
            .map(|power| (total >> power).next_multiple_of(2 << 20))
            .collect(),
        rams => rams.to_vec(),
    };
    let mut cells = Vec::new();
    for ram in &rams {
        let under = Some(limit(*ram, total));
        for threads in &arguments.threads {
            let name = format!("{} x {threads}", size(*ram));
            let job = read_job(swap, total, *threads, Strategy::Baseline);
            cells.push(Cell::new(name, job, under));
        }
        let job = recycle_job(swap, total, swap.holder.into());
        cells.push(Cell::new(
            format!("{} regions again", size(*ram)),
            job,
            under,
        ));
    }
    let needed = total.saturating_sub(rams.iter().copied().min().unwrap_or(total));
    in_swap("lgalloc ratio-sweep", swap, needed, cells, |cells| {
        let set = size(total);
        let reads_by = |wanted: usize| -> Vec<&Cell> {
            let right = |cell: &&Cell| matches!(&cell.job, Job::Read(job) if job.threads == wanted);
            cells.iter().filter(right).collect()
        };
        let mut tables = Vec::new();
        for threads in &arguments.threads {
            let title = format!("Random reads, threads: {threads}, working set: {set}");
            tables.push(ratio_table(&title, &reads_by(*threads)));
        }
        tables.extend(published("ratio"));
        let reads: Vec<&Cell> = cells
            .iter()
            .filter(|cell| matches!(cell.job, Job::Read(_)))
            .collect();
        let title = format!("Random reads per second by threads, working set: {set}");
        tables.push(scaling_table(&title, &reads));
        tables.extend(published("scaling"));
        let again: Vec<&Cell> = cells
            .iter()
            .filter(|cell| matches!(cell.job, Job::Recycle(_)))
            .collect();
        let title = format!("Realloc+touch from the pool, 1 thread, {set} in all");
        tables.push(realloc_table(&title, &again));
        tables.extend(published("realloc"));
        tables
    })
}

/// The document's strategies, and one that looks further ahead.
fn all_strategies(threads: usize) -> Vec<(String, usize, Strategy)> {
    let mut all: Vec<(String, usize, Strategy)> = [
        Strategy::Baseline,
        Strategy::Random,
        Strategy::Sequential,
        Strategy::Prefetch { ahead: 32 },
        Strategy::Prefetch { ahead: 128 },
        Strategy::Batch { pages: 8 },
        Strategy::Batch { pages: 32 },
        Strategy::Batch { pages: 128 },
    ]
    .into_iter()
    .map(|strategy| (strategy.name(), threads, strategy))
    .collect();
    let last = Strategy::RandomPrefetch { ahead: 32 };
    all.push((format!("MADV_RANDOM+pf ({MANY}thr)"), MANY, last));
    all
}

/// What advice buys.
///
/// # Errors
/// As [`random`].
pub fn strategies(arguments: &RandomArguments) -> Result<(), Failure> {
    let swap = &arguments.swap;
    let ram = ram(arguments);
    let total = arguments.total.unwrap_or(8 * ram);
    let fits = fitting(ram);
    let under = Some(limit(ram, total));
    let cells_of = |total: u64| {
        let all = all_strategies(arguments.threads).into_iter();
        all.map(move |(name, threads, strategy)| {
            Cell::new(name, read_job(swap, total, threads, strategy), under)
        })
    };
    let mut cells: Vec<Cell> = cells_of(total).collect();
    let count = cells.len();
    cells.extend(cells_of(fits));
    let needed = total.saturating_sub(ram);
    in_swap("lgalloc strategies", swap, needed, cells, |cells| {
        let (pressed, fit) = cells.split_at(count);
        let title = format!(
            "Advice, threads: {}, {} of memory for {}",
            arguments.threads,
            size(ram),
            size(total)
        );
        let mut tables = vec![strategy_table(&title, &pressed.iter().collect::<Vec<_>>())];
        tables.extend(published("strategies"));
        let title = format!(
            "The same where all fits: {} of memory for {}",
            size(ram),
            size(fits)
        );
        tables.push(strategy_table(&title, &fit.iter().collect::<Vec<_>>()));
        tables
    })
}
