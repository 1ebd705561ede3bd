//! Export of traces to other formats.

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::path::Path;

use heapdrome_schema::grouped;
use heapdrome_trace::{Chunk, Exported, Foreign, export as export_foreign, text};

use super::{Source, check_output, of};
use crate::arguments::is_stdout;
use crate::arguments::trace::{ExportArguments, ExportFormat};
use crate::failure::Failure;
use crate::output;

/// Writes a trace in another format.
///
/// # Errors
/// When the trace cannot be read or lacks the process, or the file cannot be written. Also when
/// binary data would go to a terminal. If the format supports only one process, also when the trace
/// has several and none is selected.
pub fn export(arguments: &ExportArguments) -> Result<(), Failure> {
    let (path, output) = (arguments.trace.as_path(), arguments.output.as_path());
    let mut source = Source::open(path)?;
    check_output(output, arguments.force, &[path])?;
    let format = match arguments.to {
        ExportFormat::Text => None,
        ExportFormat::Android => Some(Foreign::Android),
        ExportFormat::MallocBench => Some(Foreign::MallocBench),
    };
    if format == Some(Foreign::MallocBench) && is_stdout(output) && std::io::stdout().is_terminal()
    {
        let told = "malloc-bench is no text for a terminal; name a file with --output";
        return Err(Failure::usage(told));
    }
    let process = match (format, arguments.process) {
        (None, None) => None,
        (_, asked) => Some(process(path, asked)?),
    };
    let mut exported = Exported::default();
    output::stream(output, |sink| {
        let written = match (format, process) {
            (Some(format), Some(process)) => {
                export_foreign(&mut source.reader, process, format, sink)
            }
            (_, process) => text(&mut source.reader, process, sink),
        };
        exported = written.map_err(of(path))?;
        Ok(())
    })?;
    tell(output, &exported);
    source.warn_if_cut_off();
    Ok(())
}

/// Returns the process to write: the requested one, or the only one that has operations. Fails if
/// there is no such process.
fn process(path: &Path, asked: Option<u32>) -> Result<u32, Failure> {
    let mut source = Source::open(path)?;
    let mut found = BTreeSet::new();
    while let Some(chunk) = source.reader.next_chunk().map_err(of(path))? {
        if let Chunk::Operations(operations) = chunk {
            found.insert(operations.process);
        }
    }
    let numbers: Vec<_> = found.iter().map(u32::to_string).collect();
    let known = numbers.join(", ");
    let path = path.display();
    Err(Failure::Usage(match (asked, &numbers[..]) {
        (_, []) => format!("{path} has no operations"),
        (Some(process), _) if found.contains(&process) => return Ok(process),
        (None, [_]) => return Ok(found.into_iter().next().unwrap_or_default()),
        (Some(process), _) => {
            format!("{path} has no operations of process {process}; there are {known}")
        }
        (None, _) => format!(
            "{path} has operations of the processes {known}; choose one with --process, since the \
             format knows one"
        ),
    }))
}

/// Reports the written file, and the data that the format cannot express.
fn tell(output: &Path, exported: &Exported) {
    let left_out = match (exported.failed, exported.foreign) {
        (0, 0) => String::new(),
        (failed, foreign) => format!(
            "; left out: {} failed calls, {} frees of blocks that the trace does not know",
            grouped(failed),
            grouped(foreign)
        ),
    };
    if is_stdout(output) && left_out.is_empty() {
        return;
    }
    let name = match is_stdout(output) {
        true => "standard output".to_owned(),
        false => output.display().to_string(),
    };
    let operations = grouped(exported.operations);
    output::tell(format!("wrote {name}: {operations} operations{left_out}"));
}
