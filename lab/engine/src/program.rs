//! Lookup of a command's program, and short names of commands.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Returns the executable file of `program`; `None` if there is none. A path is resolved from
/// `directory`. A name without a slash is searched for in `PATH`.
pub fn find(program: &str, directory: &Path) -> Option<PathBuf> {
    if program.contains('/') {
        let path = directory.join(program);
        return runnable(&path).then_some(path);
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders)
        .map(|folder| folder.join(program))
        .find(|path| runnable(path))
}

/// Formats a command on one short line, quoted for a shell.
pub fn short(command: &[String]) -> String {
    let words = command.iter().map(String::as_str);
    one_line(&shlex::try_join(words).unwrap_or_else(|_| command.join(" ")))
}

/// Puts a text on one line, and truncates it after sixty characters.
pub fn one_line(text: &str) -> String {
    let one_line: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    match one_line.char_indices().nth(60) {
        Some((end, _)) => format!("{}...", &one_line[..end]),
        None => one_line,
    }
}

fn runnable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// Metadata of a file that changes whenever the content does. Comparing fingerprints avoids reading
/// the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

/// Returns the fingerprint of a file; `None` if the file does not exist.
pub fn fingerprint(path: &Path) -> Option<Fingerprint> {
    let file = path.metadata().ok()?;
    Some(Fingerprint {
        device: file.dev(),
        inode: file.ino(),
        size: file.size(),
        modified: (file.mtime(), file.mtime_nsec()),
    })
}
