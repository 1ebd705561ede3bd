//! Counts the calls to the C and C++ allocation ABI and their requested bytes, and passes each call
//! on to the next definition.
//!
//! The witness preloads this library before the allocator that it proves. The library never
//! allocates and prints nothing. Its counts are in a shared mapping of a file, in the folder from
//! which the library was loaded. So they outlive the process, however it ends.
//!
//! A call is attributed to the object to which it is passed on. It does not count if that object
//! itself made the call, except for glibc, whose own calls count. A call to the C++ runtime's
//! `operator new`, which calls malloc, counts once for the runtime and once for the allocator. A
//! call to the allocator's own `operator new` counts once.
//!
//! In a second mode, [`follow`], the library also records sizes, live bytes and times. In a third
//! mode, [`recording`], it counts nothing. Instead it writes every call, or a sample of the calls
//! ([`passages`]), into a ring that a collector reads.

// The witness's build script builds this library without the standard library, so that it loads no
// other object into the process. A build that unwinds, such as the workspace's, needs the standard
// library's runtime.
#![cfg_attr(panic = "abort", no_std)]
#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]

mod calls;
mod clock;
mod control;
mod counting;
mod elf;
mod entry;
mod exponential;
mod extent;
mod fallback;
mod folder;
mod follow;
mod kernel;
mod large;
mod late;
mod layout;
mod marks;
mod own;
mod passages;
mod record;
mod recording;
mod recording_passages;
mod resolve;
mod ring;
mod ring_supply;
mod rings;
mod sample;
mod sampling;
mod sandbox;
mod shadow;
mod slots;
mod stack;
mod stack_ring;
mod stack_rings;
mod strings;
mod system;
mod thread;
mod timing;
mod trace;
mod unwinding;
mod waiting;

use core::ptr::null_mut;

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;

extern "C" fn end() {
    timing::end_process();
    stack_rings::end();
}

extern "C" fn begin() {
    resolve::begin();
    // SAFETY: the handlers may run at every fork, and this library is never unloaded, because it
    // was preloaded. A child that runs no handlers, such as a child of vfork, counts in its
    // parent's record.
    unsafe {
        system::__register_atfork(
            Some(rings::before_fork),
            None,
            Some(resolve::after_fork),
            null_mut(),
        )
    };
}

#[cfg(panic = "abort")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: abort has no precondition.
    unsafe { system::abort() }
}
