//! Messages from the drainer to the worker, which handles them in the order in which they were
//! sent.

use std::path::PathBuf;

use heapdrome_trace::{Finish, Record};

use crate::backlog::Batch;

/// Beginning of a program of a process.
#[derive(Debug)]
pub(crate) struct Birth {
    /// Identity of the program ([`Ring::image`](heapdrome_witness::ring::Ring::image)).
    pub image: u64,
    /// Identity of the program from which this one was forked; 0 for an executed program.
    pub parent: u64,
    /// Stamp of the fork that made the process.
    pub forked: u64,
    /// Number of the program's process in the trace.
    pub number: u32,
    pub pid: u32,
    /// Whether the process is in the recorder's PID namespace, so that `pid` is valid here.
    pub is_known_here: bool,
    /// Path of the executable.
    pub program: String,
    /// Path of the object that serves malloc.
    pub server: String,
}

#[derive(Debug)]
pub(crate) enum Message {
    /// A program begins. All events of its parent from before the fork were sent.
    Begin(Birth),
    /// A program has created a ring, in the file `path`. The rings of a program are numbered from 0
    /// in the order of these messages.
    Ring { image: u64, path: PathBuf },
    /// Entries of a ring.
    Entries {
        image: u64,
        ring: usize,
        batch: Batch,
    },
    /// All events before this stamp were sent, except those of threads that were interrupted.
    Until(u64),
    /// Mappings of a program, in the form of `/proc/PID/maps`.
    Maps { image: u64, text: String },
    /// A record that the worker writes to the trace unchanged.
    Record(Record),
    /// A program has ended or is no longer recorded, and all its recorded events were sent.
    Finish { image: u64, finish: Finish },
}
