//! Canaries of the hardened variant: bytes behind the requested part of a slab block, or around a
//! block with its own mapping. A correct program never writes them. They are checked when the
//! program frees or reallocates the block.
//!
//! Each block has a word, computed from its address and a secret. In a slab block, the canary byte
//! at offset `o` of the block is byte `o % 8` of that word. This holds wherever a canary begins, so
//! two canaries may overlap. Around a block with its own mapping, all canary bytes are the lowest
//! byte of the word. No canary byte is zero, because overflows often write the NUL at the end of a
//! string.

use core::ptr::NonNull;
use heapdrome_pages::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use heapdrome_pages::system::random_word;

/// Number of bytes of a canary in a slab block, which has two canaries. The first begins after the
/// requested bytes, or earlier if the slack is shorter than a canary. The second ends with the
/// block.
const CANARY: usize = size_of::<u64>();
/// Maximum number of canary bytes on each side of a block with its own mapping.
const EDGE: usize = 64;
/// Lowest bit of each byte, which is set so that no byte is zero.
const NO_ZEROS: u64 = 0x0101_0101_0101_0101;

// The canary code shifts and compares words whose first byte in memory is the lowest.
const _: () = assert!(cfg!(target_endian = "little"));

static SECRET: AtomicU64 = AtomicU64::new(0);

/// Returns whether the secret has not been drawn yet.
pub(crate) fn wants_secret() -> bool {
    // Acquire: pairs with the release in `draw_secret`. A thread that sees the secret also sees
    // that block states are enabled.
    SECRET.load(Acquire) == 0
}

/// Draws the secret, unless it has been drawn. All other preparations for the first block must
/// precede this call.
pub(crate) fn draw_secret() {
    // Release: pairs with the acquire in `wants_secret`. If several threads draw, the first value
    // stays.
    let _ = SECRET.compare_exchange(0, random_word() | 1, Release, Relaxed);
}

/// Returns the word of the block at `address`.
#[inline(always)]
fn word(address: usize) -> u64 {
    // The secret is odd, so blocks at different addresses have different products.
    (address as u64 / 16).wrapping_mul(SECRET.load(Relaxed)) | NO_ZEROS
}

/// Positions of a block's canaries. Computed without branches, because a branch on the size would
/// often be mispredicted.
struct Canaries {
    /// Start of the first canary: behind the last requested byte, but early enough to end within
    /// the block.
    first: usize,
    /// Start of the last canary, which ends with the block. It may overlap or equal the first.
    last: usize,
    /// Number of bits of the first canary that belong to the program; zero unless both canaries
    /// coincide.
    taken: usize,
}

impl Canaries {
    #[inline(always)]
    const fn of(size: usize, slack: usize) -> Self {
        let used = size - slack;
        let last = size - CANARY;
        let first = if used < last { used } else { last };
        Self {
            first,
            last,
            taken: (used - first) * 8,
        }
    }

    /// Returns the contents of the first canary, given the word of the block. The last canary
    /// begins at a multiple of eight, so its contents are the word itself.
    #[inline(always)]
    const fn first_of(&self, word: u64) -> u64 {
        word.rotate_right((self.first % CANARY * 8) as u32)
    }
}

/// Writes the canaries of a block of `size` bytes, of which the last `slack` do not belong to the
/// program. Also overwrites up to seven bytes before the slack.
///
/// # Safety
///
/// The block is aligned to 16 bytes, and has `size` bytes, a multiple of 16, including slack. Its
/// contents do not matter yet.
#[inline(always)]
pub(crate) unsafe fn write(block: NonNull<u8>, size: usize, slack: usize) {
    let canaries = Canaries::of(size, slack);
    let word = word(block.addr().get());
    let first = canaries.first_of(word);
    // SAFETY: by this function's contract, the canaries lie in the block, and the last one is
    // aligned.
    unsafe {
        block.add(canaries.first).cast().write_unaligned(first);
        block.add(canaries.last).cast().write(word);
    }
}

/// Rewrites the canaries behind the requested bytes of a block, and keeps the requested bytes.
///
/// # Safety
///
/// The block belongs to the program, and is aligned to 16 bytes. It has `size` bytes, a multiple of
/// 16, including slack.
pub(crate) unsafe fn rewrite(block: NonNull<u8>, size: usize, slack: usize) {
    let canaries = Canaries::of(size, slack);
    let word = word(block.addr().get());
    let free = !0 << canaries.taken;
    // SAFETY: by this function's contract, the canaries lie in the block, and the last one is
    // aligned. The lowest `taken` bits of the first word, which come first in memory, are the
    // program's and are kept. A last canary that differs from the first lies entirely in the slack.
    unsafe {
        let first = block.add(canaries.first).cast::<u64>();
        let kept = first.read_unaligned() & !free;
        first.write_unaligned(kept | canaries.first_of(word) & free);
        if canaries.first != canaries.last {
            block.add(canaries.last).cast().write(word);
        }
    }
}

/// Returns whether both canaries behind the requested bytes are intact.
///
/// # Safety
///
/// The block has `size` bytes, a multiple of 16, including `slack` bytes of slack.
#[inline(always)]
pub(crate) unsafe fn is_whole(block: NonNull<u8>, size: usize, slack: usize) -> bool {
    let canaries = Canaries::of(size, slack);
    let word = word(block.addr().get());
    // SAFETY: both canaries lie in the block, which has `size` bytes by this function's contract.
    let found = |place| unsafe { block.add(place).cast::<u64>().read_unaligned() };
    let changed = (found(canaries.first) ^ canaries.first_of(word)) >> canaries.taken;
    // If both canaries coincide, the lowest `taken` bits belong to the program.
    let changed_last = (found(canaries.last) ^ word) >> canaries.taken;
    changed | changed_last == 0
}

/// Numbers of canary bytes before and behind a block with its own mapping. The canary before the
/// block begins on the block's first page.
struct Edges {
    before: usize,
    behind: usize,
}

impl Edges {
    fn of(address: usize, size: usize, page: usize) -> Self {
        Self {
            before: (address % page).min(EDGE),
            behind: ((address + size).next_multiple_of(page) - (address + size)).min(EDGE),
        }
    }
}

/// Writes the canaries around a block with its own mapping.
///
/// # Safety
///
/// The block has `size` bytes. Its pages, of `page` bytes each, contain no other block.
pub(crate) unsafe fn guard(block: NonNull<u8>, size: usize, page: usize) {
    let edges = Edges::of(block.addr().get(), size, page);
    let byte = word(block.addr().get()) as u8;
    // SAFETY: the edges lie on the block's first and last page, which contain no other block.
    unsafe {
        let start = block.sub(edges.before);
        start.write_bytes(byte, edges.before);
        block.add(size).write_bytes(byte, edges.behind);
    }
}

/// Returns whether the canaries around a block with its own mapping are unchanged.
///
/// # Safety
///
/// The block has `size` bytes. Its pages, of `page` bytes each, contain no other block.
pub(crate) unsafe fn is_guarded(block: NonNull<u8>, size: usize, page: usize) -> bool {
    let edges = Edges::of(block.addr().get(), size, page);
    let byte = word(block.addr().get()) as u8;
    // SAFETY: the edges lie on the block's first and last page, which contain no other block.
    unsafe {
        let start = block.sub(edges.before);
        let end = block.add(size);
        (0..edges.before).all(|index| start.add(index).read() == byte)
            && (0..edges.behind).all(|index| end.add(index).read() == byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(align(16))]
    struct Block([u8; 48]);

    fn block_of(bytes: &mut Block) -> NonNull<u8> {
        NonNull::from(&mut bytes.0).cast()
    }

    #[test]
    fn every_slack_is_watched_and_nothing_else() {
        draw_secret();
        for slack in 1..=48 {
            let mut bytes = Block([0; 48]);
            let block = block_of(&mut bytes);
            // SAFETY: the block has 48 bytes, is aligned to 16, and belongs to this test.
            unsafe {
                write(block, 48, slack);
                assert!(is_whole(block, 48, slack), "{slack}");
                let used = 48 - slack;
                block.as_ptr().write_bytes(7, used);
                assert!(is_whole(block, 48, slack), "{slack}");
                for place in (used..48).filter(|&place| place < used + 8 || place >= 40) {
                    let byte = block.add(place);
                    let before = byte.read();
                    byte.write(0);
                    assert!(!is_whole(block, 48, slack), "{slack}, {place}");
                    byte.write(before);
                }
            }
        }
    }

    #[test]
    fn a_block_that_changes_its_size_keeps_what_it_holds() {
        draw_secret();
        let slacks = || (1..=48).step_by(if cfg!(miri) { 7 } else { 1 });
        for (from, to) in slacks().flat_map(|from| slacks().map(move |to| (from, to))) {
            let mut bytes = Block([0; 48]);
            let block = block_of(&mut bytes);
            // SAFETY: the block has 48 bytes, is aligned to 16, and belongs to this test.
            unsafe {
                write(block, 48, from);
                let kept = 48 - from.max(to);
                block.as_ptr().write_bytes(7, 48 - from);
                rewrite(block, 48, to);
                assert!(is_whole(block, 48, to), "{from} to {to}");
                assert!((0..kept).all(|place| block.add(place).read() == 7));
            }
        }
    }
}
