//! Errors of the library.

use core::fmt;

/// Reason why an allocation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocError {
    /// The elements do not fit into the largest class, or into the address space.
    TooLarge,
    /// The type's alignment, given here, exceeds the alignment of regions.
    Alignment(usize),
    /// The system refused to reserve even the smallest area that can hold the region, or there are
    /// too many areas.
    OutOfMemory {
        /// Size of the requested region.
        bytes: usize,
    },
}

impl fmt::Display for AllocError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge => f.write_str("more than 64 GiB in one allocation: split it"),
            Self::Alignment(wanted) => {
                write!(f, "alignment {wanted} is above 2 MiB, that of a region")
            }
            Self::OutOfMemory { bytes } => write!(
                f,
                "the system has no {bytes} bytes of address space: see ulimit -v and vm.overcommit_memory"
            ),
        }
    }
}

impl std::error::Error for AllocError {}

/// Reason why an operation on a range of elements failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeError {
    /// The range ends before it begins, or beyond the allocation.
    OutOfBounds {
        /// Number of bytes in the region, or in the elements of the vector.
        length: usize,
    },
    /// The system refused the operation with this error number.
    Refused(i32),
}

impl fmt::Display for RangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfBounds { length } => {
                write!(
                    f,
                    "the range does not lie within the allocation of {length} bytes"
                )
            }
            Self::Refused(number) => write!(
                f,
                "the system refused what was asked for the range: {}",
                std::io::Error::from_raw_os_error(*number)
            ),
        }
    }
}

impl std::error::Error for RangeError {}
