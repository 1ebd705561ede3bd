//! Converts bytes to calls. Five bytes make one call.

use heapdrome_conformance::{Operation, Program, Step};

const THREADS: u8 = 4;
const SLOTS: u8 = 64;

/// Returns the program of all complete calls in the bytes.
pub fn program(bytes: &[u8]) -> Program {
    Program(bytes.as_chunks().0.iter().map(step).collect())
}

fn step(&[what, who, mantissa, exponent, alignment]: &[u8; 5]) -> Step {
    let operation = match what % 16 {
        0..4 => Operation::Allocate,
        4 | 5 => Operation::Zeroed,
        6 => Operation::Aligned,
        7..10 => Operation::Reallocate,
        10..13 => Operation::Free,
        13 => Operation::Give,
        14 => Operation::Take,
        // Trims are rare, because they return memory that later calls could reuse.
        _ if alignment < 16 => Operation::Trim,
        _ => Operation::Free,
    };
    // Calls whose first byte is below 128 run on one thread. The failures of inputs with only such
    // calls can be reproduced.
    let thread = if what & 0x80 == 0 {
        0
    } else {
        who / SLOTS % THREADS
    };
    Step {
        thread: thread.into(),
        operation,
        slot: (who % SLOTS).into(),
        size: if operation == Operation::Give {
            (mantissa % THREADS).into()
        } else {
            size(mantissa, exponent)
        },
        alignment: if operation == Operation::Aligned {
            8 << (alignment % 16)
        } else {
            1
        },
    }
}

/// Returns a size of at most 2 MiB. The results include every boundary of a size class and its
/// neighbours.
fn size(mantissa: u8, exponent: u8) -> usize {
    let shifted = usize::from(mantissa) << (exponent % 14);
    (shifted + usize::from(exponent >> 6)).saturating_sub(1)
}
