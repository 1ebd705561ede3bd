//! `heapdrome trace info`: prints a summary of a trace.

use std::path::Path;
use std::time::{Duration, SystemTime};

use heapdrome_engine::workload::trace::built_in;
use heapdrome_schema::{Bytes, Nanoseconds, grouped};
use heapdrome_trace::{Architecture, Ending, ProcessSummary, Recording, Summary, summarize};

use super::{Source, of};
use crate::failure::Failure;
use crate::output;

/// Prints a summary of a trace.
///
/// # Errors
/// When the trace cannot be read.
pub fn info(path: &Path) -> Result<(), Failure> {
    let mut source = Source::open(path)?;
    let summary = summarize(&mut source.reader).map_err(of(path))?;
    let reader = &source.reader;
    let mut lines = vec![fact("command", command(path, reader.recording()))];
    lines.extend(recorded(
        reader.recording(),
        reader.architecture(),
        &summary,
    ));
    lines.extend(sizes(&summary));
    lines.extend(stacks(reader.recording(), &summary));
    lines.push(String::new());
    lines.extend(table(&summary));
    lines.extend(bypassed(&summary));
    output::print(format!("{}\n", lines.join("\n")).as_bytes())
}

/// Formats a line: a label, followed by facts.
fn fact(label: &str, facts: impl std::fmt::Display) -> String {
    format!("{label:<12} {facts}")
}

/// Returns the recorded command. For a built-in trace, returns the command and the program from its
/// manifest entry, because the recorded command of a server is a shell line that also writes the
/// server's process ID to a file.
fn command(path: &Path, recording: &Recording) -> String {
    if let Some(entry) = built_in(path) {
        let lines: Vec<_> = entry.command.lines().collect();
        return format!("{} ({})", lines.join("; "), entry.program);
    }
    // The command of a merged trace consists of several commands, separated by `&`.
    let commands = recording.command.split(|word| word == "&");
    let commands: Vec<_> = commands.map(quoted).collect();
    commands.join(" & ")
}

fn recorded(recording: &Recording, machine: Architecture, summary: &Summary) -> Vec<String> {
    let began = SystemTime::UNIX_EPOCH + Duration::from_nanos(recording.began);
    let began = humantime::format_rfc3339_seconds(began);
    let machine = match machine {
        Architecture::X86_64 => "x86-64",
        Architecture::Aarch64 => "aarch64",
        Architecture::Other(_) => "an unknown processor",
    };
    let mut lines = vec![fact(
        "recorded",
        format!(
            "{began} for {}, by heapdrome {}, on {machine} with pages of {}",
            Nanoseconds(summary.last.0),
            recording.heapdrome,
            Bytes(recording.page_bytes),
        ),
    )];
    if !recording.allocator.is_empty() {
        lines.push(fact("allocator", &recording.allocator));
    }
    lines.push(fact("state", state(summary)));
    lines
}

/// Quotes a command for a shell.
fn quoted(words: &[String]) -> String {
    let quoted = shlex::try_join(words.iter().map(String::as_str));
    quoted.unwrap_or_else(|_| words.join(" "))
}

fn state(summary: &Summary) -> String {
    match summary.ending {
        Ending::CutOff { offset } => format!(
            "cut off: all up to byte {} is here, the end is missing",
            grouped(offset)
        ),
        Ending::Complete(totals) => {
            let repaired = grouped(totals.repaired);
            // A trace that was cut from another one lacks the collector's time.
            let time = match totals.collector_time {
                0 => String::new(),
                time => format!(
                    ", and recording took {} of processor time",
                    Nanoseconds(time)
                ),
            };
            format!("complete; {repaired} operations were put back in order{time}")
        }
    }
}

fn sizes(summary: &Summary) -> Vec<String> {
    let operations = summary.operations;
    let each = |bytes: u64| bytes as f64 / operations.max(1) as f64;
    vec![
        fact("operations", grouped(operations)),
        fact(
            "size",
            format!(
                "{}; {:.2} bytes an operation before compression, {:.2} after",
                Bytes(summary.bytes),
                each(summary.operation_content),
                each(summary.operation_bytes)
            ),
        ),
    ]
}

/// Returns lines that describe the sampling of blocks and the stacks, if there are any.
fn stacks(recording: &Recording, summary: &Summary) -> Vec<String> {
    let mut lines = Vec::new();
    let sample = |bytes: u64| format!("one block for every {} requested", Bytes(bytes));
    if recording.sample_bytes > 0 {
        lines.push(fact("sample", sample(recording.sample_bytes)));
    }
    if recording.stack_bytes > 0 || summary.stacks > 0 {
        let of = match recording.stack_bytes {
            0 | 1 => String::new(),
            bytes => format!("; {}", sample(bytes.max(recording.sample_bytes))),
        };
        lines.push(fact(
            "stacks",
            format!(
                "{} operations have one of {} stacks, in code of {} files{of}",
                grouped(summary.with_stack),
                grouped(summary.stacks),
                grouped(summary.modules),
            ),
        ));
    }
    lines
}

const HEADINGS: [&str; 8] = [
    "process",
    "pid",
    "threads",
    "operations",
    "blocks",
    "live at end",
    "peak live",
    "program",
];

/// Returns one row for each process, in columns as narrow as possible.
fn table(summary: &Summary) -> Vec<String> {
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    let processes = &summary.processes;
    rows.extend(
        processes
            .iter()
            .map(|(number, process)| row(*number, process)),
    );
    let widths: Vec<_> = (0..HEADINGS.len())
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max())
        .map(Option::unwrap_or_default)
        .collect();
    let line = |row: &[String; 8]| {
        let (program, numbers) = row.split_last().expect("eight columns");
        let numbers = numbers.iter().zip(&widths);
        let numbers: Vec<_> = numbers
            .map(|(cell, width)| format!("{cell:>width$}"))
            .collect();
        format!("{}  {program}", numbers.join("  "))
    };
    rows.iter().map(line).collect()
}

fn row(number: u32, process: &ProcessSummary) -> [String; 8] {
    let pid = process.process.as_ref();
    let mut program = pid.map_or("?", |it| &it.program).to_owned();
    match process.finish {
        Some(finish) if finish.gave_up => program.push_str(" (not recorded to its end)"),
        Some(_) => {}
        None => program.push_str(" (no end in the trace)"),
    }
    [
        number.to_string(),
        pid.map_or("?".to_owned(), |it| it.pid.to_string()),
        grouped(process.threads),
        grouped(process.operations),
        grouped(process.blocks),
        Bytes(process.live_bytes).to_string(),
        Bytes(process.peak_live_bytes).to_string(),
        program,
    ]
}

/// Returns a line with the reason for each process that was not recorded.
fn bypassed(summary: &Summary) -> Vec<String> {
    let line = |it: &heapdrome_trace::Bypass| match it.known_pid() {
        None => format!("not recorded: a process: {}", it.reason),
        Some(pid) => format!("not recorded: {} (pid {pid}): {}", it.program, it.reason),
    };
    summary.bypassed.iter().map(line).collect()
}
