//! `heapdrome paging`: experiments with large objects, memory limits and swap.

mod experiments;

use heapdrome_engine::paging::{Opened, failure, ledger};
use heapdrome_paging::{Error, free_swap, size};
use heapdrome_schema::Bytes;

use crate::arguments::paging::{PagingAction, PagingArguments};
use crate::failure::Failure;
use crate::{output, progress};

/// Runs the requested experiment or action.
///
/// # Errors
/// Returns an error of one line if a requirement is missing, nothing could be measured, or
/// something could not be written.
pub fn paging(arguments: &PagingArguments) -> Result<(), Failure> {
    match &arguments.action {
        PagingAction::Check => check(),
        PagingAction::Throughput(arguments) => experiments::throughput(arguments),
        PagingAction::Random(arguments) => experiments::random(arguments),
        PagingAction::RatioSweep(arguments) => experiments::ratio_sweep(arguments),
        PagingAction::Strategies(arguments) => experiments::strategies(arguments),
        PagingAction::Clean => clean(),
    }
}

/// Prints which mechanisms for memory limits work on this machine, whether a processor quota works,
/// and how much swap is free. Leaves nothing behind.
fn check() -> Result<(), Failure> {
    let engine = progress::engine()?;
    let opened = Opened::new(&engine)?;
    let mut text = String::new();
    let attempts = opened.lab.attempts().map_err(failure)?;
    let works = attempts.iter().find(|attempt| attempt.reason.is_none());
    let works = works.map(|attempt| attempt.mechanism);
    for attempt in attempts {
        let outcome = match attempt.reason {
            None => "works: a child has read back its limit".to_owned(),
            Some(reason) => match attempt.fix {
                Some(fix) => format!("{reason}: {fix}"),
                None => reason,
            },
        };
        text.push_str(&format!("{:<12} {outcome}\n", attempt.mechanism.name()));
    }
    if let Some(mechanism) = works {
        let outcome = match opened.lab.try_quota(mechanism, 1.0) {
            Ok(()) => "works: a child has read it back".to_owned(),
            Err(Error::Interrupted) => return Err(Failure::Interrupted),
            Err(error) => error.to_string(),
        };
        text.push_str(&format!("{:<12} {outcome}\n", "cpu quota"));
    }
    let swap = match free_swap() {
        Bytes(0) => "none is free; add --swap file:8G to an experiment (root)".to_owned(),
        free => format!("{} is free", size(free)),
    };
    text.push_str(&format!("{:<12} {swap}\n", "swap"));
    for remark in &opened.remarks {
        text.push_str(&format!("{remark}\n"));
    }
    output::print(text.as_bytes())
}

/// Removes the leftovers of killed runs, and prints the removed and the kept items.
fn clean() -> Result<(), Failure> {
    let (_, leftovers) = ledger(&progress::engine()?)?;
    let mut text = String::new();
    for item in &leftovers.removed {
        text.push_str(&format!("removed {item}\n"));
    }
    for item in &leftovers.foreign {
        text.push_str(&format!("kept: {item}, which heapdrome did not create\n"));
    }
    if leftovers.living > 0 {
        text.push_str(&format!(
            "kept: items of running labs ({})\n",
            leftovers.living
        ));
    }
    if text.is_empty() && leftovers.failed.is_empty() {
        text.push_str("nothing to remove\n");
    }
    output::print(text.as_bytes())?;
    match leftovers.failed.into_iter().next() {
        None => Ok(()),
        Some(error) => Err(failure(error)),
    }
}
