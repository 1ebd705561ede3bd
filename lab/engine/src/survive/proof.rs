//! One unmeasured run that shows whether the allocator serves the command.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use heapdrome_measure::command_environment;
use heapdrome_schema::{Coverage, Ending, Entrant};
use heapdrome_witness::{Request, Witness};

use crate::failure::Failure;
use crate::race::{not_served, witness_failure};

/// Returns the reason why the run does not show that `entrant` serves the command: another
/// allocator serves the command, or the command fails or traces programs. Returns `None` if
/// `entrant` serves the command.
///
/// # Errors
/// When the command cannot be traced, or the user interrupts.
pub fn missing(
    command: &[String],
    entrant: &Entrant,
    interrupt: &Arc<AtomicBool>,
) -> Result<Option<String>, Failure> {
    let scratch = tempfile::tempdir().map_err(Failure::machine)?;
    let witness = Witness::new(scratch.path()).map_err(witness_failure)?;
    let request = Request {
        command: command.to_vec(),
        environment: command_environment(entrant),
        entrant: entrant.clone(),
        directory: None,
        stdin: None,
        stdout: None,
        stderr: None,
        timeout: None,
        interrupt: Arc::clone(interrupt),
    };
    let session = witness.start(&request).map_err(witness_failure)?;
    let report = session.finish().map_err(witness_failure)?;
    if let Some(program) = report.refused_tracer {
        return Ok(Some(format!(
            "{program} traces programs itself, but heapdrome traces them, too, and the kernel allows one tracer for \
             each process, so the object that serves it is unknown; run survive on the traced program itself"
        )));
    }
    Ok(match (report.ending, report.proof.coverage) {
        (Ending::Exited(0), Coverage::TooLittle) => Some(not_served(&report.proof)),
        (Ending::Exited(0), _) => None,
        (ending, _) => Some(format!("the command fails without a limit: {ending}")),
    })
}
