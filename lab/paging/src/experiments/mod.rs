//! The experiments: which cells each has, and which tables come of them. Tables are made of cells
//! alone, so that a result that was kept has the same ones.

mod burst;
mod huge_pages;
mod random;
mod strategies;
mod sweep;
mod throughput;

use std::time::Duration;

use heapdrome_record::{
    Bytes, Entrant, Experiment, Holder, Job, Limit, Order, PagingCell as Cell, Read, Recycle,
    Strategy, Table,
};

pub use burst::burst;
pub use huge_pages::huge_pages;
pub use random::random;
pub use strategies::{AHEAD, strategies};
pub use sweep::{Sweep, halves, sweep};
pub use throughput::throughput;

/// The size of a region.
const REGION: Bytes = Bytes::from_mib(2);

/// The tables of these cells, experiment by experiment.
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

/// How much of the working sets of these cells lies in swap at once at the most.
#[must_use]
pub fn swapped<'a>(cells: impl IntoIterator<Item = &'a Cell>) -> Bytes {
    cells.into_iter().map(beyond).max().unwrap_or_default()
}

/// How much of a cell's working set does not fit under its limit.
pub(crate) fn beyond(cell: &Cell) -> Bytes {
    let memory = cell.limit.map(|limit| limit.memory);
    cell.job.working_set() - memory.unwrap_or(Bytes(u64::MAX))
}

/// What holds a working set.
#[derive(Clone, Debug, Default)]
pub struct Holding {
    /// The child's way to get memory.
    pub holder: Holder,
    /// What the child's `malloc` comes from; `None` for the C library.
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
    /// Its name in tables.
    #[must_use]
    pub fn name(&self) -> &str {
        self.holder.name_of(self.allocator.as_ref())
    }

    /// A cell whose child gets its memory so. Of several holdings the first has the plain name.
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

/// A limit as the document's sweep has it: twice the working set in all.
fn limit(ram: Bytes, total: Bytes) -> Limit {
    Limit {
        memory: ram,
        swap: (total * 2 - ram).max(Bytes::from_mib(1)),
        processors: None,
    }
}

/// A working set that fits under a limit, in whole regions.
fn fitting(ram: Bytes) -> Bytes {
    Bytes(ram.0 / 2).rounded_up_to(REGION)
}

/// The cells of each holding, in the order in which these first appear.
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

/// The name of a cell without that of its holding.
fn plain_name(cell: &Cell) -> &str {
    let plain = cell.name.strip_suffix(cell.held_by());
    plain
        .and_then(|name| name.strip_suffix(", "))
        .unwrap_or(&cell.name)
}

/// What is added to a title where it is not lgalloc that holds the working set.
fn held_by(cell: &Cell) -> String {
    match cell.job.holder() {
        Some(Holder::Lgalloc) | None => String::new(),
        Some(_) => format!(", held by {}", cell.held_by()),
    }
}

/// Memory under the limit of a cell of random reads, its working set and its readers.
fn setting(cell: &Cell) -> Option<(Bytes, Bytes, usize)> {
    match (&cell.job, cell.limit) {
        (Job::Read(job), Some(limit)) => Some((limit.memory, job.total, job.threads)),
        _ => None,
    }
}
