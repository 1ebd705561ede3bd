//! heapdrome: a racetrack for memory allocators.

mod allocators;
mod arguments;
mod cache;
mod compare;
mod destinations;
mod doctor;
#[cfg(test)]
mod documents;
mod examples;
mod exec;
mod help;
mod manual;
mod output;
mod paging;
mod profile;
mod progress;
mod race;
mod record;
mod replay;
mod report;
mod sampling;
mod show;
mod sources;
mod suite;
mod survive;
mod trace;
mod values;
mod workloads;

use std::process::ExitCode;

use clap::FromArgMatches;
use heapdrome_engine::{failure, folders, program};

use arguments::{Action, Arguments};
use failure::Failure;

/// Stack size of heapdrome's own work. It does not depend on the user's stack limit, which may be
/// small for the commands under test.
const STACK_BYTES: usize = 8 << 20;

fn main() -> ExitCode {
    // Must come first: a launcher must stay small and have one thread.
    heapdrome_measure::launcher::main_if_asked();
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
    match thread.spawn(run) {
        Ok(running) => running
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        // If no thread can be created, run on the current stack.
        Err(_) => run(),
    }
}

/// Runs the requested action, and returns the exit status.
fn run() -> ExitCode {
    match read_arguments().and_then(act) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::tell(&failure);
            ExitCode::from(failure.exit_status())
        }
    }
}

/// Parses the command line. Returns a mistake as an error of one line. Ends the process after
/// printing help or the version.
fn read_arguments() -> Result<Arguments, Failure> {
    use clap::error::ErrorKind;
    let read = help::command().try_get_matches();
    let read = read.and_then(|matches| Arguments::from_arg_matches(&matches));
    read.map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => end(&error),
        _ => Failure::Usage(values::mistake(&error)),
    })
}

/// Prints help or the version and ends the process; returns only if standard output cannot be
/// written.
fn end(help: &clap::Error) -> Failure {
    match output::printed(help.print()) {
        Err(failure) if !help.use_stderr() => failure,
        _ => std::process::exit(help.exit_code()),
    }
}

fn act(arguments: Arguments) -> Result<(), Failure> {
    match arguments.action {
        Action::Race(arguments) => race::race(&arguments.settled()?),
        Action::Show(arguments) => show::show(&arguments),
        Action::Compare(arguments) => compare::compare(&arguments),
        Action::Report(arguments) => report::report(&arguments),
        Action::Plot(arguments) => report::plot(&arguments),
        Action::Profile(arguments) => profile::profile(&arguments),
        Action::Allocators(arguments) => allocators::allocators(arguments),
        Action::Exec(arguments) => exec::exec(&arguments),
        Action::Record(arguments) => record::record(&arguments),
        Action::Replay(arguments) => replay::replay(&arguments),
        Action::Doctor(arguments) => doctor::doctor(&arguments),
        Action::Workloads(arguments) => workloads::workloads(&arguments),
        Action::Suite(arguments) => suite::suite(arguments),
        Action::Survive(arguments) => survive::survive(&arguments),
        Action::Paging(arguments) => paging::paging(&arguments),
        Action::Trace(arguments) => trace::trace(&arguments.action),
        Action::Cache(arguments) => cache::cache(arguments.action),
        Action::Man(arguments) => manual::man(&arguments),
        Action::Completions(arguments) => manual::completions(&arguments),
    }
}
