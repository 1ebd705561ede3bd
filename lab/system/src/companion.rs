//! Conventions for the output of heapdrome's companion programs: a result is one line on standard
//! output, and a failure is one line on standard error with an exit status.

use std::io::{self, Write as _};
use std::process::ExitCode;

/// Returns the arguments of the command line, without the program's name.
pub fn words() -> Vec<String> {
    let words = std::env::args_os().skip(1);
    words
        .map(|word| word.to_string_lossy().into_owned())
        .collect()
}

/// Prints a line on standard output.
///
/// # Errors
/// When standard output cannot be written.
pub fn print(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// Writes a line to standard error, with the program's name.
pub fn tell(program: &str, line: &str) {
    // If the line cannot be written, the exit status still shows the failure.
    let _ = writeln!(io::stderr(), "{program}: {line}");
}

/// Returns the exit status of a program. If the program failed, first writes the line of the
/// failure to standard error.
pub fn end(program: &str, outcome: Result<(), (u8, String)>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err((status, line)) => {
            tell(program, &line);
            ExitCode::from(status)
        }
    }
}
