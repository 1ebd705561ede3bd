//! Short process: the cost of starting and ending a program that allocates little.

mod texts;

pub(crate) use texts::DESCRIPTION;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use heapdrome_schema::{Ending, WorkloadReport};

use crate::account::Account;
use crate::array::Array;
use crate::caller::Tally;
use crate::latency::Latency;
use crate::random_blocks::{Blocks, Kind, Sizes, Slot};
use crate::report::Outcome;
use crate::threads::{self, Halt, Team};
use crate::{Failure, Heap, Libc, Parameters, Refusal};
use heapdrome_system::child::ending;
use heapdrome_system::forks;
use heapdrome_system::process::OfChildren;

/// First word of the command line of a child.
const CHILD: &str = "short-process-child";

/// Exit status of a child that found a failure.
const FAILED: u8 = 1;

/// Returns the number of blocks that a child allocates.
fn blocks(parameters: &Parameters) -> u64 {
    let bytes = (parameters.value("kibibytes") << 10) as f64;
    (bytes / Sizes::logarithmic(parameters).mean()) as u64
}

/// Estimates the peak memory of all children that are alive.
fn needs(parameters: &Parameters) -> u64 {
    let arrays = blocks(parameters).saturating_mul(size_of::<Slot>() as u64);
    let of_each = (parameters.value("kibibytes") << 10).saturating_add(arrays);
    of_each.saturating_mul(parameters.value("threads"))
}

/// Returns the number of operations of a run: the number of processes that it starts.
pub(crate) fn operations(parameters: &Parameters) -> u64 {
    parameters
        .value("processes")
        .saturating_mul(parameters.value("threads"))
}

/// Runs the children with this program, which calls [`child`] with its command line.
pub(crate) fn run<H: Heap>(parameters: &Parameters, _heap: &H) -> Result<WorkloadReport, Failure> {
    let program = std::env::current_exe().map_err(|error| Failure::Process(error.to_string()))?;
    run_program(parameters, &program)
}

fn run_program(parameters: &Parameters, program: &Path) -> Result<WorkloadReport, Failure> {
    let account = Account::default();
    let timed = parameters.value("latency") == 1;
    let before = OfChildren::read();
    let finished = threads::run(
        parameters.value("threads") as usize,
        |_| Ok(Starter::new(program, parameters, timed)),
        |_, starter, team| starter.work(parameters.value("processes"), team),
        Starter::finish,
    )?;
    let used = OfChildren::read();
    let mut outcome = Outcome::of(finished, &account, 0);
    outcome.add_children(used.since(before), operations(parameters));
    outcome
        .own
        .push(("child_peak_resident_bytes", used.peak_resident as f64));
    Ok(outcome.report(parameters))
}

/// Thread that starts one child after another.
struct Starter {
    program: PathBuf,
    words: Vec<String>,
    latency: Option<Latency>,
    started: u64,
}

impl Starter {
    fn new(program: &Path, parameters: &Parameters, timed: bool) -> Self {
        Self {
            program: program.to_owned(),
            words: parameters.words(),
            latency: Latency::when(timed),
            started: 0,
        }
    }

    fn work(&mut self, processes: u64, team: &Team) -> Result<(), Halt> {
        for _ in 0..processes {
            team.go_on()?;
            let (program, words) = (&self.program, &self.words);
            match &mut self.latency {
                None => one_child(program, words),
                Some(latency) => latency.of_malloc(|| one_child(program, words)),
            }?;
            self.started += 1;
        }
        Ok(())
    }

    fn finish(self) -> Tally {
        Tally {
            operations: self.started,
            checksum: 0,
            latency: self.latency,
        }
    }
}

/// Starts a child and waits until it ends.
fn one_child(program: &Path, words: &[String]) -> Result<(), Failure> {
    let mut command = Command::new(program);
    command.arg(CHILD).args(words);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let status = command.status();
    let status = status.map_err(|error| Failure::Process(error.to_string()))?;
    match ending(status) {
        Ending::Exited(0) => Ok(()),
        Ending::Killed(libc::SIGALRM) => Err(Failure::Child(Ending::TimedOut.to_string())),
        other => Err(Failure::Child(other.to_string())),
    }
}

/// Runs this process as a child of short-process. Returns `None` if these words do not ask for a
/// child. After a failure, returns the exit status and a line that describes the failure.
pub fn child(words: &[String]) -> Option<Result<(), (u8, String)>> {
    let (first, rest) = words.split_first()?;
    if first != CHILD {
        return None;
    }
    forks::limit_life();
    let refused = |refusal: Refusal| (2, refusal.to_string());
    let parameters = Parameters::parse(&DESCRIPTION, rest).map_err(refused);
    Some(
        parameters.and_then(|parameters| {
            live(&parameters).map_err(|failure| (FAILED, failure.to_string()))
        }),
    )
}

/// Allocates the blocks of a child, checks them, and leaves them to the end of the process.
fn live(parameters: &Parameters) -> Result<(), Failure> {
    let kind = Kind::new(Sizes::logarithmic(parameters), parameters);
    let account = Account::default();
    let mut blocks_of_child = Blocks::new(&kind, &Libc, &account, 0);
    let mut slots = Array::<Slot>::new(blocks(parameters) as usize)?;
    for slot in slots.iter_mut() {
        *slot = blocks_of_child.allocate()?;
    }
    for slot in slots.iter() {
        // SAFETY: every slot holds a block that was allocated above and is in use; this process
        // has one thread.
        unsafe { blocks_of_child.rewrite(*slot) }?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(words: &[&str]) -> Parameters {
        Parameters::parse(&DESCRIPTION, words).unwrap()
    }

    #[test]
    fn every_process_is_started_and_counted() {
        let parameters = parameters(&["processes=7", "threads=3", "latency=1"]);
        let report = run_program(&parameters, Path::new("/bin/true")).unwrap();
        assert_eq!(report.operations, 21);
        assert_eq!(Some(21), crate::operations(&parameters));
        for figure in [
            "children_cpu_s",
            "child_peak_resident_bytes",
            "latency_malloc_max_ns",
        ] {
            assert!(report.figures[figure] > 0.0, "{figure}");
        }
    }

    #[test]
    fn a_child_that_fails_ends_the_run() {
        let outcome = |program| run_program(&parameters(&["threads=2"]), Path::new(program));
        let failed = outcome("/bin/false").unwrap_err();
        assert_eq!(failed, Failure::Child("exit status 1".to_owned()));
        let missing = outcome("/no/such/program");
        assert!(matches!(missing, Err(Failure::Process(_))), "{missing:?}");
    }

    #[test]
    fn a_child_allocates_as_many_bytes_as_asked_for() {
        assert_eq!(blocks(&parameters(&["kibibytes=0"])), 0);
        let parameters = parameters(&["kibibytes=1024"]);
        let bytes = blocks(&parameters) as f64 * Sizes::logarithmic(&parameters).mean();
        assert!((bytes / f64::from(1 << 20) - 1.0).abs() < 0.001, "{bytes}");
        assert_eq!(live(&parameters), Ok(()));
    }

    #[test]
    fn other_command_lines_ask_for_no_child() {
        assert_eq!(child(&[]), None);
        assert_eq!(child(&["short-process".to_owned()]), None);
    }
}
