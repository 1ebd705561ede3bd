//! Kinds of misuse of the allocator, and the error message for each.

use heapdrome_pages::system::{abort, write_error};

/// Misuse that the allocator detected, with the address of the block or pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misuse {
    /// The block was already free.
    DoubleFree(usize),
    /// No block begins at the address.
    NotABlock(usize),
    /// The program wrote past the last byte of the block.
    Overflow(usize),
    /// The program wrote before the first byte of the block, or past the last.
    Around(usize),
    /// The size passed to the sized deallocation differs from the allocated size.
    OtherSize(usize),
    /// The program wrote to the block after it was freed.
    WrittenAfterFree(usize),
}

/// Prints a message with the address to standard error, and aborts.
pub fn report(misuse: Misuse) -> ! {
    let (what, address) = match misuse {
        Misuse::DoubleFree(address) => ("free of a block that is free already: ", address),
        Misuse::NotABlock(address) => ("free of an address that is no block: ", address),
        Misuse::Overflow(address) => ("write beyond the end of the block at ", address),
        Misuse::Around(address) => (
            "write before the beginning or beyond the end of the block at ",
            address,
        ),
        Misuse::OtherSize(address) => ("sized delete of a block of another size: ", address),
        Misuse::WrittenAfterFree(address) => ("write to a block after it was freed: ", address),
    };
    let mut line = Line::new();
    line.text(b"elfmalloc: ");
    line.text(what.as_bytes());
    line.address(address);
    line.text(b"\n");
    write_error(line.bytes());
    abort();
}

/// Buffer for one line of text, which allocates nothing.
struct Line {
    bytes: [u8; 128],
    length: usize,
}

impl Line {
    const fn new() -> Self {
        Self {
            bytes: [0; 128],
            length: 0,
        }
    }

    fn text(&mut self, text: &[u8]) {
        for &byte in text {
            if let Some(place) = self.bytes.get_mut(self.length) {
                *place = byte;
                self.length += 1;
            }
        }
    }

    fn address(&mut self, address: usize) {
        self.text(b"0x");
        let digits = (usize::BITS - (address | 1).leading_zeros()).div_ceil(4);
        for digit in (0..digits).rev() {
            let value = (address >> (digit * 4)) & 15;
            self.text(&[b"0123456789abcdef"[value]]);
        }
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_in_hexadecimal() {
        for (address, expected) in [(0, "0x0"), (0x7f00_1234, "0x7f001234"), (16, "0x10")] {
            let mut line = Line::new();
            line.address(address);
            assert_eq!(line.bytes(), expected.as_bytes());
        }
    }
}
