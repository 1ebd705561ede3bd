//! Writing of files, so that a regular file is replaced completely or not at all.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Error, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// Failure to write a file, with the cause and a remedy.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {}", .path.display(), told("file", .folder, .source))]
pub struct WriteError {
    /// Path of the file, as the caller gave it.
    pub path: PathBuf,
    /// Folder of the file; if the path is a link to a regular file, folder of its target.
    pub folder: PathBuf,
    /// Error that the system returned.
    pub source: Error,
}

/// Failure to create a folder, with the cause and a remedy.
#[derive(Debug, thiserror::Error)]
#[error("cannot make the folder {}: {}", .path.display(), told("folder", .parent, .source))]
pub struct FolderError {
    /// Path of the folder, as the caller gave it.
    pub path: PathBuf,
    /// Nearest existing ancestor of the folder.
    pub parent: PathBuf,
    /// Error that the system returned.
    pub source: Error,
}

/// Creates a folder and all its missing ancestors.
///
/// # Errors
/// When the folder or an ancestor cannot be created.
pub fn make_folder(path: &Path) -> Result<(), FolderError> {
    std::fs::create_dir_all(path).map_err(|source| FolderError {
        path: path.to_owned(),
        parent: path
            .ancestors()
            .skip(1)
            .find(|above| above.exists())
            .map_or_else(|| PathBuf::from("."), Path::to_owned),
        source,
    })
}

/// Returns the cause and a remedy for the system's error on creating `thing`, a file or a folder,
/// in `folder`.
fn told(thing: &str, folder: &Path, source: &Error) -> String {
    let is_there = folder.is_dir();
    let folder = folder.display();
    match source.kind() {
        // Special folders such as /proc return `ENOENT` although they exist.
        ErrorKind::NotFound if is_there => {
            format!("{folder} does not accept one ({source}); name a {thing} in another")
        }
        ErrorKind::NotFound => {
            format!("there is no folder {folder}; create it, or name a {thing} in another")
        }
        ErrorKind::NotADirectory => format!("{folder} is not a folder; name a {thing} in one"),
        ErrorKind::AlreadyExists => "it exists and is not a folder; name another".to_owned(),
        ErrorKind::IsADirectory => "it is a folder; name a file".to_owned(),
        ErrorKind::PermissionDenied => {
            format!("no permission to write in {folder}; name a {thing} in another")
        }
        ErrorKind::ReadOnlyFilesystem => {
            format!("{folder} is read-only; name a {thing} in another")
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            format!("no space is left; free some, or name a {thing} elsewhere")
        }
        _ => source.to_string(),
    }
}

/// Writes `contents` to a temporary file in the folder of `path`, then renames it, so that a reader
/// never sees an incomplete file. A symbolic link to a regular file is kept, and its target is
/// replaced. A path that is not a regular file, such as a pipe, is written directly.
///
/// # Errors
/// When the file cannot be written. No temporary file is left behind.
pub fn write_atomically(path: &Path, contents: &[u8]) -> Result<(), WriteError> {
    // A failed write is already in the outer result, so the inner result is dropped.
    stream_atomically(path, |sink| sink.write_all(contents)).map(|_| ())
}

/// Writes the output of `make` to a file as [`write_atomically`] does, without holding all of the
/// output in memory. If `make` itself fails, returns its failure and does not replace the file. A
/// path that is not a regular file may have received a part of the output.
///
/// # Errors
/// When the file cannot be written, regardless of the outcome of `make`.
pub fn stream_atomically<E>(
    path: &Path,
    make: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<Result<(), E>, WriteError> {
    let target = replaced(path);
    let failed = |source| failed(path, target.as_deref(), source);
    let Some(target) = &target else {
        let special = OpenOptions::new().write(true).open(path);
        return fill(special.map_err(failed)?, make).map_err(failed);
    };
    let mut file = temporary_in(folder_of(target)).map_err(failed)?;
    // Write through the inner `File`, because errors of the temporary file contain its own name.
    let made = fill(file.as_file_mut(), make).map_err(failed)?;
    if made.is_ok() {
        file.as_file().sync_all().map_err(failed)?;
        file.persist(target).map_err(|error| failed(error.error))?;
    }
    Ok(made)
}

/// Lets `make` write into a sink through a buffer, and returns the outcome of `make`. A failure of
/// the sink takes precedence.
///
/// # Errors
/// When the sink cannot be written.
pub fn fill<E>(
    sink: impl Write,
    make: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> std::io::Result<Result<(), E>> {
    let mut noted = Noted { sink, error: None };
    let mut buffer = BufWriter::with_capacity(BUFFER, &mut noted);
    let made = make(&mut buffer);
    let flushed = buffer.flush();
    // Dropping the buffer itself would retry a failed write.
    drop(buffer.into_parts());
    match noted.error {
        Some(error) => Err(error),
        None => flushed.map(|()| made),
    }
}

/// Size in bytes of the buffer in front of a sink.
const BUFFER: usize = 64 << 10;

/// Sink that keeps its first error, because `make` may replace that error with its own.
struct Noted<W> {
    sink: W,
    error: Option<Error>,
}

impl<W: Write> Write for Noted<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.error.is_some() {
            return Err(ErrorKind::Other.into());
        }
        match self.sink.write(bytes) {
            Err(error) if error.kind() != ErrorKind::Interrupted => {
                let kind = error.kind();
                self.error = Some(error);
                Err(kind.into())
            }
            written => written,
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.sink.flush()
    }
}

/// Checks whether [`write_atomically`] could write `path` now.
///
/// # Errors
/// In the cases of [`write_atomically`], except that a lack of disk space and an unwritable special
/// file are not detected.
pub fn check_writable(path: &Path) -> Result<(), WriteError> {
    let target = replaced(path);
    let found = match &target {
        Some(target) => temporary_in(folder_of(target)).map(|_| ()),
        None if path.is_dir() => Err(ErrorKind::IsADirectory.into()),
        None => Ok(()),
    };
    found.map_err(|source| failed(path, target.as_deref(), source))
}

/// Returns the path of the file to replace: `path`, or its target if `path` is a link to a regular
/// file. Returns `None` if the existing item is not a regular file, such as a pipe or a folder.
fn replaced(path: &Path) -> Option<PathBuf> {
    match std::fs::metadata(path) {
        Ok(old) if old.is_file() && path.is_symlink() => std::fs::canonicalize(path).ok(),
        Ok(old) if !old.is_file() => None,
        Ok(_) | Err(_) => Some(path.to_owned()),
    }
}

fn failed(path: &Path, target: Option<&Path>, source: Error) -> WriteError {
    WriteError {
        path: path.to_owned(),
        folder: folder_of(target.unwrap_or(path)).to_owned(),
        source,
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Creates a temporary file with the permissions that the user's umask allows. Dropping it deletes
/// the file.
fn temporary_in(folder: &Path) -> std::io::Result<NamedTempFile<File>> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o666);
    tempfile::Builder::new().make_in(folder, |path| options.open(path))
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::fd::AsRawFd as _;

    use super::*;

    fn folder() -> tempfile::TempDir {
        // Keep `.tmp`, the prefix of temporary files, out of the folder's name, because a test
        // searches messages for it.
        let folder = tempfile::Builder::new().prefix("writing-").tempdir();
        folder.expect("a temporary folder")
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).expect("readable").flatten();
        let mut names: Vec<_> = entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_write_that_fails_leaves_nothing_and_names_what_was_asked_for() {
        let folder = folder();
        std::fs::write(folder.path().join("file"), "old").expect("written");
        let at = |name: &str| folder.path().join(name).display().to_string();
        let cases = [
            ("no/place.json", at("no"), "there is no folder"),
            ("file/place.json", at("file"), "is not a folder"),
            (".", at("."), "it is a folder"),
        ];
        for (name, place, words) in cases {
            let path = folder.path().join(name);
            let written = write_atomically(&path, b"new").map_err(|error| error.to_string());
            let checked = check_writable(&path).map_err(|error| error.to_string());
            assert_eq!(written, checked, "{name}");
            let told = written.expect_err(name);
            assert!(told.contains(&place) && told.contains(words), "{told}");
            assert!(!told.contains(".tmp"), "{told}");
        }
        assert_eq!(names(folder.path()), ["file"]);
    }

    #[test]
    fn each_reason_says_what_to_do() {
        let told = |kind: ErrorKind| told("file", Path::new("/srv/results"), &kind.into());
        let denied = told(ErrorKind::PermissionDenied);
        assert!(denied.starts_with("no permission to write in /srv/results;"));
        assert!(told(ErrorKind::StorageFull).contains("free some"));
        for kind in [ErrorKind::NotFound, ErrorKind::PermissionDenied] {
            assert!(!told(kind).contains("free some"));
        }
    }

    #[test]
    fn a_folder_that_takes_nothing_is_not_said_to_be_missing() {
        let folder = folder();
        // Error 2 is ENOENT. A raw error has the system's text.
        let source = Error::from_raw_os_error(2);
        let told = told("folder", folder.path(), &source);
        let words = format!(
            "{} does not accept one (No such file",
            folder.path().display()
        );
        assert!(told.starts_with(&words), "{told}");
        assert!(!told.contains("there is no folder"), "{told}");
    }

    #[test]
    fn a_place_is_told_as_it_was_named() {
        let folder = folder();
        std::fs::create_dir(folder.path().join("sub")).expect("a folder");
        std::fs::write(folder.path().join("old"), "").expect("written");
        for name in ["sub/../old", "sub/../new"] {
            let path = folder.path().join(name);
            assert_eq!(replaced(&path), Some(path));
        }
    }

    #[test]
    fn a_folder_that_cannot_be_made_says_where() {
        let folder = folder();
        let file = folder.path().join("file");
        std::fs::write(&file, "").expect("written");
        let told = |path: &Path| make_folder(path).map_err(|error| error.to_string());
        let above = format!("{} is not a folder; name a folder in one", file.display());
        let below = told(&file.join("a/b")).expect_err("below a file");
        assert!(
            below.starts_with("cannot make the folder ") && below.ends_with(&above),
            "{below}"
        );
        let same = told(&file).expect_err("a file");
        assert!(
            same.ends_with("it exists and is not a folder; name another"),
            "{same}"
        );
        let made = folder.path().join("x/y");
        assert!(told(&made).is_ok() && told(&made).is_ok() && made.is_dir());
    }

    #[test]
    fn what_a_link_leads_to_is_replaced_and_the_link_stays() {
        let folder = folder();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("kept")).expect("a folder");
        std::fs::write(at("kept/file"), "old").expect("written");
        std::os::unix::fs::symlink("kept/file", at("link")).expect("linked");
        write_atomically(&at("link"), b"new").expect("written");
        assert!(at("link").is_symlink());
        let read = std::fs::read_to_string(at("kept/file")).expect("it is there");
        assert_eq!(read, "new");
        assert_eq!(names(folder.path()), ["kept", "link"]);
    }

    #[test]
    fn what_is_no_file_is_written_directly() {
        let (mut reader, writer) = std::io::pipe().expect("a pipe");
        let path = PathBuf::from(format!("/proc/self/fd/{}", writer.as_raw_fd()));
        check_writable(&path).expect("it can be written");
        write_atomically(&path, b"new").expect("written");
        drop(writer);
        let mut read = String::new();
        reader.read_to_string(&mut read).expect("readable");
        assert_eq!(read, "new");
    }
}
