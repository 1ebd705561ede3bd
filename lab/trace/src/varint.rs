//! Numbers of variable length: 7 bits a byte, the lowest first, the highest bit set in all bytes
//! except the last (LEB128).

use crate::error::Damage;

/// Appends a number.
pub(crate) fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Takes a number from the front.
#[inline]
pub(crate) fn take(bytes: &mut &[u8]) -> Result<u64, Damage> {
    let (&first, rest) = bytes.split_first().ok_or(Damage::End)?;
    *bytes = rest;
    if first < 0x80 {
        return Ok(u64::from(first));
    }
    take_rest(bytes, u64::from(first & 0x7f))
}

fn take_rest(bytes: &mut &[u8], mut number: u64) -> Result<u64, Damage> {
    let mut shift = 7;
    loop {
        let (&byte, rest) = bytes.split_first().ok_or(Damage::End)?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f);
        // The tenth byte has room for the highest bit alone.
        if shift > 63 || (shift == 63 && bits > 1) {
            return Err(Damage::Number);
        }
        number |= bits << shift;
        if byte < 0x80 {
            return Ok(number);
        }
        shift += 7;
    }
}

/// The fields of an operation that lie within one word, in which no byte needs a check of its own.
#[derive(Clone, Copy)]
pub(crate) struct Fields {
    word: u64,
    taken: usize,
}

impl Fields {
    /// Bytes of a word.
    pub(crate) const WORD: usize = 8;

    /// Maximum number of bytes of a number that [`number`](Self::number) takes.
    pub(crate) const LONGEST: usize = 3;

    /// Largest number that [`number`](Self::number) takes.
    pub(crate) const LARGEST: u64 = (1 << (7 * Self::LONGEST)) - 1;

    /// Starts at the first of these bytes.
    #[inline(always)]
    pub(crate) fn new(bytes: [u8; Self::WORD]) -> Self {
        Self {
            word: u64::from_le_bytes(bytes),
            taken: 0,
        }
    }

    /// Returns the number of bytes that were taken.
    #[inline(always)]
    pub(crate) fn taken(self) -> usize {
        self.taken
    }

    /// Takes a byte.
    #[inline(always)]
    pub(crate) fn byte(&mut self) -> u8 {
        let byte = self.word as u8;
        self.word >>= 8;
        self.taken += 1;
        byte
    }

    /// Takes a number; `None` if it is longer than [`LONGEST`](Self::LONGEST).
    #[inline(always)]
    pub(crate) fn number(&mut self) -> Option<u64> {
        let word = self.word;
        let first = word & 0x7f;
        let (number, length) = if word & 0x80 == 0 {
            (first, 1)
        } else if word & 0x8000 == 0 {
            (first | word >> 1 & 0x3f80, 2)
        } else if word & 0x80_0000 == 0 {
            (first | word >> 1 & 0x3f80 | word >> 2 & 0x1f_c000, 3)
        } else {
            return None;
        };
        self.word >>= 8 * length;
        self.taken += length;
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_length_come_back() {
        let numbers = (0..64)
            .flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit])
            .chain([u64::MAX]);
        for number in numbers {
            let mut bytes = Vec::new();
            put(&mut bytes, number);
            let mut rest = &bytes[..];
            assert_eq!(take(&mut rest), Ok(number));
            assert!(rest.is_empty());
        }
    }

    #[test]
    fn a_word_yields_its_short_numbers_and_no_longer_one() {
        let boundaries = (0..28).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit]);
        for number in boundaries {
            let mut bytes = vec![0xff];
            put(&mut bytes, number);
            let length = bytes.len();
            // Further bytes must not change the number.
            bytes.resize(Fields::WORD, 0xff);
            let mut fields = Fields::new(bytes.try_into().expect("a word"));
            assert_eq!(fields.byte(), 0xff);
            let is_short = number <= Fields::LARGEST;
            assert_eq!(fields.number(), is_short.then_some(number));
            assert_eq!(fields.taken(), if is_short { length } else { 1 });
        }
    }

    #[test]
    fn a_number_that_is_cut_off_or_too_long_is_refused() {
        assert_eq!(take(&mut &[0x80_u8, 0x80][..]), Err(Damage::End));
        assert_eq!(take(&mut &[0xff_u8; 11][..]), Err(Damage::Number));
    }
}
