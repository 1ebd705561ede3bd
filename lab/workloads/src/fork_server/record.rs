//! Result of a child, in memory that it shares with its parent.

use std::io::Write as _;

use crate::Failure;
use crate::array::Zeroed;
use crate::caller::Tally;

/// Maximum length in bytes of a failure's text.
const LONGEST: usize = 232;

/// Result of a child.
#[derive(Clone, Copy)]
pub(super) struct Record {
    operations: u64,
    checksum: u64,
    /// Number of bytes of the text of the child's failure.
    length: usize,
    text: [u8; LONGEST],
}

// SAFETY: zeros are the result of a child that did nothing.
unsafe impl Zeroed for Record {}

impl Record {
    /// Creates the record of a child. Allocates nothing, because the child's heap may be at fault.
    pub(super) fn of(done: &Result<Tally, Failure>) -> Self {
        let mut record = Self {
            operations: 0,
            checksum: 0,
            length: 0,
            text: [0; LONGEST],
        };
        match done {
            Ok(tally) => {
                record.operations = tally.operations;
                record.checksum = tally.checksum;
            }
            Err(failure) => {
                let mut rest = &mut record.text[..];
                // A text that is too long is cut off.
                let _ = write!(rest, "{failure}");
                record.length = LONGEST - rest.len();
            }
        }
        record
    }

    /// Returns the work of a child that succeeded.
    pub(super) fn tally(&self) -> Tally {
        Tally {
            operations: self.operations,
            checksum: self.checksum,
            latency: None,
        }
    }

    /// Returns the text of a child's failure.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.text[..self.length]).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_holds_the_work_or_the_failure() {
        let tally = Tally {
            operations: 3,
            checksum: 5,
            latency: None,
        };
        let found = Record::of(&Ok(tally)).tally();
        assert_eq!((found.operations, found.checksum), (3, 5));
        let failure = Failure::NoMemory {
            size: 7,
            requested: 9,
        };
        let text = failure.to_string();
        assert_eq!(Record::of(&Err(failure)).text(), text);
        let long = Failure::Child("x".repeat(1000));
        assert_eq!(Record::of(&Err(long)).text().len(), LONGEST);
    }
}
