//! The report of a run.

use std::collections::BTreeMap;

use heapdrome_schema::WorkloadReport;

use crate::account::Account;
use crate::caller::Tally;
use crate::{FigureText, Parameters};
use heapdrome_system::process::{Elapsed, Memory, OfChildren};

/// Measurements of a run, from which its report is made.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Work of all threads.
    pub(crate) tally: Tally,
    /// Time of the measured part.
    pub(crate) elapsed: Elapsed,
    /// Peak of the requested bytes.
    pub(crate) peak_requested: u64,
    /// Size in bytes of the workload's own arrays, which are resident but do not belong to the
    /// allocator.
    pub(crate) bookkeeping: u64,
    /// Memory before the measured part.
    pub(crate) before: Memory,
    /// Memory at the end of the measured part.
    pub(crate) after: Memory,
    /// Figures of this workload only.
    pub(crate) own: Vec<(&'static str, f64)>,
}

impl Outcome {
    /// Creates the outcome of threads that were started once.
    pub(crate) fn of(
        finished: crate::threads::Finished<Tally>,
        account: &Account,
        bookkeeping: u64,
    ) -> Self {
        Self {
            tally: Tally::sum(finished.results),
            elapsed: finished.elapsed,
            peak_requested: account.peak(),
            bookkeeping,
            before: finished.before,
            after: finished.after,
            own: Vec::new(),
        }
    }

    /// Adds the resources that this number of child processes used.
    pub(crate) fn add_children(&mut self, used: OfChildren, children: u64) {
        let cpu = Elapsed {
            cpu: used.cpu,
            ..Elapsed::default()
        };
        self.elapsed = self.elapsed + cpu;
        let faults = used.page_faults as f64 / children as f64;
        self.own.extend([
            (CHILDREN[0].name, used.cpu.as_secs_f64()),
            (CHILDREN[1].name, faults),
        ]);
    }

    /// Converts the measurements to the report of a run with these parameters.
    pub(crate) fn report(self, parameters: &Parameters) -> WorkloadReport {
        let mut figures = self.figures();
        if let Some(latency) = &self.tally.latency {
            figures.extend(latency.figures());
        }
        figures.extend(self.own);
        let named = figures
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value));
        WorkloadReport {
            workload: parameters.description().name.to_owned(),
            parameters: parameters.words().join(" "),
            operations: self.tally.operations,
            checksum: format!("{:016x}", self.tally.checksum),
            figures: named.collect::<BTreeMap<_, _>>(),
        }
    }

    fn figures(&self) -> Vec<(&'static str, f64)> {
        let cpu = self.elapsed.cpu.as_secs_f64();
        let requested = self.peak_requested as f64;
        let peak = self.after.peak_resident as f64;
        let grown = peak - self.before.resident as f64;
        let mut figures = vec![
            ("wall_s", self.elapsed.wall.as_secs_f64()),
            ("cpu_s", cpu),
            ("peak_requested_bytes", requested),
            ("peak_resident_bytes", peak),
            ("start_resident_bytes", self.before.resident as f64),
            ("end_resident_bytes", self.after.resident as f64),
            ("end_mapped_bytes", self.after.mapped as f64),
            ("bookkeeping_bytes", self.bookkeeping as f64),
        ];
        if cpu > 0.0 {
            let rate = self.tally.operations as f64 / cpu;
            figures.push(("operations_per_cpu_s", rate));
        }
        if requested > 0.0 && peak > 0.0 {
            figures.push(("overhead", peak / requested));
            figures.push(("net_overhead", grown / requested));
        }
        figures
    }
}

/// Figures of every synthetic workload. Figures of latency exist only with `latency=1`.
pub(crate) const FIGURES: &[FigureText] = &[
    FigureText {
        name: "operations_per_cpu_s",
        meaning: "blocks allocated and blocks freed, per second of processor time of the measured part",
        more_is_better: true,
    },
    FigureText::less("wall_s", "wall time of the measured part"),
    FigureText::less("cpu_s", "processor time of the measured part, all threads"),
    FigureText::less(
        "overhead",
        "peak resident memory of the process over the peak of the bytes requested",
    ),
    FigureText::less(
        "net_overhead",
        "growth of resident memory in the measured part over the peak of the bytes requested: \
         without the program, its libraries and the workload's own arrays",
    ),
    FigureText::less(
        "peak_requested_bytes",
        "maximum total size of all blocks in use: the lower bound of memory, equal under every \
         allocator except for the interleaving of threads",
    ),
    FigureText::less(
        "peak_resident_bytes",
        "peak resident memory of the process up to the end of the measured part",
    ),
    FigureText::less(
        "start_resident_bytes",
        "resident memory when the measured part begins",
    ),
    FigureText::less(
        "end_resident_bytes",
        "resident memory when the measured part ends, before its threads do",
    ),
    FigureText::less(
        "end_mapped_bytes",
        "address space when the measured part ends",
    ),
    FigureText::less(
        "bookkeeping_bytes",
        "the workload's own arrays, in pages of their own: resident, and not the allocator's",
    ),
    FigureText::less(
        "latency_malloc_p50_ns",
        "half of all allocations took at most this",
    ),
    FigureText::less(
        "latency_malloc_p90_ns",
        "90% of all allocations took at most this",
    ),
    FigureText::less(
        "latency_malloc_p99_ns",
        "99% of all allocations took at most this",
    ),
    FigureText::less(
        "latency_malloc_p999_ns",
        "99.9% of all allocations took at most this",
    ),
    FigureText::less("latency_malloc_max_ns", "the longest allocation"),
    FigureText::less("latency_free_p50_ns", "half of all frees took at most this"),
    FigureText::less("latency_free_p90_ns", "90% of all frees took at most this"),
    FigureText::less("latency_free_p99_ns", "99% of all frees took at most this"),
    FigureText::less(
        "latency_free_p999_ns",
        "99.9% of all frees took at most this",
    ),
    FigureText::less("latency_free_max_ns", "the longest free"),
    FigureText::less(
        "latency_clock_ns",
        "the time that the clock shows for no call, which is part of every latency",
    ),
];

/// Figures that [`Outcome::add_children`] adds.
pub(crate) const CHILDREN: &[FigureText] = &[
    FigureText::less(
        "children_cpu_s",
        "processor time of all children, including that of the kernel for them",
    ),
    FigureText::less(
        "page_faults_per_child",
        "page faults of a child without input, such as copies of shared pages",
    ),
];

/// Returns a workload's own figures, followed by those of every synthetic workload. `N` is the
/// number of both together.
pub(crate) const fn before_common<const N: usize>(own: &[FigureText]) -> [FigureText; N] {
    let mut all = [FIGURES[0]; N];
    let mut place = 0;
    while place < N {
        all[place] = match place < own.len() {
            true => own[place],
            false => FIGURES[place - own.len()],
        };
        place += 1;
    }
    all
}
