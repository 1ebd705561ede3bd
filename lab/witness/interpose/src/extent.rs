//! Finds the memory of a thread's own stack, copies memory that may be unmapped, and reads the list
//! of this process's mappings.
//!
//! A thread may run on another stack: that of a signal handler or a coroutine. Such a stack may be
//! unmapped at any time, so the kernel copies it, and the copy ends where no memory is mapped. The
//! thread's own stack stays mapped while the thread runs, and is copied directly.

use crate::kernel;
use crate::system;

/// Range of addresses, from `low` up to but excluding `high`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Extent {
    pub low: usize,
    pub high: usize,
}

/// Maximum distance below the known part of a stack at which an address may belong to the grown
/// stack.
const GROWTH: usize = 1 << 20;

impl Extent {
    /// Returns whether the range contains the address.
    pub fn has(self, address: usize) -> bool {
        (self.low..self.high).contains(&address)
    }

    /// Returns whether the stack may have grown down to the address, or has not been searched for.
    pub fn may_have(self, address: usize) -> bool {
        self.high == 0 || (self.low.saturating_sub(GROWTH)..self.low).contains(&address)
    }
}

/// Returns the stack of the calling thread; `None` if the address `pointer` is not in it. `local`
/// is the address of a thread-local variable, which lies above the stack in the same mapping,
/// except in the first thread of a program.
pub fn find(pointer: usize, local: usize) -> Option<Extent> {
    let mut found = None;
    each_mapping(|mapping, name| {
        if !mapping.has(pointer) {
            return;
        }
        if name == b"[stack]" {
            found = Some(mapping);
        } else if pointer < local && mapping.has(local) {
            let high = local;
            found = Some(Extent { high, ..mapping });
        }
    });
    found
}

/// Copies bytes of memory that might be unmapped, from at most 17 pages. Returns the number of
/// bytes copied before the first unmapped page.
///
/// # Safety
/// The target has room for `length` bytes.
pub unsafe fn copy_carefully(source: usize, target: *mut u8, length: usize) -> usize {
    const PAGE: usize = 4096;
    const PARTS: usize = 17;
    let mut parts = [[0_usize; 2]; PARTS];
    let (mut count, mut at, end) = (0, source, source.saturating_add(length));
    // The kernel copies whole parts, and stops at the first part that is not mapped.
    while at < end && count < PARTS {
        let next = (at / PAGE + 1) * PAGE;
        parts[count] = [at, next.min(end) - at];
        (count, at) = (count + 1, next);
    }
    // SAFETY: the parts have at most `length` bytes together, for which the target has room.
    unsafe { kernel::copy(target, &parts[..count]) }
}

/// Calls `visit` with each mapping of this process that can be read and written, and its name.
fn each_mapping(mut visit: impl FnMut(Extent, &[u8])) {
    let mut line = [0_u8; LINE];
    let mut length = 0;
    read_maps(|bytes| {
        for &byte in bytes {
            if byte == b'\n' {
                if let Some(mapping) = extent_of(&line[..length]) {
                    visit(mapping, name_of(&line[..length]));
                }
                length = 0;
            } else if length < LINE {
                line[length] = byte;
                length += 1;
            }
        }
    });
}

/// Maximum number of bytes that are kept of a line of `/proc/self/maps`. Lines that name stacks are
/// shorter.
const LINE: usize = 128;

fn extent_of(line: &[u8]) -> Option<Extent> {
    let dash = line.iter().position(|&byte| byte == b'-')?;
    let end = line.iter().position(|&byte| byte == b' ')?;
    let writable = line.get(end + 1..end + 3)? == b"rw";
    let (low, high) = (number(&line[..dash])?, number(line.get(dash + 1..end)?)?);
    writable.then_some(Extent { low, high })
}

fn name_of(line: &[u8]) -> &[u8] {
    let start = line.iter().rposition(|&byte| byte == b' ');
    &line[start.map_or(0, |start| start + 1)..]
}

fn number(digits: &[u8]) -> Option<usize> {
    digits.iter().try_fold(0_usize, |number, &digit| {
        let value = char::from(digit).to_digit(16)?;
        Some(number << 4 | value as usize)
    })
}

/// Maximum number of bytes that one system call reads. Small, because the calling thread may have a
/// small stack.
const BUFFER: usize = 512;

/// Reads `/proc/self/maps`, and calls `visit` with each part.
pub fn read_maps(mut visit: impl FnMut(&[u8])) {
    let mut buffer = [0_u8; BUFFER];
    // SAFETY: the path ends with a zero.
    let file = unsafe { kernel::open(c"/proc/self/maps".as_ptr(), system::O_CLOEXEC, 0) };
    if file < 0 {
        return;
    }
    loop {
        let length = kernel::read(file, &mut buffer);
        if length <= 0 {
            break;
        }
        visit(&buffer[..length.unsigned_abs()]);
    }
    kernel::close(file);
}
