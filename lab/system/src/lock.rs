//! Locks on files, which the kernel takes back from a process that ends.

use std::fs::File;
use std::io;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// Locks `file` against every other lock, unless there is one already.
///
/// # Errors
/// When the file system has no locks.
pub fn try_exclusive(file: &File) -> io::Result<bool> {
    try_lock(file, FlockOperation::NonBlockingLockExclusive)
}

/// Locks `file` against exclusive locks, unless there is one already.
///
/// # Errors
/// When the file system has no locks.
pub fn try_shared(file: &File) -> io::Result<bool> {
    try_lock(file, FlockOperation::NonBlockingLockShared)
}

fn try_lock(file: &File, kind: FlockOperation) -> io::Result<bool> {
    match flock(file, kind) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
