//! Sizes of the document's experiments in each form of `heapdrome suite lgalloc`, and the cells of
//! the experiments.

use std::time::Duration;

use heapdrome_schema::{Bytes, Experiment, Holder, Limit, Order, PagingCell as Cell, Scale};

use crate::experiments::{
    AHEAD, Holding, Measuring, Sweep, burst, halves, huge_pages, random, strategies, sweep,
    throughput,
};
use crate::{Mechanism, free_swap};

/// The sizes and times of one form of the suite.
pub struct Form {
    /// Number of rounds in which all cells run.
    pub rounds: u32,
    /// Maximum number of further rounds, for cells whose targets or claims are open.
    pub more_rounds: u32,
    /// Time limit of the whole lab. After an interruption, the time before it counts too. A round
    /// that is expected to exceed the limit does not begin, except the first round and an
    /// interrupted one.
    pub within: Option<Duration>,
    /// The measuring time of each cell that uses swap.
    pub seconds: Duration,
    /// Maximum warm-up of each cell that uses swap.
    pub warm_up: Duration,
    /// The measuring time and the warm-up of each cell of the throughput benchmark.
    pub throughput: [Duration; 2],
    /// Memory limit of the paging benchmark, whose working set is three times as large. The heavy
    /// benchmark uses a quarter of both.
    pub paging: Bytes,
    /// Working set of the sweep and the strategies. The memory limit of the strategies is an eighth
    /// of it.
    pub total: Bytes,
}

impl Form {
    /// Returns the form for a scale.
    pub fn of(scale: Scale) -> Self {
        let minutes = |count: u64| Some(Duration::from_secs(60 * count));
        match scale {
            Scale::Quick => Self {
                rounds: 3,
                more_rounds: 12,
                within: minutes(13),
                seconds: Duration::from_millis(700),
                warm_up: Duration::from_millis(3000),
                throughput: [200, 100].map(Duration::from_millis),
                paging: Bytes::from_mib(128),
                total: Bytes::from_mib(512),
            },
            Scale::Usual => Self {
                rounds: 5,
                more_rounds: 20,
                within: minutes(38),
                seconds: Duration::from_millis(1500),
                warm_up: Duration::from_millis(8000),
                throughput: [600, 200].map(Duration::from_millis),
                paging: Bytes::from_mib(512),
                total: Bytes::from_gib(1),
            },
            Scale::Published => Self {
                rounds: 5,
                more_rounds: 10,
                within: None,
                seconds: Duration::from_millis(5000),
                warm_up: Duration::from_millis(15000),
                throughput: [5000, 1000].map(Duration::from_millis),
                paging: Bytes::from_mib(512),
                total: Bytes::from_gib(4),
            },
        }
    }
}

impl Form {
    /// Returns the settings for cells that use swap.
    #[must_use]
    pub fn measuring(&self, seed: u64) -> Measuring {
        Measuring {
            seconds: self.seconds,
            warm_up: self.warm_up,
            order: Order::Uniform,
            seed,
        }
    }
}

/// Capabilities of the machine, and requests of the user beyond the document's own experiments.
#[derive(Debug, Default)]
pub struct DocumentSetting {
    /// Limit of the experiments that need no swap; `None` if they run without a limit.
    pub limit: Option<Limit>,
    /// Further ways to hold the paging benchmark's working set, in addition to lgalloc.
    pub more: Vec<Holding>,
    /// Allocators from which the throughput benchmark also takes blocks, to compare them with
    /// lgalloc.
    pub rivals: Vec<Holding>,
    /// Whether to try each value of the kernel's setting for huge pages.
    pub set_huge_pages: bool,
    /// The seed of contents and draws.
    pub seed: u64,
}

/// Returns the cells of the given experiments of the document.
#[must_use]
pub fn document(form: &Form, setting: &DocumentSetting, parts: &[Experiment]) -> Vec<Cell> {
    let measuring = form.measuring(setting.seed);
    let own = [Holding::from(Holder::Lgalloc)];
    let all: Vec<Holding> = own.iter().chain(&setting.more).cloned().collect();
    let [seconds, warm_up] = form.throughput;
    let limit = setting.limit;
    let choices: &[Option<&str>] = match setting.set_huge_pages {
        true => &[Some("always"), Some("madvise"), Some("never")],
        false => &[None],
    };
    let three = |ram: Bytes| [ram, ram * 3];
    let of = |part: &Experiment| match part {
        Experiment::Throughput => {
            throughput(&[1, 2, 4, 8, 16], &setting.rivals, limit, warm_up, seconds)
        }
        Experiment::Paging => random(*part, three(form.paging), 1, &all, measuring),
        Experiment::Heavy => {
            let ram = Bytes(form.paging.0 / 4);
            random(*part, three(ram), 1, &own, measuring)
        }
        Experiment::RatioSweep => sweep(&document_sweep(form.total), &own, measuring),
        Experiment::Strategies => {
            let sizes = [Bytes(form.total.0 / 8), form.total];
            strategies(sizes, 1, &AHEAD, &own, measuring)
        }
        Experiment::Thp => huge_pages(choices, limit, warm_up, seconds),
        Experiment::Burst => burst(limit),
    };
    parts.iter().flat_map(of).collect()
}

/// Returns the document's limits, each with its published numbers of threads.
fn document_sweep(total: Bytes) -> Sweep {
    let limits = halves(total).into_iter().enumerate();
    Sweep {
        total,
        limits: limits
            .map(|(place, ram)| match place {
                1 | 3 => (ram, vec![1, 4, 8, 16]),
                _ => (ram, vec![1]),
            })
            .collect(),
    }
}

/// Adapts a cell to a machine without enough swap. A cell that needs swap fails with `why`. So does
/// a cell that was measured under a limit, if the machine now has no mechanism for limits. Any
/// other cell keeps its limit, with the swap limit reduced to the free swap. Without a mechanism,
/// it loses the limit.
pub fn do_without_swap(cell: &mut Cell, mechanism: Option<Mechanism>, why: &str) {
    if cell.limit.is_some() && mechanism.is_none() && !cell.reports.is_empty() {
        // A cell that was measured under a limit cannot continue without one.
        cell.failure = Some(why.to_owned());
        return;
    }
    let memory = cell.limit.map(|limit| limit.memory);
    if memory.is_some_and(|memory| cell.job.working_set() >= memory) {
        cell.failure = Some(why.to_owned());
    } else if mechanism.is_none() {
        cell.limit = None;
    } else if let Some(limit) = &mut cell.limit {
        limit.swap = limit.swap.min(free_swap());
    }
}

#[cfg(test)]
mod tests {
    use heapdrome_schema::Job;

    use super::*;
    use crate::{claims, experiments, targets};

    /// Returns the document's cells. If `set_huge_pages` is true, the huge-page cells run under
    /// every setting.
    fn cells(parts: &[Experiment], set_huge_pages: bool) -> Vec<Cell> {
        let setting = DocumentSetting {
            set_huge_pages,
            ..DocumentSetting::default()
        };
        document(&Form::of(Scale::Usual), &setting, parts)
    }

    #[test]
    fn what_needs_swap_is_left_out_and_the_rest_stays() {
        let mut cells = cells(&[Experiment::Paging], false);
        for cell in &mut cells {
            do_without_swap(cell, None, "no swap");
        }
        let left = cells.iter().filter(|cell| cell.failure.is_none());
        let left: Vec<&Cell> = left.collect();
        let names: Vec<&str> = left.iter().map(|cell| cell.name.as_str()).collect();
        assert_eq!(names, ["random reads, all fits"]);
        assert!(left.iter().all(|cell| cell.limit.is_none()));
        let tables = experiments::tables(&cells.iter().collect::<Vec<_>>());
        let told: Vec<&String> = tables.iter().flat_map(|table| &table.notes).collect();
        let not = |note: &&&String| note.contains("not measured: no swap");
        assert!(told.iter().any(|note| not(&note)), "{told:?}");
    }

    /// Every claim must refer to existing cells. A claim without cells is never tested, and no
    /// error would show this.
    #[test]
    fn every_claim_speaks_of_cells_that_there_are() {
        let cells = cells(&Experiment::ALL, true);
        let told = claims(&cells.iter().collect::<Vec<_>>(), 64);
        for claim in told {
            assert!(!claim.because.contains("not run"), "{claim:?}");
        }
    }

    /// Every target must refer to existing cells. A target without cells is silently omitted.
    #[test]
    fn every_target_speaks_of_cells_that_there_are() {
        let all = include_str!("../data/targets.toml");
        let cells = cells(&Experiment::ALL, false);
        let told = targets(&cells.iter().collect::<Vec<_>>());
        assert_eq!(told.len(), all.matches("[[claims]]").count());
    }

    /// The requested order must be in the instructions of every process that reads pages.
    #[test]
    fn pages_are_drawn_in_the_order_that_was_asked_for() {
        let sizes = [Bytes::from_mib(64), Bytes::from_mib(512)];
        let own = [Holding::default()];
        for order in [Order::Uniform, Order::Permutation] {
            let measuring = Measuring {
                order,
                ..Form::of(Scale::Quick).measuring(1)
            };
            let limits = vec![(sizes[0], vec![1, 4])];
            let total = sizes[1];
            let all = [
                random(Experiment::Paging, sizes, 1, &own, measuring),
                sweep(&Sweep { total, limits }, &own, measuring),
                strategies(sizes, 1, &AHEAD, &own, measuring),
            ];
            for cells in all {
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

    #[test]
    fn the_smaller_forms_end_in_time() {
        for (scale, most) in [(Scale::Quick, 15), (Scale::Usual, 40)] {
            let within = Form::of(scale).within.expect("it has an end");
            assert!(within + Duration::from_secs(120) <= Duration::from_secs(60 * most));
        }
    }
}
