//! Journal of a race. Every line is on disk before the race continues.

mod list;

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use heapdrome_schema::JournalLine;
use heapdrome_system::lock;

pub use list::{RaceSummary, latest, list, unfinished};

/// Version of the journal's format that this heapdrome writes, and the newest version that it
/// reads.
pub const SCHEMA: u32 = 1;

/// Name of the journal within a race's folder.
pub const FILE_NAME: &str = "journal.jsonl";

/// Reason why an operation on a journal failed.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The journal could not be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// Path of the journal.
        path: PathBuf,
        /// Error that the system returned.
        source: std::io::Error,
    },
    /// The journal, or its folder, could not be created.
    #[error("cannot make {path}: {source}; set XDG_STATE_HOME to a folder that you may write to")]
    Make {
        /// Path of the journal or its folder.
        path: PathBuf,
        /// Error that the system returned.
        source: std::io::Error,
    },
    /// The journal could not be written or locked.
    #[error("cannot write {path}: {source}; the race stops; recorded runs are kept")]
    Write {
        /// Path of the journal.
        path: PathBuf,
        /// Error that the system returned.
        source: std::io::Error,
    },
    /// The folder already contains a race.
    #[error("{path} already contains a race; resume it or name another folder")]
    Exists {
        /// Path of the journal.
        path: PathBuf,
    },
    /// Another heapdrome is writing this journal.
    #[error("another heapdrome runs the race in {path}; wait for it or end it")]
    Locked {
        /// Path of the journal.
        path: PathBuf,
    },
    /// A complete line cannot be parsed, or the first line is not the plan.
    #[error("{path} is damaged at line {line} ({reason}); start a new race")]
    Damaged {
        /// Path of the journal.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// Error that the parser returned, or description of another fault.
        reason: String,
    },
    /// The journal was written by a newer heapdrome.
    #[error("{path} has schema {found}, and this heapdrome reads up to {SCHEMA}; use a newer one")]
    NewerSchema {
        /// Path of the journal.
        path: PathBuf,
        /// Schema version in the journal.
        found: u64,
    },
}

/// An open journal, locked against other writers.
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    /// Total length of the complete lines, in bytes.
    length: u64,
}

impl Journal {
    /// Creates a journal in `folder` with the line `first`. The folder is created if needed.
    pub(crate) fn create(folder: &Path, first: &JournalLine) -> Result<Self, JournalError> {
        let path = folder.join(FILE_NAME);
        let failed = |source: io::Error| JournalError::Write {
            path: path.clone(),
            source,
        };
        let new: Vec<_> = folder.ancestors().take_while(|at| !at.exists()).collect();
        std::fs::create_dir_all(folder).map_err(|source| JournalError::Make {
            path: folder.to_owned(),
            source,
        })?;
        let file = OpenOptions::new().append(true).create_new(true).open(&path);
        let file = file.map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => JournalError::Exists { path: path.clone() },
            _ => JournalError::Make {
                path: path.clone(),
                source,
            },
        })?;
        lock(&file, &path)?;
        let mut journal = Self {
            path: path.clone(),
            file,
            length: 0,
        };
        journal.append(first)?;
        // The directory entries of the file and of the created folders must be on disk, too.
        sync_folder(folder).map_err(failed)?;
        for holder in new.into_iter().filter_map(Path::parent) {
            match sync_folder(holder) {
                // A folder without read permission may be writable, but it cannot be opened for
                // syncing.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
                other => other.map_err(failed)?,
            }
        }
        Ok(journal)
    }

    /// Opens the journal in `folder` to continue it. Removes an incomplete last line, which a
    /// killed writer leaves.
    pub(crate) fn open(folder: &Path) -> Result<(Self, Vec<JournalLine>), JournalError> {
        let path = folder.join(FILE_NAME);
        let file = OpenOptions::new().read(true).append(true).open(&path);
        let file = file.map_err(|source| JournalError::Read {
            path: path.clone(),
            source,
        })?;
        lock(&file, &path)?;
        let (lines, length) = read(&path)?;
        let mut journal = Self { path, file, length };
        journal.cut()?;
        Ok((journal, lines))
    }

    /// Adds a line, and returns when it is on disk. After a failure, removes the part of the line
    /// that was written.
    pub(crate) fn append(&mut self, line: &JournalLine) -> Result<(), JournalError> {
        let mut text = serde_json::to_vec(line).map_err(|error| self.failed(error.into()))?;
        text.push(b'\n');
        let written = self
            .file
            .write_all(&text)
            .and_then(|()| self.file.sync_data());
        if let Err(source) = written {
            // If this fails, an incomplete line is removed when the journal is opened again.
            let _ = self.cut();
            return Err(self.failed(source));
        }
        self.length += text.len() as u64;
        Ok(())
    }

    fn cut(&mut self) -> Result<(), JournalError> {
        let cut = self
            .file
            .set_len(self.length)
            .and_then(|()| self.file.sync_data());
        cut.map_err(|source| self.failed(source))
    }

    fn failed(&self, source: io::Error) -> JournalError {
        JournalError::Write {
            path: self.path.clone(),
            source,
        }
    }
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Number of attempts to take a lock. A process that lists races holds locks briefly.
const LOCK_TRIES: u32 = 10;

/// Locks the journal for this process. The kernel releases the lock when the journal is closed or
/// the process ends.
fn lock(file: &File, path: &Path) -> Result<(), JournalError> {
    for _ in 0..LOCK_TRIES {
        let tried = lock::try_exclusive(file);
        if tried.map_err(|source| JournalError::Write {
            path: path.to_owned(),
            source,
        })? {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Err(JournalError::Locked {
        path: path.to_owned(),
    })
}

/// Returns whether a heapdrome is writing the journal at `path`.
pub(super) fn is_locked(path: &Path) -> bool {
    // On a file system without locks, no process can hold a lock.
    File::open(path)
        .and_then(|file| lock::try_shared(&file))
        .is_ok_and(|free| !free)
}

/// Reads the complete lines of a journal, and returns them with their total length in bytes.
pub(super) fn read(path: &Path) -> Result<(Vec<JournalLine>, u64), JournalError> {
    let text = std::fs::read(path).map_err(|source| JournalError::Read {
        path: path.to_owned(),
        source,
    })?;
    let whole = text
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(0, |last| last + 1);
    let mut lines = Vec::new();
    for (place, line) in text[..whole]
        .split_inclusive(|&byte| byte == b'\n')
        .enumerate()
    {
        if place == 0 {
            check_schema(path, line)?;
        }
        let parsed = serde_json::from_slice(line)
            .map_err(|error| damaged(path, place + 1, error.to_string()))?;
        if place == 0 && !matches!(parsed, JournalLine::Plan { .. }) {
            let reason = "the first line is not the plan".to_owned();
            return Err(damaged(path, place + 1, reason));
        }
        lines.push(parsed);
    }
    if lines.is_empty() {
        return Err(damaged(path, 1, "there is no plan".to_owned()));
    }
    Ok((lines, whole as u64))
}

fn damaged(path: &Path, line: usize, reason: String) -> JournalError {
    JournalError::Damaged {
        path: path.to_owned(),
        line,
        reason,
    }
}

/// Checks the schema before any other field, because a line of a newer schema may have unknown
/// fields.
fn check_schema(path: &Path, line: &[u8]) -> Result<(), JournalError> {
    let value: serde_json::Value = serde_json::from_slice(line).unwrap_or_default();
    match value.get("schema").and_then(serde_json::Value::as_u64) {
        Some(found) if found > u64::from(SCHEMA) => Err(JournalError::NewerSchema {
            path: path.to_owned(),
            found,
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use heapdrome_schema::Machine;

    use super::*;
    use crate::plan_for_tests::plan_of;

    pub(super) fn first() -> JournalLine {
        let plan = Box::new(plan_of(&["true"], 2));
        JournalLine::Plan {
            schema: SCHEMA,
            plan,
            machine: Box::new(Machine::default()),
        }
    }

    pub(super) fn finished(reason: &str) -> JournalLine {
        JournalLine::Finished {
            reason: reason.to_owned(),
        }
    }

    fn add(folder: &Path, text: &[u8]) {
        let mut file = OpenOptions::new()
            .append(true)
            .open(folder.join(FILE_NAME))
            .expect("a journal");
        file.write_all(text).expect("which can be written");
    }

    #[test]
    fn what_was_appended_is_read_and_can_be_added_to() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().join("with a space/1");
        let mut journal = Journal::create(&folder, &first()).expect("a journal");
        journal.append(&finished("one")).expect("a line");
        drop(journal);
        let (mut journal, lines) = Journal::open(&folder).expect("the journal");
        assert_eq!(lines, [first(), finished("one")]);
        journal.append(&finished("two")).expect("a line");
        drop(journal);
        assert_eq!(Journal::open(&folder).expect("the journal").1.len(), 3);
    }

    #[test]
    fn a_line_cut_short_at_any_place_is_taken_away() {
        let folder = tempfile::tempdir().expect("a folder");
        drop(Journal::create(folder.path(), &first()).expect("a journal"));
        let whole = serde_json::to_vec(&finished("all rounds")).expect("JSON");
        for cut in 1..=whole.len() {
            add(folder.path(), &whole[..cut]);
            let (mut journal, lines) = Journal::open(folder.path()).expect("the journal");
            assert_eq!(lines, [first()]);
            journal.append(&finished("x")).expect("a line");
            drop(journal);
            let (mut journal, lines) = Journal::open(folder.path()).expect("the journal");
            assert_eq!(lines, [first(), finished("x")]);
            journal.length -= serde_json::to_vec(&finished("x")).expect("JSON").len() as u64 + 1;
            journal.cut().expect("the journal can be cut");
        }
    }

    #[test]
    fn a_damaged_middle_and_a_newer_schema_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        drop(Journal::create(folder.path(), &first()).expect("a journal"));
        add(folder.path(), b"{\"line\": \"run\"}\n{}\n");
        let error = Journal::open(folder.path())
            .err()
            .expect("refused")
            .to_string();
        assert!(error.contains("damaged at line 2"), "{error}");

        let path = folder.path().join(FILE_NAME);
        std::fs::write(&path, "{\"line\":\"plan\",\"schema\":9,\"more\":1}\n").expect("written");
        let error = Journal::open(folder.path())
            .err()
            .expect("refused")
            .to_string();
        assert!(error.contains("has schema 9"), "{error}");

        std::fs::write(&path, "").expect("written");
        let error = Journal::open(folder.path())
            .err()
            .expect("refused")
            .to_string();
        assert!(error.contains("there is no plan"), "{error}");
    }

    #[test]
    fn two_cannot_write_one_journal() {
        let folder = tempfile::tempdir().expect("a folder");
        let journal = Journal::create(folder.path(), &first()).expect("a journal");
        assert!(matches!(
            Journal::open(folder.path()),
            Err(JournalError::Locked { .. })
        ));
        drop(journal);
        let again = Journal::create(folder.path(), &first());
        assert!(matches!(again, Err(JournalError::Exists { .. })));
        assert!(Journal::open(folder.path()).is_ok());
    }

    #[test]
    fn a_full_disk_is_told_and_leaves_whole_lines() {
        let full = OpenOptions::new()
            .append(true)
            .open("/dev/full")
            .expect("a full device");
        let mut journal = Journal {
            path: "/dev/full".into(),
            file: full,
            length: 0,
        };
        let error = journal
            .append(&finished("x"))
            .expect_err("no space")
            .to_string();
        assert!(error.contains("No space left"), "{error}");
        assert_eq!(journal.length, 0);
    }
}
