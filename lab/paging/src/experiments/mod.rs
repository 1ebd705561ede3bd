//! Cells and tables of each experiment. Tables depend only on the cells, so stored results yield
//! the same tables.

mod burst;
mod huge_pages;
mod random;
mod strategies;
mod sweep;
mod throughput;

use std::time::Duration;

use heapdrome_schema::{
    Bytes, Entrant, Experiment, Holder, Job, Limit, Order, PagingCell as Cell, Read, Recycle,
    Strategy, Table,
};

pub use burst::burst;
pub use huge_pages::huge_pages;
pub use random::random;
pub use strategies::{AHEAD, strategies};
pub use sweep::{Sweep, halves, sweep};
pub use throughput::throughput;

/// Size of the regions that hold a working set.
const REGION: Bytes = Bytes::from_mib(2);

/// Makes the tables of the cells, grouped by experiment.
#[must_use]
pub fn tables(cells: &[&Cell]) -> Vec<Table> {
    let of = |part: Experiment| {
        let own = cells.iter().filter(|cell| cell.part == part);
        let own: Vec<&Cell> = own.copied().collect();
        match part {
            _ if own.is_empty() => Vec::new(),
            Experiment::Throughput => throughput::tables(&own),
            Experiment::Paging | Experiment::Heavy => random::tables(part, &own),
            Experiment::RatioSweep => sweep::tables(&own),
            Experiment::Strategies => strategies::tables(&own),
            Experiment::Thp => huge_pages::tables(&own),
            Experiment::Burst => burst::tables(&own),
        }
    };
    Experiment::ALL.into_iter().flat_map(of).collect()
}

/// Returns the largest number of bytes by which the working set of any of these cells exceeds its
/// limit.
#[must_use]
pub fn swapped<'a>(cells: impl IntoIterator<Item = &'a Cell>) -> Bytes {
    cells.into_iter().map(beyond).max().unwrap_or_default()
}

/// Returns the number of bytes of a cell's working set that do not fit under its limit.
pub(crate) fn beyond(cell: &Cell) -> Bytes {
    let memory = cell.limit.map(|limit| limit.memory);
    cell.job.working_set() - memory.unwrap_or(Bytes(u64::MAX))
}

/// A way to hold a working set.
#[derive(Clone, Debug, Default)]
pub struct Holding {
    /// The method by which the child allocates memory.
    pub holder: Holder,
    /// The allocator that serves the child's `malloc`; `None` for the C library.
    pub allocator: Option<Entrant>,
}

impl From<Holder> for Holding {
    fn from(holder: Holder) -> Self {
        Self {
            holder,
            allocator: None,
        }
    }
}

impl Holding {
    /// Returns the name of the holding in tables.
    #[must_use]
    pub fn name(&self) -> &str {
        self.holder.name_of(self.allocator.as_ref())
    }

    /// Returns a cell whose child uses this holding. Appends the name of the holding to the cell's
    /// name, unless `place` is 0.
    fn cell(
        &self,
        place: usize,
        part: Experiment,
        name: &str,
        job: Job,
        limit: Option<Limit>,
    ) -> Cell {
        let name = match place {
            0 => name.to_owned(),
            _ => format!("{name}, {}", self.name()),
        };
        Cell {
            allocator: self.allocator.clone(),
            ..Cell::new(part, name, job, limit)
        }
    }
}

/// The settings of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Measuring {
    /// The measuring time of each cell in each round.
    pub seconds: Duration,
    /// Maximum warm-up. The warm-up ends earlier if write-back settles.
    pub warm_up: Duration,
    /// The order in which pages are drawn.
    pub order: Order,
    /// The seed of contents and draws.
    pub seed: u64,
}

impl Measuring {
    fn reads(self, holding: &Holding, total: Bytes, threads: usize, strategy: Strategy) -> Job {
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

    fn regions(self, holder: Holder, total: Bytes, threads: &[usize]) -> Job {
        Job::Recycle(Recycle {
            total,
            threads: threads.to_vec(),
            holder,
            seed: self.seed,
            seconds: self.seconds,
        })
    }
}

/// Returns the limit with `ram` bytes of memory for a working set of `total` bytes. Memory and swap
/// together can hold twice the working set.
fn limit(ram: Bytes, total: Bytes) -> Limit {
    Limit {
        memory: ram,
        swap: (total * 2 - ram).max(Bytes::from_mib(1)),
        processors: None,
    }
}

/// Returns the size of a working set that fits under a limit, in whole regions.
fn fitting(ram: Bytes) -> Bytes {
    Bytes(ram.0 / 2).rounded_up_to(REGION)
}

/// Groups the cells by holding, in the order in which the holdings first appear.
fn by_holding<'a>(cells: &[&'a Cell]) -> Vec<Vec<&'a Cell>> {
    let mut groups: Vec<Vec<&Cell>> = Vec::new();
    for cell in cells {
        let same = |group: &&mut Vec<&Cell>| group[0].held_by() == cell.held_by();
        match groups.iter_mut().find(same) {
            Some(group) => group.push(cell),
            None => groups.push(vec![cell]),
        }
    }
    groups
}

/// Returns the name of a cell without that of its holding.
fn plain_name(cell: &Cell) -> &str {
    let plain = cell.name.strip_suffix(cell.held_by());
    plain
        .and_then(|name| name.strip_suffix(", "))
        .unwrap_or(&cell.name)
}

/// Returns the part of a title that names the holder; empty if the holder is lgalloc, or if the job
/// has none.
fn held_by(cell: &Cell) -> String {
    match cell.job.holder() {
        Some(Holder::Lgalloc) | None => String::new(),
        Some(_) => format!(", held by {}", cell.held_by()),
    }
}

/// Returns the memory limit, the working set and the number of readers of a cell of random reads;
/// `None` for any other cell.
fn setting(cell: &Cell) -> Option<(Bytes, Bytes, usize)> {
    match (&cell.job, cell.limit) {
        (Job::Read(job), Some(limit)) => Some((limit.memory, job.total, job.threads)),
        _ => None,
    }
}
