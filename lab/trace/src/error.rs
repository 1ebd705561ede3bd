//! Errors of reading and writing a trace.

use std::io;

/// Reason why a trace cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The file does not begin with the header of a trace.
    #[error("not a trace of heapdrome")]
    NotATrace,
    /// The trace ends within its header or its first chunk, so it has no usable part.
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
    /// The caller added an operation or a record that is invalid at this place in the trace.
    #[error("the operation cannot stand there: {0}")]
    Order(&'static str),
    /// Merging failed at one of the traces.
    #[error("trace {place}: {error}")]
    Part {
        /// Position of that trace in the list, from 0.
        place: usize,
        /// The error at that trace.
        error: Box<TraceError>,
    },
    /// The traces cannot be merged.
    #[error("the traces cannot be merged: {0}")]
    Merge(&'static str),
}

/// Kind of damage of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// A checksum does not match.
    #[error("its checksum does not match")]
    Checksum,
    /// The kind of a chunk or the code of an operation is unknown, or an operation has a stack that
    /// it cannot have.
    #[error("unknown code {0}")]
    Code(u8),
    /// A length exceeds its limit, or contradicts the content.
    #[error("impossible length {0}")]
    Length(u64),
    /// The content ends within a value.
    #[error("the content ends within a value")]
    End,
    /// A number does not fit into the 64 or 32 bits that its field allows, or a count or time
    /// overflows.
    #[error("a number is too long")]
    Number,
    /// An operation or record refers to a block, function, module or stack that does not exist, or
    /// a block, module or stack does not have the next number.
    #[error("a reference to a block, a function, a module or a stack that does not exist")]
    Reference,
    /// The content cannot be decompressed.
    #[error("the content cannot be decompressed")]
    Compression,
    /// The JSON of a record is invalid, or the record is not allowed at that place.
    #[error("a record is malformed")]
    Record,
}
