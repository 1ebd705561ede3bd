//! The child process that runs one cell of the experiments on large objects and paging. Its only
//! argument is JSON, and its answer is one line of JSON. "The document" in the comments of this
//! crate is the document that `heapdrome_paging` names.
//!
//! lgalloc is not a `malloc` and cannot be preloaded, so this process links it. If `malloc` holds
//! the working set, the C library or a preloaded library serves `malloc`.

mod burst;
mod draws;
mod drive;
mod failure;
mod harness;
mod published;
mod read;
mod read_threads;
mod recycle;
mod regions;
mod settle;
mod throughput;
mod times;

use std::process::ExitCode;

use heapdrome_paging::{own_tally, seen_limit};
use heapdrome_schema::{Instructions, Job, PagingReport};
use heapdrome_system::companion;

use failure::Failure;

pub use burst::run as burst;
pub use drive::{Operation, Outcome, drive};

/// Runs the process: `heapdrome-lgalloc-bench INSTRUCTIONS`.
///
/// Prints the [`PagingReport`] as one line of JSON and returns 0. On failure it prints one line to
/// standard error and returns 1, or 2 if the instructions are invalid or the control group cannot
/// be entered.
pub fn main() -> ExitCode {
    let outcome = run(&companion::words()).and_then(|report| {
        let line = serde_json::to_string(&report);
        let line = line.map_err(|error| Failure::Answer(error.into()))?;
        companion::print(&line).map_err(Failure::Answer)
    });
    let outcome = outcome.map_err(|failure| (failure.status(), failure.to_string()));
    companion::end("heapdrome-lgalloc-bench", outcome)
}

fn run(words: &[String]) -> Result<PagingReport, Failure> {
    let [text] = words else {
        return Err(Failure::Instructions(
            "heapdrome runs this program for `heapdrome paging`; it takes one argument of JSON"
                .into(),
        ));
    };
    let instructions: Instructions =
        serde_json::from_str(text).map_err(|error| Failure::Instructions(error.to_string()))?;
    for path in &instructions.join {
        // Zero stands for the writing process.
        std::fs::write(path, "0").map_err(|error| Failure::Join(path.clone(), error))?;
    }
    let mut report = match &instructions.job {
        Job::Probe => PagingReport::default(),
        Job::Throughput(job) => throughput::run(job)?,
        Job::Read(job) => read::run(job, harness::lock)?,
        Job::Recycle(job) => recycle::run(job, harness::lock)?,
        Job::Burst(job) => burst::run(job)?,
    };
    let seen = seen_limit();
    (report.memory_limit, report.swap_limit) = (seen.memory, seen.swap);
    report.processors = seen.processors;
    report.figures.extend(own_tally().figures());
    report.malloc = harness::malloc_object();
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_refused_in_one_line() {
        for words in [&[][..], &["nonsense"], &["{}"], &["{}", "{}"]] {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let failure = run(&words).expect_err("no instructions");
            assert_eq!(failure.status(), 2);
            assert_eq!(failure.to_string().lines().count(), 1, "{failure}");
        }
    }

    #[test]
    fn a_group_that_cannot_be_entered_ends_the_run() {
        let text = r#"{"join":["/nonexistent/cgroup.procs"],"job":{"kind":"probe"}}"#;
        let failure = run(&[text.to_owned()]).expect_err("no such group");
        assert!(failure.to_string().contains("/nonexistent/cgroup.procs"));
    }
}
