//! The child process that runs one synthetic workload and reports the outcome in one line.
//!
//! The process links no allocator: a preloaded library or the C library serves `malloc`. With
//! `--heap cheapest`, the workload runs on [`Lifo`] instead, which shows the cost of the workload
//! itself.

mod cost;
mod words;

use std::io;
use std::process::ExitCode;

use heapdrome_schema::WorkloadReport;
use heapdrome_system::companion;
use heapdrome_workloads::{Failure, Libc, Lifo, Parameters, fits, fits_bytes};

use words::{HeapName, Words};

/// Name of this program in its messages.
const NAME: &str = "heapdrome-runner";

/// Reason why the process ends without a result, with its exit status.
enum Ending {
    /// Fault of the allocator, or a failure to measure: status 1.
    Failed(String),
    /// Invalid parameters, resources that the system refuses to the workload itself, or a result
    /// that cannot be written: status 2.
    Refused(String),
}

/// Runs the process: `heapdrome-runner WORKLOAD [PARAMETER...] [--heap libc|cheapest]`, or with
/// `--cost [PAIRS]` a measurement of the workload's own cost.
///
/// Prints the [`WorkloadReport`] as one line of JSON, or with `--cost` a Markdown table, and
/// returns 0. On failure it prints one line on standard error. It returns 2 for invalid parameters,
/// refused resources or a result that cannot be written, otherwise 1. The workload short-process
/// starts this program again as its child.
pub fn main() -> ExitCode {
    let words = companion::words();
    if let Some(outcome) = heapdrome_workloads::child(&words) {
        return companion::end(NAME, outcome);
    }
    let printed = run(&words).and_then(|line| companion::print(&line).map_err(unwritten));
    let outcome = printed.map_err(|ending| match ending {
        Ending::Failed(reason) => (1, reason),
        Ending::Refused(reason) => (2, reason),
    });
    companion::end(NAME, outcome)
}

fn run(words: &[String]) -> Result<String, Ending> {
    let words = Words::read(words).map_err(Ending::Refused)?;
    let parameters = words.parameters().map_err(Ending::Refused)?;
    fits(&parameters).map_err(|refusal| Ending::Refused(refusal.to_string()))?;
    if words.pairs.is_some() || words.heap == HeapName::Cheapest {
        let fits = fits_bytes(&parameters, memory_for(&parameters));
        fits.map_err(|refusal| Ending::Refused(refusal.to_string()))?;
    }
    if let Some(pairs) = words.pairs {
        let seconds = |heap| cost::of_child(&words, heap);
        return cost::table(&words.title(), pairs, seconds).map_err(Ending::Failed);
    }
    let report = report(&parameters, words.heap)?;
    serde_json::to_string(&report).map_err(|error| Ending::Failed(error.to_string()))
}

/// Returns the ending of a run whose result cannot be written.
fn unwritten(error: io::Error) -> Ending {
    Ending::Refused(format!("cannot write the result: {error}"))
}

/// Classifies a failure as a fault of the allocator, or as a refusal of resources to the workload
/// itself.
fn ending(failure: Failure) -> Ending {
    match failure {
        // The allocator is not at fault if the system refuses resources to the workload itself.
        Failure::Bookkeeping { .. }
        | Failure::Thread(_)
        | Failure::Process(_)
        | Failure::Elsewhere(_) => Ending::Refused(failure.to_string()),
        _ => Ending::Failed(failure.to_string()),
    }
}

fn report(parameters: &Parameters, heap: HeapName) -> Result<WorkloadReport, Ending> {
    match heap {
        HeapName::Libc => heapdrome_workloads::run(parameters, &Libc).map_err(ending),
        HeapName::Cheapest => {
            let heap = Lifo::new(memory_for(parameters)).map_err(ending)?;
            let mut report = heapdrome_workloads::run(parameters, &heap).map_err(ending)?;
            let mut figure = |name: &str, value: u64| {
                report.figures.insert(name.to_owned(), value as f64);
            };
            figure("cheapest_used_bytes", heap.used_bytes());
            figure("cheapest_touched_bytes", heap.touched_bytes());
            Ok(report)
        }
    }
}

/// Returns the number of bytes that the cheapest heap touches before the run. The heap needs more
/// memory than the workload requests: it never reuses a block for another size class, and cuts each
/// thread's blocks from separate chunks.
fn memory_for(parameters: &Parameters) -> u64 {
    const OF_EACH_THREAD: u64 = 16 << 20;
    let needed = (parameters.description().needs)(parameters);
    let threads = parameters.get("threads").unwrap_or(1);
    let slack = threads.saturating_add(1).saturating_mul(OF_EACH_THREAD);
    needed.saturating_mul(2).saturating_add(slack)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(words: &[&str]) -> Result<String, (u8, String)> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        run(&words).map_err(|ending| match ending {
            Ending::Failed(reason) => (1, reason),
            Ending::Refused(reason) => (2, reason),
        })
    }

    #[test]
    fn both_heaps_do_the_same_work() {
        let line = |heap| {
            let words = ["shbench", "iterations=20", "kept=100", "--heap", heap];
            let line = outcome(&words).unwrap();
            assert_eq!(line.lines().count(), 1);
            serde_json::from_str::<WorkloadReport>(&line).unwrap()
        };
        let (libc, cheapest) = (line("libc"), line("cheapest"));
        assert_eq!(libc.checksum, cheapest.checksum);
        assert_eq!(libc.operations, cheapest.operations);
        assert_eq!(libc.parameters, cheapest.parameters);
        assert!(cheapest.figures["cheapest_used_bytes"] > 0.0);
        assert!(!libc.figures.contains_key("cheapest_used_bytes"));
    }

    /// A run that fits in memory may not fit on the cheapest heap, which touches more memory before
    /// the run.
    #[test]
    fn the_cheapest_heap_is_refused_where_its_memory_is_not_there() {
        let parameters = |objects: u64| {
            let words = format!("objects={objects} size=1000000 iterations=1");
            let words: Vec<_> = words.split_whitespace().collect();
            let description = heapdrome_workloads::find("threadtest").unwrap();
            Parameters::parse(description, &words).unwrap()
        };
        // Twice as many blocks do not fit, and the cheapest heap needs about that much memory.
        let powers = (0..30).rev().map(|power| parameters(1 << power));
        let largest = powers.into_iter().find(|one| fits(one).is_ok()).unwrap();
        let words = largest.words();
        for last in [&["--heap", "cheapest"], &["--cost", "3"]] {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let (status, reason) =
                outcome(&[&["threadtest"], &words[..], last].concat()).unwrap_err();
            assert_eq!(status, 2);
            assert!(reason.contains("are free"), "{reason}");
        }
    }

    #[test]
    fn what_the_system_denies_is_not_the_allocators_fault() {
        let denied = Failure::Thread("no".to_owned());
        assert!(matches!(ending(denied), Ending::Refused(_)));
        let null = Failure::NoMemory {
            size: 1,
            requested: 2,
        };
        assert!(matches!(ending(null), Ending::Failed(_)));
        let full = unwritten(io::ErrorKind::StorageFull.into());
        assert!(matches!(full, Ending::Refused(_)));
    }

    #[test]
    fn what_cannot_be_run_is_refused_in_one_line() {
        for words in [
            &[][..],
            &["no-such"],
            &["threadtest", "no-such"],
            &["threadtest", "threads=0"],
            &["threadtest", "threads=3", "objects=2"],
            &["threadtest", "size=18446744073709551616"],
            &["threadtest", "size=-1"],
            &["threadtest", "objects=1000000000000", "size=1000000000000"],
            &["shbench", "min=9", "max=8"],
            &["shbench", "lifo=60", "fifo=60"],
            &["malloctest", "1", "1", "1", "9", "8"],
            &["malloctest", "iterations=1000000000"],
            &["threadtest", "--heap"],
            &["threadtest", "--heap", "no-such"],
            &["threadtest", "--no-such"],
            &["threadtest", "--cost", "1"],
            &["prodcons", "queue=65537"],
        ] {
            let (status, reason) = outcome(words).unwrap_err();
            assert_eq!(status, 2, "{words:?}");
            assert_eq!(reason.lines().count(), 1, "{reason}");
        }
    }
}
