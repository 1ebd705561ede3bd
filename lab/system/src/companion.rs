//! How the companions of heapdrome speak: a result as one line on standard output, or one line on
//! standard error and a status.

use std::io::{self, Write as _};
use std::process::ExitCode;

/// The words of the command line.
pub fn words() -> Vec<String> {
    let words = std::env::args_os().skip(1);
    words
        .map(|word| word.to_string_lossy().into_owned())
        .collect()
}

/// Prints the one line that is the result.
///
/// # Errors
/// When standard output cannot be written to.
pub fn print(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// Writes a line of a program to standard error.
pub fn tell(program: &str, line: &str) {
    // Where the line cannot be written, the status must still tell.
    let _ = writeln!(io::stderr(), "{program}: {line}");
}

/// Ends a program, with a line on standard error where it failed.
pub fn end(program: &str, outcome: Result<(), (u8, String)>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err((status, line)) => {
            tell(program, &line);
            ExitCode::from(status)
        }
    }
}
