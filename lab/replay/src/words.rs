//! The words of a program: one for each malloc and free, more for everything else.
//!
//! A word whose highest bit is 0 calls malloc: the slot that takes the block in the 31 bits below,
//! the size in the low 32. A word whose highest bit is 1 frees the block in the slot of its low 32
//! bits. Slot 0 is always null, so that a null pointer tells every other operation apart at no
//! cost: its kind stands in bits 32 to 39, and an operand in bits 40 to 62.

/// Slots that a program can name, slot 0 included.
pub(crate) const MAX_SLOTS: u32 = 1 << 31;

/// Values that an operand can have.
pub(crate) const OPERANDS: u32 = 1 << 23;

/// The operand's bit of an operation whose size needs a word of its own.
pub(crate) const WIDE: u32 = 1 << 22;

const HIGHEST: u64 = 1 << 63;

/// What an operation other than a short malloc or a free does. The words after it are its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Ends the thread.
    End = 1,
    /// Goes on at another place: bytes of the next piece as the operand, then where it begins, and
    /// where this one began, in words.
    Jump,
    /// Tells other threads that this one has come here.
    Publish,
    /// Waits for the thread of the operand, until it has published as often as the next word says.
    Wait,
    /// Sleeps until so many nanoseconds have passed since the beginning.
    Until,
    /// Starts the thread of the operand.
    Start,
    /// Waits for the end of the thread of the operand.
    Join,
    /// Frees a null pointer.
    FreeNull,
    /// Calls malloc for a size of 4 GiB or more.
    Malloc,
    /// Calls calloc.
    Calloc,
    /// Calls posix_memalign; the operand is the alignment's logarithm.
    Aligned,
    /// Calls aligned_alloc; the operand is the alignment's logarithm.
    AlignedAlloc,
    /// Calls realloc; the last word is the size before.
    Resize,
}

impl Kind {
    /// Every kind, by its number less one.
    const ALL: [Self; 13] = [
        Self::End,
        Self::Jump,
        Self::Publish,
        Self::Wait,
        Self::Until,
        Self::Start,
        Self::Join,
        Self::FreeNull,
        Self::Malloc,
        Self::Calloc,
        Self::Aligned,
        Self::AlignedAlloc,
        Self::Resize,
    ];

    /// Returns the kind of a word; `None` if it has none, as the word of a free.
    #[inline]
    pub(crate) fn of(word: u64) -> Option<Self> {
        let number = (word >> 32 & 0xff) as usize;
        Self::ALL.get(number.wrapping_sub(1)).copied()
    }
}

/// Returns the word that calls malloc.
#[inline]
pub(crate) fn malloc(slot: u32, size: u32) -> u64 {
    u64::from(slot) << 32 | u64::from(size)
}

/// Returns the word that frees the block in a slot.
#[inline]
pub(crate) fn free(slot: u32) -> u64 {
    HIGHEST | u64::from(slot)
}

/// Returns the first word of another operation.
#[inline]
pub(crate) fn other(kind: Kind, operand: u32) -> u64 {
    HIGHEST | u64::from(operand % OPERANDS) << 40 | u64::from(kind as u8) << 32
}

/// Returns the operand of a word.
#[inline]
pub(crate) fn operand(word: u64) -> u32 {
    (word >> 40) as u32 % OPERANDS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_apart_as_they_were_put_together() {
        for (number, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, number + 1);
            let word = other(kind, OPERANDS - 1);
            assert_eq!((Kind::of(word), operand(word)), (Some(kind), OPERANDS - 1));
            assert_eq!(word as u32, 0, "the slot of a null pointer");
            assert!((word as i64) < 0);
        }
        assert!(malloc(MAX_SLOTS - 1, u32::MAX) as i64 > 0);
        assert_eq!(Kind::of(free(MAX_SLOTS - 1)), None);
    }
}
