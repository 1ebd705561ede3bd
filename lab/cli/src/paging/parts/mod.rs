//! The experiments: which cells each has, and which tables come of them.

mod burst;
mod huge_pages;
mod random;
mod strategies;
mod sweep;
mod throughput;

use std::time::Duration;

use heapdrome_paging::{Cell, Holder, Job, Limit, Order, Read, Recycle, Strategy};
use heapdrome_record::Table;

use super::holding::Holding;

pub use burst::burst;
pub use huge_pages::huge_pages;
pub use random::{HEAVY, PAGING, random};
pub use strategies::{AHEAD, strategies};
pub use sweep::{Sweep, sweep};
pub use throughput::throughput;

/// Bytes of a region.
const REGION: u64 = 2 << 20;

/// An experiment.
pub struct Part {
    cells: Vec<Cell>,
    /// How many cells it has.
    pub count: usize,
    /// Bytes that are in swap at once at the most.
    pub swapped: u64,
    tables: Tables,
}

/// Makes tables of cells that were run.
type Tables = Box<dyn Fn(&[Cell]) -> Vec<Table>>;

impl Part {
    fn new(cells: Vec<Cell>, swapped: u64, tables: Tables) -> Self {
        Self {
            count: cells.len(),
            cells,
            swapped,
            tables,
        }
    }

    /// Its cells, which are then someone else's to run.
    pub fn take(&mut self) -> Vec<Cell> {
        std::mem::take(&mut self.cells)
    }

    /// The tables of these cells, which are this part's own.
    pub fn tables(&self, cells: &[Cell]) -> Vec<Table> {
        (self.tables)(cells)
    }
}

/// How cells are measured.
#[derive(Clone, Copy, Debug)]
pub struct Measuring {
    /// The time that counts in each cell and round.
    pub seconds: Duration,
    /// The time after which a warm-up ends although write-back has not settled.
    pub warm_up: Duration,
    /// How pages are drawn.
    pub order: Order,
    /// The seed of contents and draws.
    pub seed: u64,
}

impl Measuring {
    fn reads(self, holding: &Holding, total: u64, threads: usize, strategy: Strategy) -> Job {
        Job::Read(Read {
            total,
            threads,
            strategy,
            holder: holding.holder,
            order: self.order,
            seed: self.seed,
            warm_up: self.warm_up,
            seconds: self.seconds,
        })
    }

    fn regions(self, holder: Holder, total: u64, threads: &[usize]) -> Job {
        Job::Recycle(Recycle {
            total,
            threads: threads.to_vec(),
            holder,
            seed: self.seed,
            seconds: self.seconds,
        })
    }
}

/// A limit as the document's sweep has it: twice the working set in all.
fn limit(ram: u64, total: u64) -> Limit {
    Limit {
        memory: ram,
        swap: total.saturating_mul(2).saturating_sub(ram).max(1 << 20),
        processors: None,
    }
}

/// A working set that fits under a limit, in whole regions.
fn fitting(ram: u64) -> u64 {
    (ram / 2).next_multiple_of(REGION)
}

/// A cell's name under one of several holdings; the first has the plain name.
fn named(name: &str, place: usize, holding: &Holding) -> String {
    match place {
        0 => name.to_owned(),
        _ => format!("{name}, {}", holding.name),
    }
}

/// What is added to a title where it is not lgalloc that holds the working set.
fn held_by(holding: &Holding) -> String {
    match holding.holder {
        Holder::Lgalloc => String::new(),
        _ => format!(", held by {}", holding.name),
    }
}
