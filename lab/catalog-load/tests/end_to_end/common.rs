//! Functions that the tests of the command line share.

use std::path::Path;
use std::process::{Command, Output};

/// Creates a command that runs the workload's binary with some arguments.
pub fn catalog(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_catalog"));
    command.args(words);
    command
}

pub fn output(command: &mut Command) -> Output {
    command.output().expect("the command starts")
}

/// Runs a command that must succeed, and returns its standard output.
pub fn success(command: &mut Command) -> String {
    let done = output(command);
    assert!(done.status.success(), "{}", stderr(&done));
    String::from_utf8(done.stdout).expect("text")
}

/// Runs a command that must fail with `status` and print only one line, to standard error. Returns
/// the line.
pub fn refusal(status: i32, command: &mut Command) -> String {
    let done = output(command);
    let line = stderr(&done);
    assert_eq!(done.status.code(), Some(status), "{line}");
    assert_eq!(line.trim_end().lines().count(), 1, "{line}");
    assert!(done.stdout.is_empty());
    line
}

/// Runs a command that must fail with `status` after printing its memory estimate. Returns the line
/// that follows the estimate.
pub fn failure(status: i32, command: &mut Command) -> String {
    let done = output(command);
    let text = stderr(&done);
    assert_eq!(done.status.code(), Some(status), "{text}");
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines[0].contains(" of memory at its peak "), "{text}");
    assert!(done.stdout.is_empty());
    lines[1].to_owned()
}

/// Returns the standard error of a command.
pub fn stderr(done: &Output) -> String {
    String::from_utf8_lossy(&done.stderr).into_owned()
}

/// Returns the sorted names in a folder.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("readable").flatten();
    let name = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    let mut names: Vec<_> = entries.map(name).collect();
    names.sort();
    names
}

pub fn text(path: &Path) -> &str {
    path.to_str()
        .expect("the temporary folder has a plain name")
}
