//! `heapdrome doctor`: reports the conditions of this machine that distort measurements, or runs
//! the self-test of heapdrome.

use heapdrome_measure::launcher::LauncherProgram;
use heapdrome_measure::{counters, selftest};
use heapdrome_schema::Bytes;

use crate::arguments::DoctorArguments;
use crate::failure::Failure;
use crate::output::{print, terminal};

/// Limit for the peak resident memory of `/bin/true` in the self-test.
const FLOOR: Bytes = Bytes(8 << 20);

/// Number of runs of `/bin/true` that the self-test times.
const OVERHEAD_RUNS: u32 = 300;

/// Prints the conditions of this machine, the most serious first, and the missing counters. With
/// `--self-test`, runs the self-test instead.
///
/// # Errors
/// Returns an error if the self-test cannot run or fails, or standard output cannot be written.
pub fn doctor(arguments: &DoctorArguments) -> Result<(), Failure> {
    if arguments.self_test {
        return self_test();
    }
    let conditions = heapdrome_machine::examine();
    let form = terminal();
    let mut text = heapdrome_report::doctor::render(&conditions, form.width, form.colour);
    let missing: Vec<_> = counters::available()
        .into_iter()
        .filter(|counter| counter.missing.is_some())
        .collect();
    if let Some(first) = missing.first() {
        let names: Vec<_> = missing
            .iter()
            .map(|counter| counter.name.as_str())
            .collect();
        text.push_str(&format!(
            "\nCounters that are not available here: {} ({})\n",
            names.join(", "),
            first.missing.as_deref().unwrap_or_default()
        ));
    }
    print(text.as_bytes())
}

/// Checks that heapdrome's peak memory does not affect the measurements, although the kernel passes
/// a parent's peak on to its children. Also prints the time that a measured run takes.
fn self_test() -> Result<(), Failure> {
    let launcher = LauncherProgram::of_this_executable();
    let seen = selftest::resident_of_true(&launcher).map_err(Failure::machine)?;
    let cost = selftest::overhead(&launcher, OVERHEAD_RUNS).map_err(Failure::machine)?;
    print(
        format!(
            "While heapdrome holds {}, the measured peak resident memory of /bin/true is\n  \
             {} as a child of heapdrome itself,\n  {} as a child of its launcher.\n\
             A run of /bin/true is measured as {}; until its result is on disk, {} pass\n\
             (medians of {} runs).\n",
            seen.held, seen.read_directly, seen.read, cost.measured, cost.whole, cost.runs
        )
        .as_bytes(),
    )?;
    if seen.read < FLOOR {
        Ok(())
    } else {
        Err(Failure::Machine(format!(
            "the launcher's own memory affects measurements: {} is not below {FLOOR}",
            seen.read
        )))
    }
}
