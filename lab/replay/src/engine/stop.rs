//! Ends a replay that cannot continue, with one line and an exit status, without allocating.

use std::fmt::{self, Write};

/// Exit status if the allocator is at fault.
pub(super) const ALLOCATOR: i32 = 1;

/// Exit status if the machine is at fault.
pub(super) const MACHINE: i32 = 2;

/// A line in a fixed buffer, cut off if it is too long.
struct Line {
    bytes: [u8; 256],
    length: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = &mut self.bytes[self.length..];
        let length = text.len().min(room.len());
        room[..length].copy_from_slice(&text.as_bytes()[..length]);
        self.length += length;
        Ok(())
    }
}

/// Ends the process immediately, with a line on standard error.
#[cold]
pub(super) fn stop(status: i32, why: fmt::Arguments<'_>) -> ! {
    let mut line = Line {
        bytes: [0; 256],
        length: 0,
    };
    // Writing into the buffer cannot fail.
    let _ = writeln!(line, "heapdrome-replay: {why}");
    // SAFETY: the buffer has `length` bytes. If they cannot be written, only the exit status
    // reports the failure.
    unsafe { libc::write(libc::STDERR_FILENO, line.bytes.as_ptr().cast(), line.length) };
    // SAFETY: ending the process is always possible.
    unsafe { libc::_exit(status) }
}

/// Ends the process because a call returned null.
#[cold]
pub(super) fn out_of_memory(size: u64) -> ! {
    stop(
        ALLOCATOR,
        format_args!("out of memory: the allocator returned NULL for {size} bytes"),
    )
}

/// Ends the process because an earlier call returned null, which is detected only now.
#[cold]
pub(super) fn was_out_of_memory() -> ! {
    stop(
        ALLOCATOR,
        format_args!("out of memory: the allocator returned NULL to an earlier call"),
    )
}
