//! Messages from the drainer to the worker, which handles them in their order.

use std::path::PathBuf;

use heapdrome_trace::{Finish, Record};

use crate::backlog::Batch;

/// A program of a process begins.
#[derive(Debug)]
pub(crate) struct Birth {
    /// Its identity, and that of the image that it was forked from; see
    /// [`Ring`](heapdrome_witness::ring::Ring).
    pub image: u64,
    pub parent: u64,
    /// When it was forked.
    pub forked: u64,
    /// Its number in the trace.
    pub number: u32,
    pub pid: u32,
    /// Whether the system knows it here by that number.
    pub is_known_here: bool,
    /// The path of its executable.
    pub program: String,
    /// The path of the object that serves malloc.
    pub server: String,
}

/// A message from the drainer to the worker.
#[derive(Debug)]
pub(crate) enum Message {
    /// A program begins. The events of its parent that precede its fork were sent.
    Begin(Birth),
    /// A program has one more ring, in this file; its rings are numbered from 0.
    Ring { image: u64, path: PathBuf },
    /// Entries of a ring.
    Entries {
        image: u64,
        ring: usize,
        batch: Batch,
    },
    /// All events before this stamp were sent, except those of threads that were interrupted.
    Until(u64),
    /// The memory of a program is mapped in this way, as `/proc/PID/maps` shows it.
    Maps { image: u64, text: String },
    /// Something to be written as it is.
    Record(Record),
    /// A program has ended, and all its events were sent.
    Finish { image: u64, finish: Finish },
}
