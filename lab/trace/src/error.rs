//! Why a trace cannot be read or written.

use std::io;

/// Why a trace cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The file does not begin as a trace does.
    #[error("not a trace of heapdrome")]
    NotATrace,
    /// The trace ends within its header or its first chunk, so that nothing of it can be used.
    #[error("the trace was cut off before its first complete chunk")]
    CutOffAtStart,
    /// A later heapdrome wrote the trace.
    #[error(
        "the trace has format version {found}, this heapdrome reads up to {known}: update heapdrome"
    )]
    Newer {
        /// The version of the trace.
        found: u16,
        /// The latest version that can be read.
        known: u16,
    },
    /// The trace is damaged.
    #[error("the trace is damaged at byte {offset}: {damage}")]
    Damaged {
        /// The offset in the file of the chunk or field that is damaged.
        offset: u64,
        /// The damage.
        damage: Damage,
    },
    /// Reading or writing failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The caller wrote operations out of order, or referred to a block that does not exist.
    #[error("the operation cannot stand there: {0}")]
    Order(&'static str),
    /// One of several traces cannot be read.
    #[error("trace {place}: {error}")]
    Part {
        /// Position of the trace among them, from 0.
        place: usize,
        /// Error of that trace.
        error: Box<TraceError>,
    },
    /// Traces cannot become one.
    #[error("the traces cannot be merged: {0}")]
    Merge(&'static str),
}

/// How a trace is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// A checksum does not fit.
    #[error("its checksum does not match")]
    Checksum,
    /// The kind of a chunk or the code of an operation is not known.
    #[error("unknown code {0}")]
    Code(u8),
    /// A length is not possible.
    #[error("impossible length {0}")]
    Length(u64),
    /// The content ends in the midst of a value.
    #[error("the content ends within a value")]
    End,
    /// A number does not fit into 64 bits.
    #[error("a number is too long")]
    Number,
    /// Something refers to a block, function, module or stack that does not exist.
    #[error("a reference to a block, a function, a module or a stack that does not exist")]
    Reference,
    /// The content cannot be decompressed.
    #[error("the content cannot be decompressed")]
    Compression,
    /// A record is not the JSON that it should be.
    #[error("a record is malformed")]
    Record,
}
