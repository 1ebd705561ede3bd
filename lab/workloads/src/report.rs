//! What a run says of itself.

use std::collections::BTreeMap;

use heapdrome_schema::WorkloadReport;

use crate::account::Account;
use crate::caller::Tally;
use crate::{FigureText, Parameters};
use heapdrome_system::process::{Elapsed, Memory};

/// Everything that a report is made of.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// What all threads did.
    pub(crate) tally: Tally,
    /// Time of the measured part.
    pub(crate) elapsed: Elapsed,
    /// The peak of the bytes requested.
    pub(crate) peak_requested: u64,
    /// The workload's own arrays, in bytes; they are resident and not the allocator's.
    pub(crate) bookkeeping: u64,
    /// Memory before the measured part.
    pub(crate) before: Memory,
    /// Memory at its end, or where the document samples it.
    pub(crate) after: Memory,
    /// Figures that only this workload has.
    pub(crate) own: Vec<(&'static str, f64)>,
}

impl Outcome {
    /// The usual outcome of threads that ran once.
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

    /// The report.
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

/// The figures that every synthetic workload has; those of latency only with `latency=1`.
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
        "the greatest sum of the sizes of all blocks in use at once: the floor of memory, the \
         same under every allocator but for the interleaving of threads",
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
        "what the clock shows for no call at all, and so part of every latency",
    ),
];
