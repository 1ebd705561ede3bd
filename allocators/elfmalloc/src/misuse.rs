//! Kinds of misuse of the allocator, and the error message for each.

use heapdrome_pages::system::abort;

use crate::line::Line;

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
    line.text(what.as_bytes());
    line.address(address);
    line.write();
    abort();
}
