//! Encodes and decodes numbers of variable length (LEB128). Each byte holds 7 bits of the number,
//! the lowest first. The highest bit is set in all bytes except the last.

use crate::error::Damage;

/// Appends a number.
pub(crate) fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Decodes a number at the front of `bytes`, and removes it from there.
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
        // The tenth byte has room for one bit.
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

/// Fields of an operation that lie within one word, so that reading them needs no bounds checks.
#[derive(Clone, Copy)]
pub(crate) struct Fields {
    word: u64,
    taken: usize,
}

impl Fields {
    /// Number of bytes of an operation that are read at once: its code and a word of fields.
    pub(crate) const BYTES: usize = 9;

    /// Largest number that [`number`](Self::number) returns. It is encoded in three bytes.
    pub(crate) const LARGEST: u64 = (1 << 21) - 1;

    /// Returns the code of an operation, and its fields.
    #[inline(always)]
    pub(crate) fn new(&[code, ref word @ ..]: &[u8; Self::BYTES]) -> (u8, Self) {
        let word = u64::from_le_bytes(*word);
        (code, Self { word, taken: 1 })
    }

    /// Returns the number of bytes taken, including the code. If it exceeds [`BYTES`](Self::BYTES),
    /// the fields beyond those bytes were read as zeros.
    #[inline(always)]
    pub(crate) fn taken(self) -> usize {
        self.taken
    }

    /// Takes the next byte.
    #[inline(always)]
    pub(crate) fn byte(&mut self) -> u8 {
        let byte = self.word as u8;
        self.word >>= 8;
        self.taken += 1;
        byte
    }

    /// Takes and decodes the next number; `None` if it exceeds [`LARGEST`](Self::LARGEST).
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

    /// Takes and decodes the next two numbers; `None` if one exceeds [`LARGEST`](Self::LARGEST).
    /// Usually each has one byte; a single branch tests for this case.
    #[inline(always)]
    pub(crate) fn pair(&mut self) -> Option<[u64; 2]> {
        let word = self.word;
        if word & 0x8080 == 0 {
            self.word >>= 16;
            self.taken += 2;
            return Some([word & 0x7f, word >> 8 & 0x7f]);
        }
        Some([self.number()?, self.number()?])
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
        let boundaries = || (0..28).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit]);
        for (first, second) in boundaries().flat_map(|one| boundaries().map(move |two| (one, two)))
        {
            let mut bytes = vec![0xfe, 0xff];
            put(&mut bytes, first);
            put(&mut bytes, second);
            let length = bytes.len();
            // Further bytes must not change the numbers.
            bytes.resize(length.max(Fields::BYTES), 0xff);
            let bytes = bytes.first_chunk().expect("long enough");
            let (code, mut fields) = Fields::new(bytes);
            assert_eq!((code, fields.byte()), (0xfe, 0xff));
            let mut single = fields;
            let (one, two) = (single.number(), single.number());
            assert_eq!(one, (first <= Fields::LARGEST).then_some(first));
            let are_short = first.max(second) <= Fields::LARGEST;
            assert_eq!(fields.pair(), are_short.then_some([first, second]));
            if are_short {
                assert_eq!(two, Some(second));
                assert_eq!([fields.taken(), single.taken()], [length; 2]);
            }
        }
    }

    #[test]
    fn a_number_that_is_cut_off_or_too_long_is_refused() {
        assert_eq!(take(&mut &[0x80_u8, 0x80][..]), Err(Damage::End));
        assert_eq!(take(&mut &[0xff_u8; 11][..]), Err(Damage::Number));
    }
}
