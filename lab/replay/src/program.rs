//! The file of a compiled process. It consists of a header, pieces of the threads' operations, and
//! a table of the threads' first operations.

use crate::options::Speed;

/// Version of the file's format. Files of other versions are compiled again.
pub const FORM: u64 = 2;

const MAGIC: u64 = u64::from_le_bytes(*b"hdreplay");

/// Number of words in a page. The header occupies the first page. Large pieces start on a page
/// boundary.
pub(crate) const PAGE_WORDS: u64 = 512;

/// Size of a word in bytes.
pub(crate) const WORD: u64 = 8;

const FIELDS: usize = 13;

/// Size of the header in bytes.
pub(crate) const HEADER_BYTES: usize = (FIELDS + 1) * WORD as usize;

/// The header of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Speed for which the program was compiled.
    pub speed: Speed,
    /// The number of the process in the trace.
    pub process: u32,
    /// Number of threads.
    pub threads: u32,
    /// Number of slots, including those that are always null.
    pub slots: u32,
    /// Number of replayed calls.
    pub operations: u64,
    /// Number of recorded calls that are omitted, because they failed or freed a block that the
    /// trace does not contain.
    pub left_out: u64,
    /// Number of live blocks at the end of the program.
    pub live: u64,
    /// Floor of the memory use: maximum sum of the requested sizes of live blocks, in the recorded
    /// order.
    pub floor: u64,
    /// A hash of all operations.
    pub digest: u64,
    /// Offset of the table of threads, in words.
    pub(crate) table: u64,
    /// Size of the file in bytes.
    pub(crate) bytes: u64,
}

impl Header {
    /// Returns the bytes of the header in the file.
    pub(crate) fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let speed = Speed::ALL.iter().position(|one| *one == self.speed);
        let fields: [u64; FIELDS] = [
            MAGIC,
            FORM,
            speed.unwrap_or(0) as u64,
            self.process.into(),
            self.threads.into(),
            self.slots.into(),
            self.operations,
            self.left_out,
            self.live,
            self.floor,
            self.digest,
            self.table,
            self.bytes,
        ];
        let mut bytes = [0; HEADER_BYTES];
        for (place, field) in bytes.chunks_exact_mut(WORD as usize).zip(fields) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        let sum = u64::from(crc32fast::hash(&bytes[..FIELDS * WORD as usize]));
        bytes[FIELDS * WORD as usize..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Parses a header; `None` if the bytes are not a header of version [`FORM`].
    pub(crate) fn from_bytes(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        let mut fields = bytes
            .chunks_exact(WORD as usize)
            .filter_map(|word| word.try_into().ok().map(u64::from_le_bytes));
        let mut next = || fields.next().unwrap_or(0);
        if (next(), next()) != (MAGIC, FORM) {
            return None;
        }
        let header = Self {
            speed: *Speed::ALL.get(usize::try_from(next()).ok()?)?,
            process: u32::try_from(next()).ok()?,
            threads: u32::try_from(next()).ok()?,
            slots: u32::try_from(next()).ok()?,
            operations: next(),
            left_out: next(),
            live: next(),
            floor: next(),
            digest: next(),
            table: next(),
            bytes: next(),
        };
        (header.to_bytes() == *bytes).then_some(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_comes_back_and_a_damaged_one_does_not() {
        let header = Header {
            speed: Speed::Locked,
            process: 1,
            threads: 2,
            slots: 3,
            operations: 4,
            left_out: 5,
            live: 6,
            floor: 7,
            digest: 8,
            table: 9,
            bytes: 10,
        };
        let bytes = header.to_bytes();
        assert_eq!(Header::from_bytes(&bytes), Some(header));
        for place in 0..HEADER_BYTES {
            let mut damaged = bytes;
            damaged[place] ^= 1;
            assert_eq!(Header::from_bytes(&damaged), None, "{place}");
        }
    }
}
