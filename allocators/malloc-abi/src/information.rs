//! Implementations of the glibc functions with which a program inspects and controls its allocator.

use core::ffi::{c_int, c_void};

use crate::contract::keeping_errno;
use crate::report::{with_report, write_report};
use crate::slow_path::trim;
use crate::{Form, MallocAbi, Statistics};

/// Implements `malloc_trim`.
#[cold]
pub fn malloc_trim<A: MallocAbi>(keep: usize) -> c_int {
    keeping_errno(|| c_int::from(trim::<A>(keep)))
}

/// Implements `mallopt`.
pub fn mallopt<A: MallocAbi>(option: c_int, value: c_int) -> c_int {
    keeping_errno(|| c_int::from(A::set_option(option, value)))
}

/// Implements `mallinfo2`.
#[cold]
pub fn mallinfo2<A: MallocAbi>() -> libc::mallinfo2 {
    let now: Statistics = keeping_errno(A::statistics);
    libc::mallinfo2 {
        arena: now.reserved.saturating_sub(now.live_mapped),
        ordblks: 0,
        smblks: 0,
        hblks: now.mapped_blocks,
        hblkhd: now.live_mapped,
        usmblks: now.peak_reserved,
        fsmblks: 0,
        uordblks: now.live,
        fordblks: now.free,
        keepcost: now.releasable,
    }
}

/// Implements `mallinfo`. Its fields are ints, so larger values are clamped.
#[cold]
pub fn mallinfo<A: MallocAbi>() -> libc::mallinfo {
    let wide = mallinfo2::<A>();
    let narrow = |value: usize| c_int::try_from(value).unwrap_or(c_int::MAX);
    libc::mallinfo {
        arena: narrow(wide.arena),
        ordblks: narrow(wide.ordblks),
        smblks: narrow(wide.smblks),
        hblks: narrow(wide.hblks),
        hblkhd: narrow(wide.hblkhd),
        usmblks: narrow(wide.usmblks),
        fsmblks: narrow(wide.fsmblks),
        uordblks: narrow(wide.uordblks),
        fordblks: narrow(wide.fordblks),
        keepcost: narrow(wide.keepcost),
    }
}

/// Implements `malloc_stats`: writes to standard error.
#[cold]
pub fn malloc_stats<A: MallocAbi>() {
    keeping_errno(|| write_report::<A>(A::report_form(), None));
}

/// Implements `malloc_info`: writes XML to a stream.
///
/// # Safety
///
/// `stream` is an open stream.
#[cold]
pub unsafe fn malloc_info<A: MallocAbi>(options: c_int, stream: *mut c_void) -> c_int {
    if options != 0 {
        return libc::EINVAL;
    }
    let written = with_report::<A, _>(Form::Xml, |report| {
        // SAFETY: the text is NUL-terminated, and the stream is open by the contract of this
        // function.
        unsafe { libc::fputs(report.as_c_str().as_ptr(), stream.cast()) }
    });
    match written {
        Some(count) if count >= 0 => 0,
        _ => -1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Report;
    use core::ptr::NonNull;

    /// Allocator without memory, whose report changes `errno`.
    struct Changing;

    // SAFETY: no function returns a block.
    unsafe impl MallocAbi for Changing {
        const NAME: &'static str = "changing";

        fn allocate(_: usize) -> Option<NonNull<u8>> {
            None
        }

        fn allocate_aligned(_: usize, _: usize) -> Option<NonNull<u8>> {
            None
        }

        fn allocate_zeroed(_: usize) -> Option<NonNull<u8>> {
            None
        }

        unsafe fn reallocate(_: NonNull<u8>, _: usize) -> Option<NonNull<u8>> {
            None
        }

        unsafe fn deallocate(_: NonNull<u8>) {}

        unsafe fn usable_size(_: NonNull<u8>) -> usize {
            0
        }

        fn report(report: &mut Report<'_>) {
            report.begin(Self::NAME);
            // SAFETY: the address is the calling thread's own errno.
            unsafe { *libc::__errno_location() = libc::EAGAIN };
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no streams of C")]
    fn malloc_info_keeps_errno() {
        // SAFETY: the stream stays open until the end of the block, and errno is the calling
        // thread's own.
        unsafe {
            let stream = libc::tmpfile();
            assert!(!stream.is_null());
            *libc::__errno_location() = 77;
            assert_eq!(malloc_info::<Changing>(0, stream.cast()), 0);
            assert_eq!(*libc::__errno_location(), 77);
            libc::fclose(stream);
        }
    }
}
