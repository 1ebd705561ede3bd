//! Encodes numbers of variable length: 7 bits a byte, the lowest first, the highest bit set in all
//! bytes except the last (LEB128).

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

/// Bytes of a word of which [`short`] takes the lowest.
pub(crate) const WORD: usize = 8;

/// Returns the number that begins with a word's lowest byte, and how many bytes it takes; `None` if
/// it does not end within two.
#[inline(always)]
pub(crate) fn short(word: u64) -> Option<(u64, usize)> {
    let first = word & 0x7f;
    if word & 0x80 == 0 {
        Some((first, 1))
    } else if word & 0x8000 == 0 {
        Some((first | word >> 1 & 0x3f80, 2))
    } else {
        None
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
    fn a_number_that_is_cut_off_or_too_long_is_refused() {
        assert_eq!(take(&mut &[0x80_u8, 0x80][..]), Err(Damage::End));
        assert_eq!(take(&mut &[0xff_u8; 11][..]), Err(Damage::Number));
    }
}
