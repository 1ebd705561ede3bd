//! `heapdrome record`: records the allocations of a command into a trace.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use heapdrome_recorder::{RecorderError, Request, Summary};
use heapdrome_report::count;
use heapdrome_schema::{Bytes, Nanoseconds};
use heapdrome_system::interrupt;

use crate::arguments::{RecordArguments, is_stdout};
use crate::destinations::{Destinations, refuse_overwriting};
use crate::exec;
use crate::failure::Failure;
use crate::folders::Folders;
use crate::output;

/// Runs a command and writes its allocations into a trace.
///
/// # Errors
/// If the allocator is unavailable, if the command cannot be run or fails, if nothing could be
/// recorded, or if the trace cannot be written or, without `--force`, already exists.
pub fn record(arguments: &RecordArguments) -> Result<(), Failure> {
    let target = &arguments.output;
    let file = check_target(target, arguments.force)?;
    let mut environment = match &arguments.allocator {
        Some(allocator) => exec::environment(&exec::ready(allocator)?),
        None => std::collections::BTreeMap::new(),
    };
    let preload = environment.remove("LD_PRELOAD").map(Into::into);
    let folders = Folders::find()?;
    let request = Request {
        command: &arguments.command,
        environment: environment.into_iter().collect(),
        preload: preload.or_else(|| std::env::var_os("LD_PRELOAD")),
        allocator: arguments.allocator.clone().unwrap_or_default(),
        limit: arguments.limit,
        sample_bytes: arguments.sample.unwrap_or_default(),
        stack_bytes: arguments.stacks.unwrap_or_default(),
        version: env!("CARGO_PKG_VERSION"),
        folder: folders.cache.root(),
    };
    let interrupted = interrupt::flag().map_err(Failure::machine)?;
    let sink = Target {
        path: target,
        force: arguments.force,
        file,
    };
    let summary = heapdrome_recorder::record(&request, sink, &interrupted);
    let summary = summary.map_err(|error| match error {
        RecorderError::CannotRun { program, source } => exec::cannot_run(&program, &source),
        error => Failure::machine(error),
    })?;
    conclude(&summary, target)
}

/// Refuses a file that cannot become the trace. Returns the opened file if it is a pipe.
fn check_target(target: &Path, force: bool) -> Result<Option<File>, Failure> {
    if is_stdout(target) {
        return Err(Failure::usage(
            "the command may use standard output: name a file with -o",
        ));
    }
    refuse_overwriting(target, force)?;
    let pipe = open_pipe(target)?;
    Destinations::one("-o", target).check(&[])?;
    Ok(pipe)
}

/// Opens a named pipe for writing. Refuses a pipe without a reader, because opening it would block
/// until a process opens it for reading. Returns `None` for any other file, and for a missing file.
fn open_pipe(target: &Path) -> Result<Option<File>, Failure> {
    let is_pipe = |file: std::fs::Metadata| file.file_type().is_fifo();
    if !std::fs::metadata(target).is_ok_and(is_pipe) {
        return Ok(None);
    }
    let mut options = OpenOptions::new();
    options.write(true);
    let first = options.clone().custom_flags(libc::O_NONBLOCK).open(target);
    if matches!(&first, Err(error) if error.raw_os_error() == Some(libc::ENXIO)) {
        return Err(Failure::Usage(format!(
            "{} is a named pipe that no process reads; start its reader first, or name a file",
            target.display()
        )));
    }
    // Open the pipe again, now in blocking mode. `first` stays open meanwhile: the reader would see
    // end of file (EOF) if no process had the pipe open for writing. If the first attempt failed
    // for another reason, such as a missing permission, this one fails, too.
    let opened = options.open(target);
    opened.map(Some).map_err(|error| {
        Failure::machine(format_args!("cannot write {}: {error}", target.display()))
    })
}

/// The file of the trace, which is created when its first byte is written. A named pipe is already
/// open.
struct Target<'a> {
    path: &'a Path,
    force: bool,
    file: Option<File>,
}

impl Write for Target<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => {
                let mut options = OpenOptions::new();
                options.write(true);
                if self.force {
                    options.create(true).truncate(true);
                } else {
                    options.create_new(true);
                }
                options.open(self.path)?
            }
        };
        let written = file.write(bytes);
        self.file = Some(file);
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn conclude(summary: &Summary, target: &Path) -> Result<(), Failure> {
    for bypass in &summary.bypassed {
        output::tell(match bypass.known_pid() {
            None => format!("a process was not recorded: {}", bypass.reason),
            Some(pid) => format!(
                "process {pid} ({}) was not recorded: {}",
                bypass.program, bypass.reason
            ),
        });
    }
    if summary.gave_up > 0 {
        output::tell(format_args!(
            "{} of {} processes stopped recording before their end, because shared memory was full or \
             the collector was stopped",
            summary.gave_up, summary.processes
        ));
    }
    if summary.left_out > 0 {
        output::tell(format_args!(
            "not recorded: {}, because their process ran out of address space",
            count(summary.left_out, "sampled block")
        ));
    }
    tell_of_stacks(summary);
    if summary.processes == 0 {
        let _ = std::fs::remove_file(target);
        command_succeeded(summary)?;
        return Err(Failure::Usage(
            "nothing was recorded: the command called no allocation function that can be replaced, as \
             one that is statically linked or has its own malloc"
                .to_owned(),
        ));
    }
    let bytes = std::fs::metadata(target).map_or(0, |file| file.len());
    output::tell(format_args!(
        "recorded {} of {} in {}: {}",
        count(summary.operations, "call"),
        count(u64::from(summary.processes), "process"),
        target.display(),
        Bytes(bytes),
    ));
    output::tell(cost(summary));
    command_succeeded(summary)
}

fn tell_of_stacks(summary: &Summary) {
    if summary.stacks_lost > 0 {
        output::tell(format_args!(
            "at least {} lost: shared memory ran out, or a thread left a signal handler by longjmp",
            count(summary.stacks_lost, "stack")
        ));
    }
    if summary.stacks_unplaced > 0 {
        output::tell(format_args!(
            "{} an address in an unknown file: its process ended before heapdrome saw the file, or \
             the stack was damaged",
            match summary.stacks_unplaced {
                1 => "one stack has".to_owned(),
                stacks => format!("{} have", count(stacks, "stack")),
            }
        ));
    }
}

/// Formats the cost of a recording: the time of the command, the time that its threads waited for
/// the collector, the collector's time after the command, its processor time and its peak memory.
fn cost(summary: &Summary) -> String {
    let time = |duration: Duration| Nanoseconds::from(duration);
    let command = match summary.took {
        Some(took) => format!("the command took {}", time(took)),
        None => "the command runs on".to_owned(),
    };
    let waited = match summary.waited {
        Duration::ZERO => "no thread waited for the collector".to_owned(),
        waited => format!("its threads waited {} for the collector", time(waited)),
    };
    format!(
        "{command}; {waited}, which took {} afterwards, {} of processor time and {}",
        time(summary.afterwards),
        time(summary.processor_time),
        Bytes(summary.peak_resident),
    )
}

fn command_succeeded(summary: &Summary) -> Result<(), Failure> {
    match summary.ending {
        Some(ending) if !ending.success() => {
            Err(Failure::Baseline(format!("the command failed: {ending}")))
        }
        _ => Ok(()),
    }
}
