//! Format of a program's words. A malloc of less than 4 GiB, or a free, is one word. Every other
//! operation is a word for its kind, followed by its fields.
//!
//! A word whose highest bit is 0 calls malloc: the 31 bits below are the slot for the block, and
//! the lower 32 bits are its size. A negative word frees the block in the slot whose number is the
//! word plus 2^31.
//!
//! The first slots are always null. Freeing one of them stands for the operation whose [`Kind`] has
//! the slot's number, and the next words are the operation's fields. Running a malloc or a free
//! therefore needs no decoding of its kind.

/// Number of slots that a word can name.
pub(crate) const MAX_SLOTS: u32 = 1 << 31;

/// First slot that may hold a block.
pub(crate) const FIRST_SLOT: u32 = 16;

/// Maximum number of threads.
pub(crate) const MAX_THREADS: u32 = 1 << 23;

/// The thread that makes the first step and starts the others.
pub(crate) const MAIN: u32 = 0;

/// Kind of an operation other than a short malloc or a free. Its fields are words. A "short" field
/// has a slot in its high half and a size in its low half. A slot without a size is also in the
/// high half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Ends the thread.
    End,
    /// Continues in another piece. Fields: offset of that piece in words, its bytes, and offset of
    /// the finished piece.
    Jump,
    /// Announces to other threads that this thread has reached this operation.
    Publish,
    /// Waits until the thread in the high half has published the number of times in the low half.
    Wait,
    /// Sleeps until the replay has run for the number of nanoseconds in the field.
    Until,
    /// Starts the thread whose number is in the field.
    Start,
    /// Waits for the end of the thread whose number is in the field.
    Join,
    /// Frees a null pointer.
    FreeNull,
    /// Calls malloc. Fields: slot, size.
    Malloc,
    /// Calls calloc. Fields: a short field.
    ShortCalloc,
    /// Calls calloc. Fields: slot, size.
    Calloc,
    /// Calls posix_memalign. Fields: slot, with the alignment's binary logarithm in the low half;
    /// size.
    Aligned,
    /// Calls aligned_alloc. Fields: slot, with the alignment's binary logarithm in the low half;
    /// size.
    AlignedAlloc,
    /// Calls realloc. Fields: a short field, old size, end of the bytes to write.
    ShortResize,
    /// Calls realloc. Fields: slot, size, old size, end of the bytes to write.
    Resize,
}

impl Kind {
    /// All kinds, indexed by their numbers.
    const ALL: [Self; 15] = [
        Self::End,
        Self::Jump,
        Self::Publish,
        Self::Wait,
        Self::Until,
        Self::Start,
        Self::Join,
        Self::FreeNull,
        Self::Malloc,
        Self::ShortCalloc,
        Self::Calloc,
        Self::Aligned,
        Self::AlignedAlloc,
        Self::ShortResize,
        Self::Resize,
    ];

    /// Returns the kind of a negative word; `None` if the word frees a block.
    pub(crate) fn of(word: u64) -> Option<Self> {
        Self::ALL.get((word as u32 ^ MAX_SLOTS) as usize).copied()
    }

    /// Returns the first word of an operation of this kind.
    pub(crate) fn word(self) -> u64 {
        free(self as u32)
    }
}

/// Returns a word of two halves. With a slot and a size, it is the word of a malloc.
pub(crate) fn halves(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// Returns the word that frees the block in a slot.
pub(crate) fn free(slot: u32) -> u64 {
    (i64::from(slot) - i64::from(MAX_SLOTS)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_apart_as_they_were_put_together() {
        for (number, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, number);
            assert!(number < FIRST_SLOT as usize);
            assert_eq!(Kind::of(kind.word()), Some(kind));
            assert!((kind.word() as i64) < 0);
        }
        assert!(halves(MAX_SLOTS - 1, u32::MAX) as i64 > 0);
        for slot in [FIRST_SLOT, MAX_SLOTS - 1] {
            assert_eq!(Kind::of(free(slot)), None);
            assert!((free(slot) as i64) < 0);
        }
    }
}
