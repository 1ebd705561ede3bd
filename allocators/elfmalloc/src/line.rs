//! Lines that the allocator writes to standard error.

use heapdrome_pages::system::write_error;

/// Maximum number of bytes of a line, without the newline. The rest of a longer line is left out.
const LENGTH: usize = 200;

/// Buffer for one line of text. Uses no heap memory.
pub(crate) struct Line {
    bytes: [u8; LENGTH + 1],
    length: usize,
}

impl Line {
    /// Creates a line that begins with the name of the allocator.
    pub(crate) fn new() -> Self {
        let mut line = Self {
            bytes: [0; LENGTH + 1],
            length: 0,
        };
        line.text(b"elfmalloc: ");
        line
    }

    /// Adds text. Leaves out the part that exceeds [`LENGTH`].
    pub(crate) fn text(&mut self, text: &[u8]) {
        let room = &mut self.bytes[self.length..LENGTH];
        let count = text.len().min(room.len());
        room[..count].copy_from_slice(&text[..count]);
        self.length += count;
    }

    /// Adds an address in hexadecimal.
    pub(crate) fn address(&mut self, address: usize) {
        self.text(b"0x");
        let digits = (usize::BITS - (address | 1).leading_zeros()).div_ceil(4);
        for digit in (0..digits).rev() {
            let value = (address >> (digit * 4)) & 15;
            self.text(&[b"0123456789abcdef"[value]]);
        }
    }

    /// Adds a newline, and writes the whole line in one piece.
    pub(crate) fn write(&mut self) {
        self.bytes[self.length] = b'\n';
        write_error(&self.bytes[..=self.length]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(line: &Line) -> &[u8] {
        &line.bytes[..line.length]
    }

    #[test]
    fn addresses_are_written_in_hexadecimal() {
        for (address, expected) in [(0, "0x0"), (0x7f00_1234, "0x7f001234"), (16, "0x10")] {
            let mut line = Line::new();
            line.address(address);
            assert_eq!(
                written(&line),
                [&b"elfmalloc: "[..], expected.as_bytes()].concat()
            );
        }
    }

    #[test]
    fn a_long_line_is_cut_off() {
        let mut line = Line::new();
        (0..3).for_each(|_| line.text(&[b'a'; LENGTH / 2]));
        assert_eq!(written(&line).len(), LENGTH);
        line.text(b"b");
        assert_eq!(written(&line).last(), Some(&b'a'));
    }
}
