//! Lookup of a command's program, short forms of commands, a check for pipes among their words, and
//! fingerprints of files.

use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Folders of a process's own file descriptors.
const DESCRIPTORS: [&str; 2] = ["/dev/fd/", "/proc/self/fd/"];

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

/// Maximum length of a text on one line, in characters.
const LONGEST: usize = 60;

/// Puts a text on one line, and shortens it to [`LONGEST`] characters.
pub fn one_line(text: &str) -> String {
    let one_line: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    heapdrome_report::shorten(&one_line, LONGEST)
}

/// Checks that no word names a pipe that is open for reading, such as the process substitution
/// `<(COMMAND)` of a shell. The first run of a command would read it to its end, and all later runs
/// would find it empty.
///
/// # Errors
/// When a word names such a pipe.
pub fn check_repeatable<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<(), Failure> {
    let pipe = |word: &&str| descriptor(word).is_some_and(is_read_pipe);
    match words.into_iter().find(pipe) {
        None => Ok(()),
        Some(word) => Err(Failure::Usage(format!(
            "{word} is a pipe, which only the first run could read; write its content to a file, or \
             race sh -c 'LINE' with the pipe in the line"
        ))),
    }
}

/// Returns the file descriptor that a word names at its end, such as 63 for `--input=/dev/fd/63`.
fn descriptor(word: &str) -> Option<u32> {
    let number = |folder| word.rsplit_once(folder)?.1.parse().ok();
    DESCRIPTORS.into_iter().find_map(number)
}

/// Returns whether this process can read a pipe from the file descriptor. The link to a descriptor
/// has the permission to read if the descriptor is open for reading.
fn is_read_pipe(descriptor: u32) -> bool {
    let link = Path::new("/proc/self/fd").join(descriptor.to_string());
    let is_pipe = link.metadata().is_ok_and(|file| file.file_type().is_fifo());
    is_pipe
        && link
            .symlink_metadata()
            .is_ok_and(|link| link.mode() & 0o400 != 0)
}

fn runnable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// Metadata of a file that normally changes with its content. Comparing fingerprints avoids reading
/// the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

/// Returns the fingerprint of a file; `None` if its metadata cannot be read.
pub fn fingerprint(path: &Path) -> Option<Fingerprint> {
    let file = path.metadata().ok()?;
    Some(Fingerprint {
        device: file.dev(),
        inode: file.ino(),
        size: file.size(),
        modified: (file.mtime(), file.mtime_nsec()),
    })
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;

    use super::*;

    #[test]
    fn a_pipe_is_refused_only_where_it_is_read() {
        let (read, write) = std::io::pipe().expect("a pipe");
        let [read, write] = [read.as_raw_fd(), write.as_raw_fd()];
        for word in [
            format!("/dev/fd/{read}"),
            format!("--input=/proc/self/fd/{read}"),
        ] {
            let refused = check_repeatable([word.as_str()]).expect_err("a pipe");
            assert!(refused.to_string().starts_with(&word), "{refused}");
        }
        let outputs = [format!("/dev/fd/{write}"), "/dev/fd/x".to_owned()];
        let outputs = outputs.iter().map(String::as_str);
        check_repeatable(outputs).unwrap_or_else(|error| panic!("{error}"));
    }
}
