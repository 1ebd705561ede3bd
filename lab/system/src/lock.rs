//! Locks on files. The kernel releases a lock once the process that took it, and every forked child
//! with a copy of the descriptor, has closed the file or ended.

use std::fs::File;
use std::io;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// Tries to lock `file` exclusively, and returns whether that succeeded.
///
/// # Errors
/// When the kernel returns an error, for example because the file system does not support locks.
pub fn try_exclusive(file: &File) -> io::Result<bool> {
    try_lock(file, FlockOperation::NonBlockingLockExclusive)
}

/// Tries to lock `file` for sharing, and returns whether that succeeded.
///
/// # Errors
/// When the kernel returns an error, for example because the file system does not support locks.
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
